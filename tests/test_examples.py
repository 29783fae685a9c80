"""The examples for other programs: the reader builds the same tree as `parley parse` for every
chat.
"""

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
from hypothesis import strategies as st

from examples import reader
from parley.chat import grammar
from parley.chat.transcript import Answer, Exchange, Note, Question, Text, Transcript
from parley.chat.writer import render
from parley.cli import main
from tests.examples import examples
from tests.strategies import (
    CALL,
    LONG_TEXT,
    MARKED,
    PICTURE,
    answers_with_orphans,
    marked_files,
    transcripts,
)

HERE = Path(__file__).parent
CORPUS = sorted(HERE.rglob("*.md"))
PAGE = HERE.parent / "doc" / "transcript.md"


def tree(path: Path) -> dict[str, Any]:
    """The output of `parley parse` for a chat, except the problems."""
    output = io.TextIOWrapper(
        io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True
    )
    with contextlib.redirect_stdout(output):
        assert main(["parse", str(path)]) == 0
    facts: dict[str, Any] = json.loads(output.buffer.getvalue())
    assert facts.pop("problems") is not None
    return facts


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file used for one chat after another."""
    return tmp_path_factory.mktemp("chats") / "chat.md"


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_reader_builds_each_chats_tree(path: Path) -> None:
    assert reader.Reader(path.read_bytes()).tree() == tree(path)


@examples(20)
@given(transcripts())
@example(Transcript(preamble=(Text("text"), Note("\r"))))
def test_the_reader_reads_every_written_chat(chat: Path, transcript: Transcript) -> None:
    chat.write_text(render(transcript), encoding="utf-8")
    assert reader.Reader(chat.read_bytes()).tree() == tree(chat)


@examples(10)
@given(answers_with_orphans())
def test_the_reader_finds_the_calls_for_results(chat: Path, answer: Answer) -> None:
    chat.write_text(render(Transcript((Exchange(Question(), (answer,)),))), encoding="utf-8")
    assert reader.Reader(chat.read_bytes()).tree() == tree(chat)


BITS = [
    *[
        "\r",
        "\ufeff",
        "\xa0",
        " ",
        "\t",
        "\0",
        "\ufe0f",
        "\u2028",
        "\x0b",
        "\x1c",
        "\x85",
        "\udcff",
        "\n",
        "\r\n",
    ],
    *[
        "`",
        "```",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        '"',
        ":",
        "/",
        "\\",
        "!",
        ">",
        "-",
        "0",
        "a",
        ",",
        ".assets/",
        "❓:[provider] ",
        "❓:[agent] ",
    ],
    *[
        "redacted",
        "redacted ",
        "[pending]",
        "[error]",
        "[yA]",
        "null",
        "1e999",
        "NaN",
        "\\ud800",
        "📝:",
    ],
    *["💬", "🤖", "🧠", "❓", "🛠", "🔒", "🧠:[", ">> Please choose ("],
]
"""Text that has a meaning somewhere in a chat."""
HEADS = [
    *[
        "🧠:[a:b c d]",
        "🧠:[a:b ]",
        "🧠:[a:b  c]",
        "🧠:[a:b redacted]",
        "🧠:[a:b redacted x]",
        "🧠:[a:b redacted  x]",
    ],
    *[
        "🧠:[a:b:c s]",
        "🧠:[:b]",
        "🧠:[a:]",
        "🧠:[a]",
        "🧠:[a:b redacted]]",
        "> a",
        ">b",
        ">",
        "🤖: [a] b",
        "🤖:[a",
    ],
    *[
        f"\\\\{PICTURE}",
        f"{PICTURE}\r",
        f"\\{PICTURE}\r",
        PICTURE.replace("stocks", "\ufeff"),
        PICTURE.replace("k", "\r"),
    ],
    *[
        "\\>> Please choose (",
        "\\\\❓:",
        "🔒:\xa0",
        "🔒:\r",
        "--- ",
        "a: b",
        "```py",
        "``` ",
        "`a",
        "`a` ",
        "`a`b`",
    ],
    *[
        "🛠️: [web_search] [call_1] ",
        "🛠: [a b][call_1][error]",
        f"🛠️: [a][call_1]{PICTURE}{LONG_TEXT} ",
    ],
]
"""Lines at the limits of the page's rules."""
PAGES = [path.read_bytes().decode("utf-8", "surrogateescape").split("\n") for path in CORPUS]


