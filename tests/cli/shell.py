"""A person at a shell: real processes of `parley`, with real pipes and a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from parley.text import is_hidden
from tests.forks import Command, ForkServer

PATIENCE_S = 45.0
ASKS = b"Please choose"
PARLEY = (sys.executable, "-m", "parley")
_IN_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Shell:
    """A home that contains only the test's files, and a chat in it.

    A fork server, if given, runs all commands without a shell suffix.
    """

    def __init__(self, folder: Path, forks: ForkServer | None = None) -> None:
        self.folder = folder
        self.forks = forks
        self.parley = (forks.python, "-m", "parley") if forks else PARLEY
        """The command, for tests that start it themselves."""
        self.chat = folder / "chat.md"
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            **{
                name: str(folder / name)
                for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
            },
            "PARLEY_DEMO_PACE": "0",
            "PARLEY_LEAST_SEEN_S": "0",
            "TERM": "xterm",
            "COLUMNS": "80",
            "LC_ALL": "C.UTF-8",
        }
        self.configure("")

    def ask(self, question: str) -> None:
        """A chat with one question."""
        self.chat.write_text(f"💬: {question}\n", encoding="utf-8")

    @property
    def text(self) -> str:
        """The chat's text on disk."""
        return self.chat.read_text(encoding="utf-8", errors="surrogateescape")

    @property
    def chats(self) -> list[Path]:
        """The chat folder's file names, sorted."""
        return sorted(Path(self.environ["XDG_DATA_HOME"], "parley", "chats").glob("*.md"))

    def configure(self, toml: str, agent: str = 'agent = "Demo-OpenAI"') -> None:
        """Write the shell's settings, with the agent that starts fastest."""
        path = Path(self.environ["XDG_CONFIG_HOME"]) / "parley" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{agent}\n{toml}", encoding="utf-8")

    def serve(self, name: str, program: Path, more: str = "", **environ: str) -> None:
        """Configure one MCP server and `more` settings, without model-written status texts."""
        table = ", ".join(f"{key} = {toml(value)}" for key, value in environ.items())
        self.configure(
            f"{more}status.llm = false\n[mcp.servers.{name}]\ncommand = {toml(sys.executable)}\n"
            f"args = [{toml(str(program))}]\nenv = {{ {table} }}\n"
        )

    def run(
        self, *arguments: str, after: str = "", **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command with pipes; `after` is a shell suffix, such as `>&-`."""
        if self.forks and not after:
            return self._fork(self.forks, arguments, {**self.environ, **environ})
        # only a new Python process starts with closed streams
        parley = PARLEY if "&-" in after else self.parley
        line = ["/bin/sh", "-c", f'exec "$@" {after}', "sh", *parley, *arguments]
        env = {**self.environ, **environ}
        return subprocess.run(
            line,
            cwd=self.folder,
            env=env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
        )

    def feed(self, content: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command with this text on its standard input."""
        assert self.forks
        return self._fork(self.forks, arguments, self.environ, content)

    def _fork(
        self,
        forks: ForkServer,
        arguments: tuple[str, ...],
        environ: dict[str, str],
        content: bytes = b"",
    ) -> subprocess.CompletedProcess[bytes]:
        reader, writer = os.pipe()
        with (
            os.fdopen(reader, "rb") as out,
            os.fdopen(writer, "wb") as theirs,
            tempfile.TemporaryFile() as err,
            tempfile.TemporaryFile() as piped,
        ):
            piped.write(content)
            piped.seek(0)
            handles = (piped.fileno(), theirs.fileno(), err.fileno())
            command = forks.start(("-m", "parley", *arguments), environ, self.folder, handles)
            theirs.close()
            written, code = out.read(), command.wait(PATIENCE_S)
            err.seek(0)
            return subprocess.CompletedProcess(arguments, code, written, err.read())

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start a command with pipes, and leave it running."""
        return subprocess.Popen(
            [*self.parley, *arguments],
            cwd=self.folder,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @contextmanager
    def terminal(
        self,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        program: tuple[str, ...] = PARLEY,
        **environ: str,
    ) -> Iterator[Terminal]:
        """Run a command, or another program, in its own terminal."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = {**self.environ, **environ}
        process: subprocess.Popen[bytes] | Command
        if self.forks:
            words, handles = ("-m", "parley", *arguments), (theirs, theirs, theirs)
            process = self.forks.start(words, env, self.folder, handles)
        else:
            process = subprocess.Popen(
                [sys.executable, "-c", _IN_A_TERMINAL, *program, *arguments],
                cwd=self.folder,
                env=env,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
            )
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            process.wait(PATIENCE_S)
            with suppress(OSError):
                os.close(ours)


class Terminal:
    """A command's terminal: its output and its keys."""

    def __init__(self, process: subprocess.Popen[bytes] | Command, handle: int) -> None:
        self.process = process
        self.output = b""
        self._handle = handle

    def press(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self._handle, keys)

    def read(self, seconds: float) -> None:
        """Read the output that arrives within some time."""
        self._read(seconds)

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size."""
        fcntl.ioctl(self._handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_by_lines(self) -> bool:
        """Whether the terminal reads lines and echoes input, as a shell leaves it."""
        modes = termios.tcgetattr(self._handle)[3]
        return bool(modes & termios.ICANON and modes & termios.ECHO)

    def hang_up(self) -> None:
        """Close the terminal."""
        os.close(self._handle)

    def wait_for(self, condition: Callable[[bytes], bool]) -> None:
        """Read until a condition is true."""
        end = time.monotonic() + PATIENCE_S
        while not condition(self.output):
            assert time.monotonic() < end, self.output.decode(errors="replace")
            assert self._read(end - time.monotonic()), self.output.decode(errors="replace")

    def end(self, keys: bytes = b"") -> int:
        """The exit code, after all output. Presses the keys each time the command asks."""
        end, count = time.monotonic() + PATIENCE_S, self.output.count(ASKS)
        while self._read(end - time.monotonic()):
            if self.output.count(ASKS) > count:
                count = self.output.count(ASKS)
                self.press(keys)
        return self.process.wait(max(0.1, end - time.monotonic()))

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._handle], [], [], max(0.0, seconds))[0]:
            return b""
        piece = b""
        with suppress(OSError):  # EIO: the other end is closed
            piece = os.read(self._handle, 65_536)
        self.output += piece
        return piece

    @property
    def text(self) -> str:
        """All output, with plain line endings."""
        return self.output.decode("utf-8", "surrogateescape").replace("\r\n", "\n")

    @property
    def rows(self) -> list[str]:
        """The final screen, built from the few escapes that Parley may use; any other escape is an
        error.
        """
        rows, row, column = [""], 0, 0
        for piece in re.split("(\r|\n|\x1b\\[[KJ]|\x1b\\[\\d+A)", _LOOKS.sub("", self.text)):
            if piece == "\r":
                column = 0
            elif piece == "\n":
                row, column = row + 1, 0
                rows += [""] * (row == len(rows))
            elif piece.startswith("\x1b"):
                row -= int(piece[2:-1] or 0) if piece.endswith("A") else 0
                rows[row] = rows[row] if piece.endswith("A") else rows[row][:column]
                del rows[row + 1 if piece.endswith("J") else len(rows) :]
            else:
                rows[row] = rows[row][:column] + piece + rows[row][column + len(piece) :]
                column += len(piece)
        return rows


_LOOKS = re.compile(r"\x1b\[(?!5)[\d;]*m|\x1b\[\?2004[hl]")
"""Parley's escapes in text: colours and styles, but no blinking; and the marks for pasted text."""
_MOVES = re.compile(r"\r\x1b\[[KJ]|\x1b\[\d*[AKJ]")


def raw(output: str) -> str:
    """The characters that could control the terminal, or hide or reverse its text; "" for none."""
    said = _MOVES.sub("", _LOOKS.sub("", output))
    said = re.sub(r"([#*0-9ℹ]|[^\w\s\ufe0e\ufe0f])[\ufe0e\ufe0f]", "", said)
    return "".join(c for c in said if is_hidden(c) and c not in "\n\t")


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped. macOS has no /proc, and a small system may lack ps."""
    if (stat := Path(f"/proc/{pid}/stat")).exists():
        state = stat.read_text(encoding="utf-8").rpartition(")")[2]
    else:
        command = ["ps", "-o", "state=", "-p", str(pid)]
        state = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return state.strip().startswith("T")


def toml(text: str) -> str:
    """A text as a TOML string."""
    return (
        '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text) + '"'
    )
