"""Everything a request depends on, as one value; the adapters make a request body of it and of nothing else.

Knows which tools are offered with which history. Knows no wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.chat.history import Reply, Turn, history
from parley.chat.transcript import Thinking, Transcript
from parley.models.outgoing import wire_name
from parley.tools.catalogue import Catalogue, Tool

GONE = "This tool was called earlier; it cannot be called now."


@dataclass(frozen=True, slots=True)
class ThinkingSettings:
    """What the user set about thinking; None leaves it to the model's defaults. `show` asks for its text."""

    enabled: bool = True
    budget_tokens: int | None = None
    effort: str | None = None
    show: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to be: exchange `at` of the transcript, asked of a provider's model.

    `tools_on` False forbids calls, and leaves the tools out only when the history holds none.
    `keep_thinking` False sends no thinking back, for when the provider refused a signature.
    `official` says that the host is the provider's own, not a compatible one.
    """

    transcript: Transcript
    at: int
    provider: str
    model: str
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: ThinkingSettings = field(default_factory=ThinkingSettings)
    catalogue: Catalogue = field(default_factory=Catalogue)
    tools_on: bool = True
    max_full_exchanges: int | None = None
    keep_thinking: bool = True
    official: bool = True

    def turns(self) -> tuple[Turn, ...]:
        """What is sent of the transcript."""
        return history(self.transcript, self.at, max_full_exchanges=self.max_full_exchanges)

    def goes_back(self, part: Thinking, reply: Reply) -> bool:
        """Whether thinking is sent: only signed, in the open loop, and to the model that made it."""
        is_own = (part.provider, part.model) == (self.provider, self.model)
        return reply.open and self.keep_thinking and is_own and bool(part.signature)


def tool_fields(
    ask: Ask, turns: Sequence[Turn], shape: Callable[[str, Tool], dict[str, Any]], none: object
) -> dict[str, Any]:
    """The fields `tools`, each in the format's `shape`, and where calls are forbidden `tool_choice` none.

    Providers refuse a history with calls and no tools, so where the catalogue has become empty the tools
    that were called are named, and forbidden.
    """
    called = {wire_name(each.call.name) for turn in turns if isinstance(turn, Reply) for each in turn.calls}
    if not called and not ask.tools_on:
        return {}
    tools = ask.catalogue.tools or tuple((name, Tool("", name, description=GONE)) for name in sorted(called))
    may_call = ask.tools_on and ask.catalogue.tools
    offered = {"tools": [shape(name, tool) for name, tool in tools]} if tools else {}
    return offered if may_call or not tools else offered | {"tool_choice": none}
