"""Matches the settings' regular expressions against untrusted text, always in limited time.

With an expression such as `(a|a)+b`, Python's `re` may run forever, and cannot be interrupted.
"""

from __future__ import annotations

LIMIT_S = 0.2
"""The time limit for one match. https://pypi.org/project/regex/ (2026-11-22): "The matching methods
and functions support timeouts. The timeout (in seconds) applies to the entire operation".
"""


def fits(expression: str, text: str, *, otherwise: bool, over_lines: bool = False) -> bool:
    """Whether an expression matches a whole text; `otherwise` if the expression is broken or takes
    too long.

    With `over_lines`, a dot also matches a line break.
    """
    import regex  # here, because few settings need it

    try:
        return (
            regex.fullmatch(expression, text, regex.DOTALL if over_lines else 0, timeout=LIMIT_S)
            is not None
        )
    except (regex.error, TimeoutError):
        return otherwise


def is_in(expression: str, text: str, *, otherwise: bool) -> bool:
    """Whether an expression matches part of a text, ignoring case."""
    import regex

    try:
        return regex.search(expression, text, regex.IGNORECASE, timeout=LIMIT_S) is not None
    except (regex.error, TimeoutError):
        return otherwise
