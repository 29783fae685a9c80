"""The first line of a command's result, which says how the command ended. Pure.

The tool writes the line for the model; the screen reads it from the file.
"""

from __future__ import annotations

from parley.late_patterns import late_pattern

_TIME_LIMIT = "ended by the time limit of"
_FIRST_LINE = late_pattern(
    rf"\[(?:exit code (?P<code>-?\d+)|(?P<late>{_TIME_LIMIT}) \S+ s|did not end), "
    r"\d+\.\d s, (?:not )?sandboxed\]"
)


def command_head(
    exit_code: int | None, late_s: float | None, seconds: float, *, is_sandboxed: bool
) -> str:
    """The line; `late_s` is the time limit that ended the command, if it did."""
    if late_s is not None:
        end = f"{_TIME_LIMIT} {late_s:g} s"
    else:
        end = "did not end" if exit_code is None else f"exit code {exit_code}"
    return f"[{end}, {seconds:.1f} s, {'' if is_sandboxed else 'not '}sandboxed]"


def command_failure(text: str) -> str:
    """How a command failed, in two words; "" if it did not, or if this is another tool's result."""
    match = _FIRST_LINE.fullmatch(text.partition("\n")[0])
    if match is None or match["code"] == "0":
        return ""
    if match["late"]:
        return "time limit"
    return f"exit {match['code']}" if match["code"] else "no end"
