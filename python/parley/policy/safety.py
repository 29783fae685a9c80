"""Blocks tools by name, regardless of approvals.

A plain pattern blocks every tool with that whole word in its name: `rm` blocks `rm`, `rm_file`,
`rm:file` and `rmFile`, but neither `format` nor `confirm`. `*`, `?` and `[` make a pattern a glob,
and `/…/` make it a regular expression.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from parley.late_patterns import late_pattern
from parley.policy.expressions import is_in

_WORDS = late_pattern(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words(name: str) -> list[str]:
    """The lower-case words in a tool's name, split at all characters except letters and digits, and
    by camel case."""
    return [word.lower() for word in _WORDS.split(name) if word]


def blocked_by(name: str, patterns: Iterable[str]) -> str | None:
    """The first pattern that blocks a tool of this name; None if no pattern does."""
    return next((pattern for pattern in patterns if _blocks(pattern, name)), None)


def _blocks(pattern: str, name: str) -> bool:
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        return is_in(pattern[1:-1], name, otherwise=True)  # a broken expression blocks all tools
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(name.lower(), pattern.lower())
    pattern_words, name_words = words(pattern), words(name)
    return bool(pattern_words) and any(
        name_words[i : i + len(pattern_words)] == pattern_words for i in range(len(name_words))
    )
