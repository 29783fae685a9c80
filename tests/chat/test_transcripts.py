"""The corpus of chats: beside each `name.md`, `name.problems` holds what `parley check` says of it.

Without one nothing is said. A new case needs no code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.chat.reader import parse
from parley.chat.writer import render

CASES = sorted((Path(__file__).parent.parent / "transcripts").glob("*.md"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_chat_has_the_problems_that_are_told_and_round_trips(path: Path) -> None:
    transcript = parse(path.read_bytes().decode("utf-8", "surrogateescape"))
    told = path.with_suffix(".problems")
    found = [f"{p.line + 1}:{p.column + 1}: {p.severity}: {p.message}" for p in transcript.problems]
    assert found == (told.read_text(encoding="utf-8").splitlines() if told.exists() else [])
    assert parse(render(transcript)) == transcript
