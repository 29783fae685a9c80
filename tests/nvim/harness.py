"""A real Neovim in a child process, with its screen as a grid of cells. Tests wait for conditions."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from select import select
from typing import Any

import pynvim

from tests.forks import forks

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 45.0
WIDTH, HEIGHT = 100, 30
OPTIONS = """
_G.options_at_start = {}
for name, info in pairs(vim.api.nvim_get_all_options_info()) do
  if not vim.tbl_contains({ 'channel', 'columns', 'lines', 'scroll', 'window' }, name) then
    -- Neovim 0.10 lists options that it does not have, such as 'guioptions'.
    local is_there, value = pcall(vim.api.nvim_get_option_value, name, { scope = 'global' })
    if is_there then
      _G.options_at_start[name] = { value, info.scope == 'win' }
    end
  end
end
"""
# Opening a chat takes Neovim half the time without the syntax files for CSS and scripts in HTML, which
# syntax/html.vim reads unless it serves Java.
FASTER = """
vim.o.timeoutlen = 30
vim.g.main_syntax, vim.g.markdown_yaml_head = 'java', 1
"""
# If Treesitter ends while syntax is on, Neovim reads the syntax file for a text that it is about to
# wipe out.
CLEAR = """
for name, start in pairs(_G.options_at_start) do
  for _, scope in ipairs(start[2] and { 'global', 'local' } or { 'global' }) do
    if vim.api.nvim_get_option_value(name, { scope = scope }) ~= start[1] then
      vim.api.nvim_set_option_value(name, start[1], { scope = scope })
    end
  end
end
local on = vim.g.syntax_on
vim.g.syntax_on = nil
vim.cmd('silent! tabonly! | silent! %bwipeout! | silent! only! | messages clear')
vim.g.syntax_on = on
"""


def nvim_path() -> str:
    """The Neovim that the tests drive: from PARLEY_NVIM, from .venv, or from the PATH."""
    beside = ROOT / ".venv" / "bin" / "nvim"
    name = os.environ.get("PARLEY_NVIM") or (str(beside) if beside.exists() else "nvim")
    return shutil.which(name) or name


class Grid:
    """The screen's content, built from redraw events."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.attributes: list[list[int]] = []
        self.styles: dict[int, dict[str, Any]] = {0: {}}
        self.terminal_styles: dict[int, dict[str, Any]] = {0: {}}
        """The screen with 'termguicolors' off."""
        self.cursor = (0, 0)
        self.mode = "normal"

    def redraw(self, events: list[Any]) -> None:
        """Process one batch of events."""
        for name, *calls in events:
            handler: Callable[..., None] | None = getattr(self, f"_{name}", None)
            for arguments in calls:
                if handler:
                    handler(*arguments)

    def _grid_resize(self, grid: int, width: int, height: int) -> None:
        self.rows = [[" "] * width for _ in range(height)]
        self.attributes = [[0] * width for _ in range(height)]

    def _grid_clear(self, grid: int) -> None:
        self._grid_resize(grid, len(self.rows[0]), len(self.rows))

    def _grid_line(self, grid: int, row: int, column: int, cells: list[Any], *more: Any) -> None:
        style = 0
        for cell in cells:
            text = cell[0]
            style = cell[1] if len(cell) > 1 else style
            for _ in range(cell[2] if len(cell) > 2 else 1):
                self.rows[row][column] = text
                self.attributes[row][column] = style
                column += 1

    def _grid_scroll(
        self, grid: int, top: int, bottom: int, left: int, right: int, by: int, _: int
    ) -> None:
        both: list[Any] = [self.rows, self.attributes]
        for rows in both:
            before = [row[left:right] for row in rows]
            for row in range(top, bottom):
                if top <= row + by < bottom:
                    rows[row][left:right] = before[row + by]

    def _grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _mode_change(self, mode: str, _: int) -> None:
        self.mode = mode

    def _hl_attr_define(
        self, number: int, rgb: dict[str, Any], terminal: dict[str, Any], *_: Any
    ) -> None:
        self.styles[number], self.terminal_styles[number] = rgb, terminal

    def text(self) -> str:
        """The screen, without trailing spaces."""
        return "\n".join("".join(row).rstrip() for row in self.rows)

    def style(self, text: str) -> dict[str, Any]:
        """The style of a text's first cell on the screen."""
        row, column = self.place(text)
        return self.styles[self.attributes[row][column]]

    def place(self, text: str) -> tuple[int, int]:
        """Row and column of a text's first cell on the screen."""
        for row, cells in enumerate(self.rows):
            start = "".join(cells).find(text)
            if start >= 0:
                ends = accumulate(map(len, cells))
                return row, next(column for column, end in enumerate(ends) if end > start)
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text()}")


