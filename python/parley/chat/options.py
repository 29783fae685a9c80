"""Settings shared by settings files, agents and chat files: thinking, tool mode, call limits.

Contains only the values and the bounds that apply everywhere.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from parley.errors import SettingsError
from parley.frozen import frozen
from parley.tables import rule

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
ToolMode: TypeAlias = Literal["auto", "native", "json", "xml", "off"]


@frozen
class ThinkingSettings:
    """Thinking settings; None keeps the model's default.

    If `show` is false, the thinking's text is not requested, and only data that must be sent back
    is written.
    """

    enabled: bool = field(default=True, metadata=rule(is_short=True))
    budget_tokens: int | None = field(default=None, metadata=rule(least=1024))
    effort: Effort | None = None
    show: bool = True


@frozen
class CallLimits:
    """`max_tool_calls`: per message (one exchange), the short form, or per session (the file)."""

    per_message: int | None = field(default=None, metadata=rule(is_short=True))
    per_session: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("per_message", self.per_message), ("per_session", self.per_session)):
            if not (limit is None or (type(limit) is int and limit >= 0)):
                raise SettingsError(
                    f"max_tool_calls.{name}: expected an integer ≥ 0, got {limit!r}"
                )
