"""Regular expressions that are compiled when they are first used.

Compiling all of Parley's takes a tenth of its start, and a run uses a quarter of them.
"""

from __future__ import annotations

import re
from typing import Any, cast


def late_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """The same as `re.compile`, except that an invalid expression raises at its first use.

    Functions of `re` do not accept it: use its methods.
    """
    return cast("re.Pattern[str]", _LatePattern(source, flags))


class _LatePattern:
    """Has the compiled expression's attributes; each is fetched once."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value
