"""The reference file server's edits, as Parley computes them, and as the server's own code does."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from parley.tools.first_matches import with_first_matches
from parley.tools.text_edits import EditError, Replacement

LIBRARY = (
    Path(__file__).parents[2]
    / ".tools/guests/node_modules/@modelcontextprotocol/server-filesystem/dist/lib.js"
)
SCRIPT = """
import fs from 'fs'
const { applyFileEdits } = await import(process.argv[1])
const results = []
for (const [text, edits] of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  fs.writeFileSync(process.argv[2], text)
  try {
    await applyFileEdits(process.argv[2], edits, false)
    results.push(fs.readFileSync(process.argv[2], 'utf8'))
  } catch { results.push(null) }
}
console.log(JSON.stringify(results))
"""
PIECES = ["a", "b", " ", "  ", "\t", "\n", "\n", "\r\n", "\u00a0", "\ufeff", "\x1c", "x"]


def parleys(text: str, *edits: tuple[str, str]) -> str | None:
    """The text that Parley expects, or None for an error."""
    try:
        return with_first_matches(text, [Replacement(*edit) for edit in edits])[0]
    except EditError:
        return None


def test_blanks_are_those_that_the_server_removes() -> None:
    assert parleys("\ufeff a\n", ("a\n\u00a0", "b\n")) == "\ufeff b\n"
    assert parleys("\x1ca\n", ("a\n ", "b\n")) is None


def test_a_line_is_indented_as_the_line_that_it_replaces() -> None:
    text = "    if x:\n        a()\n        b()\n"
    assert parleys(text, ("if x:\n\ta()\n\tb()", "if y:\n\tc()\n\t\td()\ne()")) == (
        "    if y:\n    c()\n     d()\ne()\n"
    )


@pytest.mark.guests
def test_the_servers_own_code_writes_the_same(tmp_path: Path) -> None:
    chance = random.Random(1)

    def text(most: int) -> str:
        return "".join(chance.choices(PIECES, k=chance.randint(0, most)))

    cases = [
        (text(14), [(text(6), text(8)) for _ in range(chance.randint(1, 2))]) for _ in range(2000)
    ]
    calls = [
        (before, [{"oldText": old, "newText": new} for old, new in edits])
        for before, edits in cases
    ]
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", SCRIPT, LIBRARY.as_uri(), tmp_path / "f"],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=True,
    )
    results = json.loads(ran.stdout)
    assert [parleys(before, *edits) for before, edits in cases] == results
    assert sum(result is not None for result in results) > 300
