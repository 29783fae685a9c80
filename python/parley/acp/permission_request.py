"""A permission request of an agent, and its answers: only ever for this one call.

Finds an option by its kind, because ids differ between agents, and may mislead. Pure, except for
the future that the agent's request waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from parley.chat.transcript import ToolCall
from parley.frozen import frozen

CANCELLED = {"outcome": {"outcome": "cancelled"}}


@frozen
class PermissionRequest:
    """The call that an agent asks about, the options that it offers, and the future of the answer."""

    call: ToolCall
    options: Sequence[Any]
    answer: asyncio.Future[Any]

    def approve(self) -> bool:
        """Allow this call once; False if the agent does not offer that, so that the call is
        cancelled."""
        return self._select("allow_once")

    def reject(self, why: str = "") -> None:
        """Reject this call once; cancel it if the agent does not offer that. The protocol has no
        place for the reason."""
        self._select("reject_once")

    def cancel(self) -> None:
        """Withdraw the call."""
        if not self.answer.done():
            self.answer.set_result(CANCELLED)

    def _select(self, kind: str) -> bool:
        option = next((each for each in self.options if _is_of(each, kind)), None)
        if option is not None and self._is_ambiguous(option):
            option = None
        if option is None or self.answer.done():
            self.cancel()
            return False
        chosen = {"outcome": "selected", "optionId": option["optionId"]}
        self.answer.set_result({"outcome": chosen})
        return True

    def _is_ambiguous(self, option: Any) -> bool:
        """Whether the agent could take this option for one of another kind, with the same id."""
        same = [each for each in self.options if _id_of(each) == option["optionId"]]
        return any(each.get("kind") != option["kind"] for each in same)


def _id_of(option: Any) -> object:
    return option.get("optionId") if isinstance(option, dict) else None


def _is_of(option: Any, kind: str) -> bool:
    match option:
        case {"kind": str(found), "optionId": str()}:
            return found == kind
    return False
