"""Rules from providers, protocols and standards name their source and the date of reading."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.models.formats import FORMATS

ROOT = Path(__file__).parent.parent / "python"
ADAPTERS = {f"{each.request_body.__module__.replace('.', '/')}.py" for each in FORMATS.values()}
MODULES = sorted(
    {
        *ADAPTERS,
        "parley/models/context_window.py",
        "parley/models/decoder.py",
        "parley/models/encode.py",
        "parley/models/quirks.py",
        "parley/models/refusals.py",
        "parley/models/sse.py",
        "parley/models/think_tags.py",
        "parley/models/thinking.py",
        "parley/providers/provider_errors.py",
        "parley/providers/sdk_clients.py",
        "parley/tools/convert.py",
        "parley/tools/names.py",
        "parley/tools/schema.py",
    }
)
"""Modules that state another party's rule; the wire format table adds each new format."""

_PLACE = re.compile(
    r"\b[\w-]+(\.[\w-]+)+/\S|\bRFC \d+|\bUAX #\d+|\b(anthropic|openai) \d+\.\d+|tests/streams"
)
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b|\b[A-Z][a-z]+ 20\d\d\b")


def notes(path: Path) -> Iterator[str]:
    """Each comment block, and each docstring."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(ast.Constant(str(docstring))):
                yield docstring
    block, last = list[str](), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    yield " ".join(block)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_states_another_partys_rule_names_source_and_date(name: str) -> None:
    assert any(_PLACE.search(note) and _DATE.search(note) for note in notes(ROOT / name))
