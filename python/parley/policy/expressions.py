"""The regular expressions of the settings, held against strangers' text: always answered, in bounded time.

Python's `re` may take forever for an expression such as `(a|a)+b`, and cannot be told to stop.
"""

from __future__ import annotations

LIMIT_S = 0.2
"""The time that one match may take. https://pypi.org/project/regex/ (2026-11-22): "The matching methods and
functions support timeouts. The timeout (in seconds) applies to the entire operation"."""


def fits(expression: str, text: str, *, otherwise: bool, over_lines: bool = False) -> bool:
    """Whether an expression matches a whole text; `otherwise` where it is broken or takes too long.

    `over_lines`: a dot stands for the end of a line, too.
    """
    import regex  # nobody without such settings pays for it

    try:
        return (
            regex.fullmatch(expression, text, regex.DOTALL if over_lines else 0, timeout=LIMIT_S) is not None
        )
    except (regex.error, TimeoutError):
        return otherwise


def is_in(expression: str, text: str, *, otherwise: bool) -> bool:
    """Whether an expression matches some of a text, in letters of any case."""
    import regex

    try:
        return regex.search(expression, text, regex.IGNORECASE, timeout=LIMIT_S) is not None
    except (regex.error, TimeoutError):
        return otherwise