def _leave_signals_alone(nvim: pynvim.Nvim) -> None:
    """Keep pynvim from taking over SIGINT and SIGTERM in each request, which is half of a request's
    cost.
    """
    loop: Any = nvim._session._async_session.loop
    loop._setup_signals = lambda signals: None
    loop._teardown_signals = lambda: None


def _close_pipes(nvim: pynvim.Nvim) -> None:
    """Close a Neovim's pipes while pynvim's loop still runs: it completes the close one round
    later.
    """
    loop: Any = nvim._session._async_session.loop
    for transport in filter(None, (loop._transport, *loop._to_close)):
        transport.close()
    loop._loop.call_soon(loop._loop.stop)
    loop._loop.run_forever()


class Child:
    """The Neovim under test."""

    def __init__(
        self, home: Path, arguments: list[str], width: int, height: int, env: dict[str, str]
    ) -> None:
        self.home = home
        self._size = width, height
        before = dict(os.environ)
        os.environ.update(env)
        try:
            argv = [nvim_path(), "--embed", "-i", "NONE", "-n", *arguments]
            self.nvim = pynvim.attach("child", argv=argv)
        finally:
            os.environ.clear()
            os.environ.update(before)
        _leave_signals_alone(self.nvim)
        loop: Any = self.nvim._session._async_session.loop
        self._pipe = loop._to_close[0].get_extra_info("pipe")
        self.grid = Grid()
        self.notes: list[Any] = []
        self.pid: int = self.nvim.funcs.getpid()
        self.nvim.ui_attach(width, height, rgb=True, ext_linegrid=True)
        self.lua(OPTIONS)

    # --- Acting ---

    def keys(self, keys: str) -> None:
        """Type keys."""
        self.nvim.input(keys)

    def command(self, command: str) -> None:
        """Run an Ex command."""
        self.nvim.command(command)

    def lua(self, code: str, *arguments: Any) -> Any:
        """The value of Lua code."""
        return self.nvim.exec_lua(code, *arguments)

    def edit(self, name: str, text: str) -> Path:
        """Write a file and open it."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.command(f"edit {path}")
        return path

    def clear(self) -> None:
        """Reset to one empty window, the initial size and options, and no messages."""
        self.keys("<C-\\><C-n>")
        while self.blocked():
            self.keys("<CR>")
        self.nvim.ui_try_resize(*self._size)
        self.lua(CLEAR)
        self.flush()

    # --- Seeing ---

    def lines(self, buf: int = 0) -> list[str]:
        """A buffer's lines."""
        lines: list[str] = self.nvim.api.buf_get_lines(buf, 0, -1, True)
        return lines

    def text(self) -> str:
        """The current buffer's text."""
        return "\n".join(self.lines())

    @property
    def name(self) -> str:
        """The current buffer's name; one request, because a page may be replaced between two
        requests.
        """
        name: str = self.nvim.api.buf_get_name(0)
        return name

    def variable(self, name: str) -> Any:
        """A variable of the current buffer; None if unset."""
        return self.lua("return vim.b[...]", name)

    @property
    def cursor(self) -> tuple[int, int]:
        """The cursor's row and column; the row counts from 1."""
        row, column = self.nvim.api.win_get_cursor(0)
        return row, column

    def screen(self) -> str:
        """The present screen."""
        self.flush()
        return self.grid.text()

    def flush(self) -> None:
        """Process the redraw events received so far."""
        self.nvim.api.get_mode()
        session = self.nvim._session
        while session._pending_messages:
            message = session.next_message()
            if message and message[1] == "redraw":
                self.grid.redraw(message[2])

    def blocked(self) -> bool:
        """Whether Neovim waits in the middle of a command; tests must then send no other requests."""
        return bool(self.nvim.api.get_mode()["blocking"])

    def until(
        self, condition: Callable[[], Any], what: str = "", seconds: float = PATIENCE_S
    ) -> Any:
        """Return the condition's value as soon as it is true and Neovim has drawn the result.

        Each check costs the test at least a millisecond. Checks become rarer with time, unless
        Neovim draws.
        """
        end, pause, has_waited = time.monotonic() + seconds, 0.002, False
        while True:
            self.until_open()
            if value := condition():
                if has_waited:
                    self._settle()
                return value
            if time.monotonic() > end:
                raise AssertionError(
                    f"{what or 'the condition'} did not come about:\n{self.report()}"
                )
            has_waited = True
            time.sleep(pause)
            select([self._pipe], [], [], 2 * pause)
            pause = min(pause * 1.2, 0.01)

    def _settle(self) -> None:
        """Process redraw events until Neovim draws nothing for a moment, or a time limit is
        reached.
        """
        with suppress(EOFError, OSError, ValueError):  # Neovim may have ended
            for _ in range(5):
                if not select([self._pipe], [], [], 0.008)[0]:
                    break
                self.flush()

    def until_open(self, seconds: float = 2.0) -> None:
        """Return when Neovim accepts requests; it accepts none while it waits for the rest of a
        key.
        """
        end = time.monotonic() + seconds
        while self.blocked():
            assert time.monotonic() < end, f"Neovim waits for a key:\n{self.screen()}"
            time.sleep(0.003)

    def until_text(self, text: str, seconds: float = PATIENCE_S) -> str:
        """The buffer's text, as soon as it contains this text."""
        self.until(lambda: text in self.text(), f"{text!r} in the text", seconds)
        return self.text()

    def until_screen(self, text: str, seconds: float = PATIENCE_S) -> str:
        """The screen, as soon as it shows this text."""
        self.until(lambda: text in self.screen(), f"{text!r} on the screen", seconds)
        return self.screen()

    def until_idle(self, seconds: float = PATIENCE_S) -> None:
        """Return when no turn runs in the current buffer."""
        self.until(
            lambda: not self.lua("return require('parley.handle').busy(0)"),
            "the end of the turn",
            seconds,
        )

    def until_waiting(self, seconds: float = PATIENCE_S) -> None:
        """Return when a call waits for a choice: its keys exist, and the turn has ended."""
        waits = "return vim.fn.maparg('ya', 'n') ~= '' and not require('parley.handle').busy(0)"
        self.until(lambda: self.lua(waits), "the choice keys", seconds)

    def messages(self) -> str:
        """The messages; in the command-line window, Neovim 0.10 gives them only to `execute`."""
        said: str = self.nvim.funcs.execute("messages")
        return said.strip("\n")

    def report(self) -> str:
        """Everything that helps to find the failure's cause."""
        if self.blocked():
            return f"{self.screen()}\n--- Neovim waits for a key"
        parts = [self.screen(), "--- text", self.text(), "--- messages", self.messages()]
        stderr = self.lua("return require('parley.host').state().stderr")
        log = self.lua("return require('parley.host').log()")
        parts += ["--- stderr", *stderr, "--- log"]
        parts += [Path(log).read_text(encoding="utf-8")] if Path(log).exists() else []
        return "\n".join(parts)

    def close(self) -> None:
        """End Neovim, whatever its state."""
        with suppress(EOFError, OSError):
            if self.blocked():
                os.kill(self.pid, signal.SIGTERM)
            else:
                self.nvim.command("qall!")
        _close_pipes(self.nvim)
        self.nvim.close()


