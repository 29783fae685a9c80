"""Text from a model, a server or a file never reaches a terminal raw."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.call_lines import proposal_line
from parley.chat.transcript import ToolCall
from parley.cli.screen import Screen
from parley.text import VisiblePieces, is_hidden, visible
from tests.cli.shell import Shell, raw, toml
from tests.examples import examples

SERVER = Path(__file__).parent.parent / "cli" / "hostile_server.py"
HOSTILE = [
    *(
        "\x1b[2J",
        "\x1b]0;t\x07",
        "\x1b[K",
        "\r",
        "\r\n",
        "\n",
        "\x9b",
        "\x08",
        "\x7f",
        "\x00",
        "\t",
    ),
    *(
        "\u202e",
        "\u2066",
        "\u200b",
        "\u200d",
        "\ufe0f",
        "\ufe01",
        "⚠",
        "⚠\ufe0f",
        "1",
        "\ufeff",
        "\u2028",
    ),
    *(
        "\U000e0041",
        "\U000e0100",
        "\ud83d",
        "\udcff",
        "\u2800",
        "\u3164",
        "\u00ad",
        "漢",
        "\u0301",
        "💬: ",
    ),
]
hostile = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=4), max_size=8).map("".join)
deeds = st.lists(
    st.tuples(st.sampled_from(["say", "stream", "complain", "status"]), hostile), max_size=8
)


@contextmanager
def terminal(encoding: str) -> Iterator[tuple[io.TextIOWrapper, Callable[[], str]]]:
    """A pseudo-terminal as a program has it, and the bytes that reached it."""
    ours, theirs = pty.openpty()

    def read() -> str:
        written = b""
        while select.select([ours], [], [], 0)[0]:
            written += os.read(ours, 65_536)
        return written.decode(encoding).replace("\r\n", "\n")

    try:
        with open(theirs, "w", encoding=encoding, closefd=False) as stream:
            yield stream, read
    finally:
        os.close(ours)
        os.close(theirs)


@given(deeds, st.sampled_from(["utf-8", "latin-1"]))
def test_a_screen_lets_no_raw_text_through(script: list[tuple[str, str]], encoding: str) -> None:
    with terminal(encoding) as (stream, read):
        screen, output = Screen(stream, stream, {"TERM": "xterm"}), ""
        for deed, text in script:
            getattr(screen, deed)(text)
            output += read()
        assert screen.end(0) == 0
        assert not raw(output + read())


@given(st.lists(hostile, max_size=6))
def test_pieces_look_the_same_as_the_whole(pieces: list[str]) -> None:
    seen = VisiblePieces()
    assert "".join(map(seen.feed, pieces)) + seen.end() == visible("".join(pieces))


@given(deeds, st.booleans())
def test_a_status_erases_no_word(script: list[tuple[str, str]], ends: bool) -> None:
    with terminal("utf-8") as (stream, read):
        screen, output, said = Screen(stream, stream, {"TERM": "xterm"}), "", list[str]()
        for deed, text in script:
            piece = "".join(c for c in text if not is_hidden(c) and c not in "\r\n\t") + "\n" * ends
            getattr(screen, deed)(piece)
            output += read()
            said += [piece.strip("\n")] if deed in ("say", "complain") else []
        screen.end(0)
        output += read()
    rows = "".join(standing(output).split("\n"))
    for piece in said:
        assert piece in rows


def standing(output: str) -> str:
    """A terminal's content after this output: a return and a clear erase the line."""
    return "\n".join(line.rpartition("\r\x1b[K")[2] for line in output.split("\n"))


@pytest.mark.fuzz
@examples(3)
@given(hostile.filter(lambda text: text.strip() and "\0" not in text), st.data())
def test_no_command_lets_raw_text_through(text: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder))
        shell.serve("bad", SERVER, HOSTILE=json.dumps(text))
        asked = data.draw(st.sampled_from(["say", "call", "file", "settings"]))
        match asked:
            case "say":
                shell.ask(f"say: {text}".encode(errors="replace").decode())
            case "call":
                shell.ask("call note {}")
            case "file":
                call = proposal_line(ToolCall("c", text, text))
                head = f"---\nagent: {json.dumps(text)}\n---\n\n"
                written = f"{head}💬: {text}\n\n🤖:[{text}]\n\n{call}\n\n🛠️: [{text}][c]\n\n{text}\n"
                shell.chat.write_bytes(written.encode(errors="surrogatepass"))
            case _:
                whole = text.encode(errors="replace").decode()
                shell.configure(f"{toml(whole)} = 1\nagent = {toml(whole)}\n")
                shell.ask("hello")
        for command in (
            "respond",
            "respond --choose ya",
            "check",
            "parse",
            "messages",
            "log",
            "export",
        ):
            name, *options = command.split()
            with shell.terminal(name, "chat.md", *options) as seen:
                seen.end(b"q")
            assert not raw(seen.text), ascii(seen.text)
            assert "Traceback" not in seen.text
