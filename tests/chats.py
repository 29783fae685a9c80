"""Small test chats: calls, replies, tools and decisions, one line each."""

from __future__ import annotations

from typing import Any

from parley.chat.reader import parse
from parley.chat.transcript import (
    Answer,
    Choice,
    Exchange,
    Proposal,
    Question,
    Result,
    Segment,
    Text,
    ToolCall,
    Transcript,
)
from parley.chat.writer import render
from parley.policy.approval import CallKey, Entry, LedgerView, Rule, State, written_key
from parley.policy.plan import Situation, Step, next_step
from parley.tools.catalogue import Catalogue, Tool
from tests.defaults import limits_with

QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def tool(name: str = "web_search", server: str = "demo", **more: Any) -> Tool:
    return Tool(server, name, **({"input_schema": QUERY, "description": "Search."} | more))


SEARCH = tool()
READ = tool("read_file", input_schema={"type": "object"})
TOOLS = Catalogue.of([SEARCH, READ])


def call(
    number: int = 1,
    name: str = "web_search",
    arguments: str = '{"query":"x"}',
    index: int | None = None,
) -> ToolCall:
    return ToolCall(f"call_{number}", name, arguments, number - 1 if index is None else index)


def asked(
    number: int = 1,
    choice: Choice | None = None,
    result: Result | None = None,
    name: str = "web_search",
    arguments: str = '{"query":"x"}',
) -> Proposal:
    return Proposal(call(number, name, arguments), choice, result)


OK, FAILED, REFUSED = Result("ok", "fine"), Result("error", "it broke"), Result("refused", "no")


def ran(number: int = 1, result: Result = OK, **more: Any) -> Proposal:
    return asked(number, "ya", result, **more)


def answer(*segments: Segment) -> Answer:
    return Answer("Demo", segments)


def chat(*answers: Answer) -> Transcript:
    """A chat with one exchange per answer, read from its file."""
    return parse(
        render(Transcript(tuple(Exchange(Question((Text("q"),)), (each,)) for each in answers)))
    )


def key(proposal: Proposal, of: Tool = SEARCH) -> CallKey:
    made = proposal.call
    return CallKey(made.id, of.server, of.name, made.arguments, of.digest)


def yes(
    proposal: Proposal,
    of: Tool = SEARCH,
    choice: Choice = "ya",
    rule: Rule = "key",
    state: State = "live",
) -> Entry:
    return Entry(key(proposal, of), choice, rule, state)


def view(*entries: Entry, wrote: tuple[Proposal, ...] = ()) -> LedgerView:
    return LedgerView(entries, tuple(map(written_key, wrote)))


STEP: dict[str, Any] = {"view": LedgerView(), "limits": limits_with()}


def step(transcript: Transcript, catalogue: Catalogue = TOOLS, **more: Any) -> Step:
    """The next step for the last exchange."""
    return next_step(
        Situation(transcript, len(transcript.exchanges) - 1, catalogue, **(STEP | more))
    )
