"""The examples for other programs: the reader makes the tree of `parley parse` for every chat."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from examples import reader
from parley.chat import grammar
from parley.chat.transcript import Answer, Exchange, Note, Question, Text, Transcript
from parley.chat.writer import render
from parley.cli import main
from tests.examples import examples
from tests.strategies import answers_with_orphans, marked_files, transcripts

HERE = Path(__file__).parent
CORPUS = sorted(HERE.rglob("*.md"))
PAGE = HERE.parent / "doc" / "transcript.md"


def tree(path: Path) -> dict[str, Any]:
    """The output of `parley parse` for a chat, except the problems."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)
    with contextlib.redirect_stdout(output):
        assert main(["parse", str(path)]) == 0
    facts: dict[str, Any] = json.loads(output.buffer.getvalue())
    assert facts.pop("problems") is not None
    return facts


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for one chat after another."""
    return tmp_path_factory.mktemp("chats") / "chat.md"


def without_ends(value: Any) -> Any:
    """A tree without the last lines of its parts."""
    if isinstance(value, dict):
        return {key: without_ends(item) for key, item in value.items() if key != "end_line"}
    return [without_ends(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_reader_makes_the_tree_of_each_chat(path: Path) -> None:
    assert reader.Reader(path.read_bytes()).tree() == tree(path)


@examples(20)
@given(transcripts())
@example(Transcript(preamble=(Text("text"), Note("\r"))))
def test_the_reader_reads_what_is_written(chat: Path, transcript: Transcript) -> None:
    chat.write_text(render(transcript), encoding="utf-8")
    assert reader.Reader(chat.read_bytes()).tree() == tree(chat)


@examples(10)
@given(answers_with_orphans())
def test_the_reader_finds_the_calls_of_results(chat: Path, answer: Answer) -> None:
    chat.write_text(render(Transcript((Exchange(Question(), (answer,)),))), encoding="utf-8")
    assert reader.Reader(chat.read_bytes()).tree() == tree(chat)


@examples(20)
@given(marked_files)
@example("---\xa0\na: b\n---\n💬: q\n")
@example("---\na: b\n---\r\n💬: q\n")
@example("🤖:\n🛠️: [a][b]\n```\n```\r\n")
@example("🤖:\n❓: `{}`\n🛠️: [a][b]\n```\nx\n```\xa0\ny\n```\n")
def test_the_reader_takes_any_file_as_it_is_taken(chat: Path, text: str) -> None:
    """The format page does not define where a part ends above an old prompt or an empty note."""
    chat.write_text(text, encoding="utf-8", errors="surrogateescape")
    assert without_ends(reader.Reader(chat.read_bytes()).tree()) == without_ends(tree(chat))


def test_the_reader_is_a_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["reader.py", str(CORPUS[0])])
    runpy.run_path(reader.__file__, run_name="__main__")
    assert json.loads(capsys.readouterr().out) == tree(CORPUS[0])


def test_the_version_of_the_format_is_that_of_its_page() -> None:
    (version,) = re.findall(r"describes version (\d+) of the format", PAGE.read_text(encoding="utf-8"))
    assert int(version) == grammar.VERSION == reader.VERSION == tree(CORPUS[0])["version"]
