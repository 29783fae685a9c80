"""Asks the model for the `📝:` lines that are missing in older answers, and writes each line
immediately.

The rest of the document stays unchanged. After a stop or a failure, the lines written so far
remain.
"""

from __future__ import annotations

from dataclasses import replace

from parley.chat.transcript import Exchange, Question, Text, Transcript
from parley.engine.ports import End, Ports, Resolve
from parley.errors import ModelError
from parley.iterators import closing
from parley.models.events import Finished, RateLimits, TextDelta, Usage, Withdrawn
from parley.models.request import Request
from parley.policy import status_texts
from parley.policy.summaries import put_summary, summary_line, summary_prompt, unsummed
from parley.tools.agent_calls import is_of_agent
from parley.tools.catalogue import Catalogue


async def sum_up(ports: Ports, resolve: Resolve, keep: int) -> End:
    """Summarize the exchanges without a summary, except the last `keep` exchanges.

    Raises BusyError if another process works in this chat, and GoneError if the document was
    removed.
    """
    try:
        with ports.ledger.lease():
            return await _sum_up(ports, resolve, keep)
    finally:
        ports.observer.status("")


async def _sum_up(ports: Ports, resolve: Resolve, keep: int) -> End:
    transcript, lines = (await ports.document.read()).transcript, 0
    exchanges = unsummed(transcript, keep)
    if not exchanges:
        but = f" but the last {keep}" if keep else ""
        return End("answered", f"nothing to summarize: all complete answers{but} have a 📝: line")
    settings = resolve(transcript)
    tools = settings.tools(Catalogue()).tools if settings.tools else ()
    if any(is_of_agent(tool) for _, tool in tools):
        return End("answered", "nothing to summarize: this agent keeps its own history")
    request = settings.request
    for number, exchange in enumerate(exchanges, 1):
        ports.observer.status(status_texts.summing_up(number, len(exchanges)))
        try:
            summary = summary_line(await _reply(ports, _request(request, exchange)))
        except ModelError as error:
            return End("interrupted", f"{_count(lines, len(exchanges))}: {error}")
        if summary:
            await ports.document.change(
                lambda s: put_summary(s.lines, s.transcript, exchange, summary)  # noqa: B023  awaited
            )
            lines += 1
    return End("answered", _count(lines, len(exchanges)))


def _count(lines: int, count: int) -> str:
    return f"{lines} of {count} older exchanges {'is' if lines == 1 else 'are'} summarized"


def _request(request: Request, exchange: Exchange) -> Request:
    """The separate request for an exchange's summary."""
    return replace(
        request,
        transcript=Transcript((Exchange(Question((Text(summary_prompt(exchange)),))),)),
        at=0,
        system="",
        thinking=replace(request.thinking, enabled=False),
        catalogue=Catalogue(),
        tools_on=False,
        text_tools=None,
    )


async def _reply(ports: Ports, request: Request) -> str:
    """The reply's text; "" if the reply is incomplete."""
    pieces = list[str]()
    async with closing(ports.model.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    pieces.append(text)
                case Withdrawn():
                    pieces.clear()
                case Finished(reason) if reason != "complete":
                    pieces.clear()
                case Usage() | RateLimits():
                    ports.observer.on_event(event)
                case _:
                    pass
    return "".join(pieces)
