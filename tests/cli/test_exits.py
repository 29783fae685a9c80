"""Every command on files that are not chats: the documented exit code, no traceback, valid JSON
lines.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from parley.cli.arguments import COMMANDS
from tests.json_schema import types_of

READERS = {
    "respond": 1,
    "compact": 1,
    "messages": 1,
    "parse": 0,
    "export": 0,
    "import": 1,
    "check": 0,
    "log": 0,
    "trust": 1,
    "changes": 0,
    "revert": 0,
    "verify": 1,
    "replay": 1,
}
"""The commands with a file, each with its exit code for a readable file that is not a chat."""
WITHOUT_FILE = {
    "ask",
    "chat",
    "compare",  # it also needs agents
    "edit",
    "agents",
    "allow",
    "config",
    "convert",
    "tools",
    "servers",
    "login",
    "logout",
    "demo-server",
    "completion",
    "man",
    "help",
    "list",
    "prompts",
    "skills",
}
JSON = {"respond", "compact", "check", "log", "changes", "revert", "verify", "replay"}
"""The commands with `--json`."""
UNREADABLE = "/proc/self/mem"
"""A file that opens, but whose start even root cannot read."""
NO_FILES = (
    "none.md",
    "folder",
    "x" * 300 + ".md",
    *([UNREADABLE] if sys.platform == "linux" else []),
)
FILES: dict[str, bytes] = {
    "empty.md": b"",
    "binary.md": bytes(range(256)) * 64,
    "huge_line.md": b"x" * 3_000_000,
    "no_utf8.md": "no ".encode("utf-16") + b"\xff\xfe\n",
    "-n.md": b"nothing\n",
    "--json": b"nothing\n",
    "a\nb \x1b[2J\u202e.md": b"nothing\n",
    "\udcff.md": b"nothing\n",
    "a `%s` {0} 'b'.md": b"nothing\n",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """A command's exit code and output."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run a command in this process, in a folder with all these files."""
    (tmp_path / "folder").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def run(
        *arguments: str,
        stdin: bytes = b"",
        out: io.TextIOBase | None = None,
        is_closed: bool = False,
    ) -> Ended:
        written, errors = None if is_closed else out or utf8(), utf8()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setattr(sys, "stdout", written)
        monkeypatch.setattr(sys, "stderr", errors)
        code = main(arguments)  # a real process would close its files at its end
        ended = Ended(code, text_of(written), text_of(errors))
        assert "Traceback" not in ended.out + ended.err
        assert "bug in Parley" not in ended.out + ended.err
        return ended

    return run


def utf8() -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True
    )


def text_of(stream: io.TextIOBase | None) -> str:
    if not isinstance(stream, io.TextIOWrapper):
        return ""
    content: bytes = stream.buffer.getvalue()
    return content.decode("utf-8", "surrogateescape")


