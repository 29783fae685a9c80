"""The exit codes, in one table for the help; doc/shell.md repeats it word for word."""

from __future__ import annotations

COMPLETE, FAILED, USAGE, WAITING, STOPPED, MISSING, CTRL_C = 0, 1, 2, 3, 4, 5, 130

EXITS = {
    COMPLETE: ("complete", "success; for `respond`: the answer is complete"),
    FAILED: (
        "failed",
        (
            "an error, including one in a checked file; an edit to a verified file; output "
            "that cannot be "
            "written"
        ),
    ),
    USAGE: ("wrong_arguments", "invalid arguments"),
    WAITING: (
        "waiting",
        "`ask`, `respond`, `compare`: calls are waiting for a choice; continue with `respond`",
    ),
    STOPPED: ("stopped", "`ask`, `respond`, `compare`, `compact`: stopped by a limit"),
    MISSING: (
        "missing",
        (
            "an MCP server failed or was not ready in time; `respond` sent no question; `verify`: no"
            " record"
        ),
    ),
    CTRL_C: ("ended", "Ctrl-C or another signal that ends programs"),
}
"""The name of each exit code in JSON, and its meaning."""

_WORST = (COMPLETE, WAITING, STOPPED, MISSING, FAILED, USAGE, CTRL_C)
"""The exit codes, from best to worst."""


def worst(*codes: int) -> int:
    """The worst of several exit codes: the command's exit code."""
    return max(codes, key=_WORST.index)


def exit_codes() -> str:
    """The table, formatted for a terminal."""
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(min(get_terminal_size().columns - 1, 79), 20)
    rows = (
        fill(
            meaning.replace("`", ""),
            width,
            initial_indent=f"  {code:<4} ",
            subsequent_indent=" " * 7,
        )
        for code, (_, meaning) in EXITS.items()
    )
    return "\n".join(["exit codes:", *rows, ""])


def kind_of(code: int) -> str:
    """The name of an exit code in JSON."""
    return EXITS[code][0]