@st.composite
def mutated_files(draw: st.DrawFn) -> str:
    """Some lines from a chat in the corpus, or from any file with markers, with changed lines and
    characters.
    """
    page = draw(st.sampled_from(PAGES))
    start = draw(st.integers(0, len(page) - 1))
    excerpts = st.integers(1, 14).map(lambda count: page[start : start + count])
    rows = list(draw(excerpts | st.lists(st.sampled_from(MARKED + HEADS), min_size=1, max_size=12)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(rows) - 1))
        match draw(
            st.sampled_from(["line", "line", "twice", "swap", "drop", "put", "put", "put", "cut"])
        ):
            case "line":
                rows.insert(at, draw(st.sampled_from(MARKED + HEADS)))
            case "twice":
                rows.insert(draw(st.integers(0, len(rows))), rows[at])
            case "swap":
                rows[at], rows[0] = rows[0], rows[at]
            case "drop":
                rows[at] = ""
            case "put":
                place = draw(st.sampled_from([0, len(rows[at])]) | st.integers(0, len(rows[at])))
                rows[at] = rows[at][:place] + draw(st.sampled_from(BITS)) + rows[at][place:]
            case "cut":
                place = draw(st.integers(0, len(rows[at])))
                rows[at] = rows[at][:place] + rows[at][place + 1 :]
    return draw(st.sampled_from(["\n"] * 9 + ["\r\n"])).join(rows)


@examples(300)
@given(mutated_files() | marked_files)
@example("---\xa0\na: b\n---\n💬: q\n")
@example("---\na: b\n---\r\n💬: q\n")
@example("🤖:\n🛠️: [a][b]\n```\n```\r\n")
@example("🤖:\n🛠️: [a][b]\n```\nx \n \n")
@example("🤖:\n❓: `{}`\n🛠️: [a][b]\n```\nx\n```\xa0\ny\n```\n")
@example("🤖:\n🧠:[oll🧠:[ama:qwen3]\n")
@example("🤖:\n🧠:[a:b]\r\n\\>> Please choose (\n")
@example("🤖:\n🧠:[a:b ]\n🧠:[a:b c ]\n🧠:[a:b redacted]]\n🧠:[a:b redacted  c]\n")
@example(f"💬:\n{PICTURE}\r\n\\{PICTURE}\r\n{PICTURE.replace('k', chr(13))}\n")
@example(f"🤖:\n🛠️: [a][b] {PICTURE}\r\n🛠️: [a][c] {PICTURE}\r {PICTURE}\n")
@example(f"🤖:\n❓: `{CALL}`\n🛠️: [web_search][call_1][pending]\ni\n`8`\n")
@example("a\n🔒:\n")
@example("a\n🔒:\n🔒:\n\n🔒:\n🔒:\nb\n")
@example("💬: a\n>> Please choose (\n")
@example(f"💬: a\n>> Please choose (\n\n{PICTURE}\n>> Please choose (\n\nb\n")
@example("🤖:\n🛠️: [a][b]\n>> Please choose (\n")
@example("🤖:\n🛠️: [a][b]\n`c`\n>> Please choose (\n\n")
def test_the_reader_reads_any_file_like_parley(chat: Path, text: str) -> None:
    chat.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert reader.Reader(chat.read_bytes()).tree() == tree(chat)


def test_the_reader_can_run_as_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["reader.py", str(CORPUS[0])])
    runpy.run_path(reader.__file__, run_name="__main__")
    assert json.loads(capsys.readouterr().out) == tree(CORPUS[0])


def test_the_format_version_matches_its_page() -> None:
    (version,) = re.findall(
        r"describes version (\d+) of the format", PAGE.read_text(encoding="utf-8")
    )
    assert int(version) == grammar.VERSION == reader.VERSION == tree(CORPUS[0])["version"]
