"""The second example: a bug in a shopping cart, its fix and its tests.

The model knows this one bug. It takes the file's path from the search result.
"""

import re

from parley.late_patterns import late_pattern

BUG, FIXED = "sum(price for price, count in items)", "sum(price * count for price, count in items)"
SEARCH = "price"
"""The text that the model searches for."""
TESTS = "python3 -m unittest -q"
"""The command that runs the tests."""

_QUESTION = late_pattern(r"\bfix\b.*\bbug\b.*\bcart\b", re.IGNORECASE | re.DOTALL)
_HIT = late_pattern(rf"^(.+?):\d+:.*{re.escape(BUG)}", re.MULTILINE)


def is_asked(question: str) -> bool:
    """Whether a question asks for the fix."""
    return _QUESTION.search(question) is not None


def file_with_bug(matches: str) -> str:
    """The path of the file with the bug, from a search result; "" if there is none."""
    hit = _HIT.search(matches)
    return hit[1] if hit else ""


def has_passed(result: str) -> bool:
    """Whether the command's result says that the tests passed."""
    return "exit code 0" in result.split("\n", 1)[0]
