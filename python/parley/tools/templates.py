"""Resource templates: the typed part of a URI, and the variable to complete next. Pure.

Knows the expressions that servers use, `{name}`, `{+name}` and `{name*}` in RFC 6570; stops at any
other expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote

from parley.frozen import frozen
from parley.late_patterns import late_pattern

_EXPRESSION = late_pattern(r"(\{[^{}]*\})")
_VARIABLE = late_pattern(r"\{(?P<reserved>\+?)(?P<name>[A-Za-z0-9_.]+)(?P<rest>\*?)\}")
_RESERVED = ":/?#[]@!$&'()*+,;="
# "Reserved expansion [...] is identical to simple string expansion, except that the substituted
# values may also contain pct-encoded triplets and characters in the reserved set." (RFC 6570,
# 3.2.3, read 2026-11-23). FastMCP uses the asterisk for a value with slashes.


@frozen
class Blank:
    """The template variable that the user is typing, with its typed part."""

    template: str
    variable: str
    value: str
    others: Mapping[str, str]
    """The values of the earlier variables."""
    before: str
    after: str
    safe: str
    """Characters that are not percent-encoded in a value."""
    is_last: bool

    def uri(self, value: str) -> str:
        """The typed text with this value and the template's text up to the next variable."""
        return f"{self.before}{quote(value, safe=self.safe)}{self.after}"


def start_of(template: str) -> str:
    """The beginning that all of a template's URIs share."""
    return template.partition("{")[0]


def blank_of(template: str, text: str) -> Blank | None:
    """The template's variable to complete next in a text; None if there is none, or if the text
    does not match the template.
    """
    start, *parts = _EXPRESSION.split(template)
    if not text.startswith(start):
        return None
    rest, others = text[len(start) :], dict[str, str]()
    for number in range(0, len(parts), 2):
        match, after = _VARIABLE.fullmatch(parts[number]), parts[number + 1]
        if match is None:
            return None
        value, end, behind = rest.partition(after) if after else (rest, "", "")
        if not end:
            safe = _RESERVED if match["reserved"] else "/" if match["rest"] else ""
            before = text[: len(text) - len(rest)]
            is_last = number + 2 == len(parts)
            return Blank(
                template, match["name"], unquote(value), others, before, after, safe, is_last
            )
        others[match["name"]] = unquote(value)
        rest = behind
    return None
