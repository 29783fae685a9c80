"""Shows a call's details, or the chat's next request, without sending anything.

A lookup may run at the same time as a turn.
"""

from __future__ import annotations

from parley import engine
from parley.chat.transcript import Proposal
from parley.nvim.chat import Chat
from parley.nvim.chat_ports import chat_ports
from parley.nvim.document import BufferDocument
from parley.nvim.editor import Editor
from parley.nvim.pages import request_page
from parley.policy.choice import RUN_BY_OTHERS, UNREADABLE, others_call
from parley.policy.status_texts import waiting_for
from parley.runtime.asyncio_ports import Callbacks


def show_details(chat: Chat, handle: int, row: int) -> None:
    """Show the whole call at a handle in this row."""
    buffer = chat.buffer

    async def work(document: BufferDocument) -> None:
        shot = await document.read()
        calls = (p for a in shot.exchange.answers for p in a.calls)
        call = next((p for p in calls if shot.anchor in _first_rows(p)), None)
        if call is None:
            buffer.editor.message(UNREADABLE, "warn")
        elif call.result is not None or call.ran_by:
            chat.screen.show_result(call)
        else:
            ports = chat_ports(buffer, chat.screen, document, _observer(buffer.editor))
            chat.screen.show_call(call, await engine.observe(ports, buffer.resolve))

    buffer.editor.spawn(buffer.at(handle, row, work))


def show_review(chat: Chat, handle: int, row: int) -> None:
    """Show the change by the call at a handle in this row as a diff that the user may edit."""
    buffer = chat.buffer

    async def work(document: BufferDocument) -> None:
        ports = chat_ports(buffer, chat.screen, document, _observer(buffer.editor))
        observation = await engine.observe(ports, buffer.resolve)
        anchor = observation.snapshot.anchor
        if others := others_call(observation.snapshot.exchange, anchor):
            buffer.editor.message(RUN_BY_OTHERS.format(others.ran_by), "warn")
            return
        calls = [c for c in observation.undecided() if c.span.start == anchor]
        call = calls[0] if calls else None
        if not (isinstance(call, Proposal) and chat.screen.review(call, observation)):
            buffer.editor.message("this call has no change that a diff can show", "warn")

    buffer.editor.spawn(buffer.at(handle, row, work))


def show_request(chat: Chat, handle: int, row: int) -> None:
    """Show the request that the exchange at a handle in this row would send."""
    buffer = chat.buffer

    async def work(document: BufferDocument) -> None:
        from parley.providers.client import wire_format

        ports = chat_ports(buffer, chat.screen, document, _observer(buffer.editor))
        observation = await engine.observe(ports, buffer.resolve_to_ask)
        request = await engine.with_pictures(ports, observation.next_request())
        provider = buffer.app.provider(request.provider)
        form = wire_format(provider, request)
        url = buffer.app.client.url(provider, form.path)
        offered = buffer.app.instructions(buffer.transcript, lambda: buffer.folder).offered
        lines = request_page(request, buffer.agent.name, url, form.body(request), offered)
        buffer.editor.tell("scratch", "request", lines, "jsonc")

    buffer.editor.spawn(buffer.at(handle, row, work))


def _observer(editor: Editor) -> engine.Observer:
    """The observer for a lookup; reports the servers that it waits for."""

    def on_event(what: engine.TurnEvent) -> None:
        match what:
            case engine.ServerWait([_, *_] as servers):
                editor.message(waiting_for(servers))
            case engine.Aside(text):
                editor.message(text)
            case _:
                pass

    return Callbacks(on_event=on_event)


def _first_rows(call: Proposal) -> tuple[int, ...]:
    """The first row of a call, and the first row of its result."""
    return (call.span.start, call.result.span.start) if call.result else (call.span.start,)