class ClosedPipe(io.StringIO):
    """An output whose reader has closed it."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_every_command_is_tried_here() -> None:
    assert set(COMMANDS) == READERS.keys() | WITHOUT_FILE


@pytest.mark.parametrize("name", READERS)
def test_an_unreadable_file_is_an_error_that_names_it(name: str, run: Callable[..., Ended]) -> None:
    for file in NO_FILES:
        ended = run(name, file)
        assert ended.code == 1, file
        assert file.replace("\n", "\\n") in ended.err
        if name in JSON:
            ended = run(name, "--json", file)
            assert (ended.code, ended.err) == (1, ""), file
            assert types_of(ended.out.splitlines()) == {"error", "end"}


@pytest.mark.parametrize("name", READERS)
def test_the_exit_code_is_right_for_every_name_and_content_of_a_file(
    name: str, run: Callable[..., Ended]
) -> None:
    for file in FILES:
        ended = run(name, "--", file)
        assert ended.code == READERS[name], (file, ended.err)
        assert (ended.code != 0) == bool(ended.err), file
        if name in JSON:
            again = run(name, "--json", "--", file)
            assert (again.code, again.err) == (ended.code, ""), file
            assert "end" in types_of(again.out.splitlines())


@pytest.mark.parametrize("name", READERS)
def test_unread_output_is_not_an_error_but_unwritable_output_is(
    name: str, run: Callable[..., Ended]
) -> None:
    assert run(name, "empty.md", out=ClosedPipe()).code == READERS[name]
    ended = run(name, "empty.md", is_closed=True)
    assert ended.code == (1 if READERS[name] or run(name, "empty.md").out else 0)
    assert ("cannot write to standard output" in ended.err) == (
        ended.code == 1 and READERS[name] == 0
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("servers", "add", "none"), 1),
        (("servers", "add", "x", "--from", "none"), 1),
        (("login", "none"), 1),
        (("logout", "none"), 1),
        (("config", "none"), 1),
        (("completion", "none"), 2),
        (("demo-server", "--port", "none"), 2),
        (("tools", "none"), 2),
        (("agents", "none"), 2),
        (("allow", "--remove", "none"), 2),
        (("allow", "--remove", "7"), 1),
        (("man", "none"), 2),
        (("convert", "--to", "none"), 2),
        (("none",), 2),
        ((), 2),
    ],
)
def test_a_command_without_a_file_reports_its_errors(
    arguments: tuple[str, ...], code: int, run: Callable[..., Ended]
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err
    as_json = run(*arguments, "--json")
    assert (as_json.code != 0, as_json.err) == (True, "")
    assert types_of(as_json.out.splitlines()) == {"error", "end"}


@pytest.mark.parametrize(
    "arguments", [("agents",), ("servers",), ("config",), ("man",), ("completion", "bash")]
)
def test_a_list_that_cannot_be_written_is_an_error(
    arguments: tuple[str, ...], run: Callable[..., Ended]
) -> None:
    assert run(*arguments, is_closed=True).code == 1
    assert run(*arguments, out=ClosedPipe()).code == 0


class FullDisk(io.StringIO):
    """A file on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


QUESTIONS = {
    "answered": "hello",
    "waiting": "can you find the latest stock price of google and microsoft?",
}
ENDS: dict[str, tuple[tuple[str, ...], int]] = {
    "respond": (("respond", "answered.md"), 0),
    "respond, calls": (("respond", "waiting.md"), 3),
    "respond, several": (("respond", "answered.md", "waiting.md"), 3),
    "respond, JSON": (("respond", "--json", "waiting.md"), 3),
    "respond, pipe": (("respond", "-"), 0),
    "ask": (("ask", "hello"), 0),
    "ask, calls": (("ask", "--json", QUESTIONS["waiting"]), 3),
    "compare": (("compare", "answered.md", "Demo", "Demo-OpenAI"), 0),
    "compact": (("compact", "--json", "answered.md"), 0),
    "chat": (("chat", "answered.md"), 2),
    "edit": (("edit", "answered.md"), 0),
    "messages": (("messages", "answered.md"), 0),
    "parse": (("parse", "answered.md"), 0),
    "export": (("export", "answered.md"), 0),
    "import": (("import", "--from", "openai", "chat.json"), 0),
    "check": (("check", "broken.md"), 1),
    "log": (("log", "answered.md"), 0),
    "changes": (("changes", "answered.md"), 0),
    "revert": (("revert", "answered.md"), 0),
    "verify": (("verify", "answered.md"), 0),
    "replay": (("replay", "answered.md"), 0),
    "trust": (("trust", "servers.json"), 0),
    "convert": (("convert", "--to", "openai"), 1),
    "tools": (("tools",), 0),
    "login": (("login", "--json", "none"), 2),
    "logout": (("logout", "--json", "none"), 2),
    "demo-server": (("demo-server", "--json", "--port", "none"), 2),
} | {
    name: ((name,), 0)
    for name in ("agents", "allow", "config", "servers", "man", "help", "list", "prompts", "skills")
}
ENDS["completion"] = (("completion", "bash"), 0)