@contextmanager
def child(
    home: Path,
    *,
    init: str = "",
    clean: bool = False,
    root: Path = ROOT,
    rplugin: bool = False,
    forked: bool = True,
    width: int = WIDTH,
    height: int = HEIGHT,
    env: dict[str, str] | None = None,
) -> Iterator[Child]:
    """A Neovim with Parley from `root`, and without the user's files; with `clean`, without Parley.

    Its working directory is `home`, which is not in a Git work tree, so Parley offers no workspace.
    With `rplugin`, it sources the manifest of remote plugins, as Neovim does without `--clean`. Its
    hosts are forked with their imports done (`tests/forks`), unless `forked` is false or `root` is
    another checkout. After a `ya`, it waits 30 ms instead of a second for the key that would make
    it a text object.
    """
    config = home / "init.lua"
    rtp = "" if clean else f"vim.opt.rtp:prepend({str(root)!r})\nvim.cmd('filetype plugin on')\n"
    forking = forked and root == ROOT and not (clean or rplugin)
    python = f"vim.g.parley_python = {forks().python!r}\n" if forking else ""
    config.write_text(f"{FASTER}{rtp}{python}{init}\n", encoding="utf-8")
    places = {
        f"XDG_{name}_HOME": str(home / name.lower())
        for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    names = "ANTHROPIC", "OPENAI", "GEMINI", "OPENROUTER"
    keys = dict.fromkeys((f"{name}_API_KEY" for name in names), "")
    start = f"cd {home}"
    arguments = [*([] if rplugin else ["--clean"]), "--cmd", start, "-u", str(config)]
    used = {
        **places,
        **keys,
        "HOME": str(home),
        "PARLEY_DEMO_PACE": "0",
        "PARLEY_LEAST_SEEN_S": "0",
        **(env or {}),
    }
    one = Child(home, arguments, width, height, used)
    try:
        yield one
    finally:
        one.close()