def test_every_command_is_tried_with_outputs_that_fail() -> None:
    assert {arguments[0] for arguments, _ in ENDS.values()} == set(COMMANDS)


@pytest.mark.parametrize("name", ENDS)
def test_lost_output_is_an_error_but_a_reader_that_stops_early_is_not(
    name: str, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lost output outranks waiting calls, a limit and a missing server, because it may have
    reported them.
    """
    monkeypatch.setenv("PARLEY_DEMO_PACE", "0")
    monkeypatch.setenv("EDITOR", "true")

    def end(**output: Any) -> Ended:
        for stem, question in QUESTIONS.items():
            Path(f"{stem}.md").write_text(f"💬: {question}\n", encoding="utf-8")
        Path("broken.md").write_text("🤖:[A]\n\n❓: `{no}`\n", encoding="utf-8")
        Path("chat.json").write_text('[{"role": "user", "content": "q"}]', encoding="utf-8")
        Path("servers.json").write_text(
            '{"mcpServers": {"a": {"command": "true"}}}', encoding="utf-8"
        )
        return run(*arguments, stdin="💬: hello\n".encode(), **output)

    arguments, code = ENDS[name]
    ended = end()
    assert ended.code == code, ended.err
    # the user must have read the description
    assert end(out=ClosedPipe()).code == (1 if name == "trust" else code)
    for output, why in (
        ({"is_closed": True}, "it is closed"),
        ({"out": FullDisk()}, "No space left"),
    ):
        lost = end(**output)
        assert lost.code == (code if code == 2 or not ended.out else 1)
        assert (f"cannot write to standard output: {why}" in lost.err) == bool(ended.out)
    if arguments[0] == "respond" and "-" not in arguments:
        assert "🤖:" in Path(arguments[-1]).read_text(encoding="utf-8")


DEEP = b"[" * 200_000
DEFINITION = b'[{"name": "t", "inputSchema": {"type": "object", "x": %s}}]'


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"{", b"7", b'"a"', b"[7]", b"[{}]", b'{"name": 7}', DEEP, DEFINITION % b"NaN"],
)
def test_only_tool_definitions_are_converted(content: bytes, run: Callable[..., Ended]) -> None:
    ended = run("convert", "--to", "anthropic", stdin=content)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("parley: standard input")


@pytest.mark.parametrize("name", ["messages", "parse", "export", "check"])
def test_a_file_on_standard_input_is_read_like_any_other(
    name: str, run: Callable[..., Ended]
) -> None:
    for content in FILES.values():
        assert run(name, "-", stdin=content).code == READERS[name]


def test_check_continues_after_an_unreadable_file(run: Callable[..., Ended]) -> None:
    Path("broken.md").write_text("💬: q\n\n🤖:[A]\n\n❓: `{no}`\n", encoding="utf-8")
    ended = run("check", "none.md", "broken.md", "empty.md")
    assert ended.code == 1
    assert ended.out.startswith("broken.md:5:")
    assert "none.md" in ended.err


def test_trusting_invalid_json_fails(run: Callable[..., Ended]) -> None:
    Path("servers.json").write_text("{no", encoding="utf-8")
    assert run("trust", "servers.json").code == 1


def test_a_definition_of_any_depth_is_converted_or_refused(run: Callable[..., Ended]) -> None:
    """Reading and writing have different limits, which differ between Python versions."""
    for depth in range(50, 1500, 50):
        schema = b'{"type": "object", "properties": {"a": ' * depth + b"{}" + b"}}" * depth
        ended = run(
            "convert", "--to", "anthropic", stdin=b'[{"name": "t", "inputSchema": %s}]' % schema
        )
        assert (ended.code, ended.out) == (1, "") or (ended.code, ended.err) == (0, "")
    assert ended.err == "parley: standard input is nested too deeply for a tool definition\n"
