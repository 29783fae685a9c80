"""Observes a chat: reads the document, its settings, tools and decisions."""

from __future__ import annotations

from collections.abc import Iterable

from parley.chat.transcript import Exchange, Proposal
from parley.engine.observation import Observation
from parley.engine.own_tools import with_own_tools
from parley.engine.ports import Ports, PreviewSource, Resolve
from parley.policy.approval import unclaimed
from parley.policy.choice import open_calls, open_keys
from parley.policy.facts import Revoked
from parley.policy.previews import Previews
from parley.tools.catalogue import Catalogue


async def observe(ports: Ports, resolve: Resolve) -> Observation:
    """Read the current document, its settings, tools and decisions."""
    snapshot = await ports.document.read()
    settings = resolve(snapshot.transcript)
    catalogue = Catalogue()
    if settings.tools:
        names = [c.call.name for c in open_calls(snapshot.exchange) if isinstance(c, Proposal)]
        offered = await ports.tools.catalogue(settings.tools, names)
        catalogue = with_own_tools(
            settings.tools(offered),
            snapshot.transcript,
            settings.request.tool_room,
            settings.skills,
        )
    calls = open_keys(snapshot.transcript)
    view = ports.ledger.view(calls)
    if undone := unclaimed(snapshot.transcript, view):
        ports.ledger.record(Revoked(tuple(undone)))
        view = ports.ledger.view(calls)
    previews = await previews_of(ports.previews, [snapshot.exchange], catalogue)
    return Observation(snapshot, settings, catalogue, view, previews)


async def previews_of(
    source: PreviewSource, exchanges: Iterable[Exchange], catalogue: Catalogue
) -> Previews:
    """What the waiting calls in these exchanges would do to files."""
    waiting = [
        (call, tool)
        for exchange in exchanges
        for call in open_calls(exchange)
        if isinstance(call, Proposal) and (tool := catalogue.get(call.call.name))
    ]
    return await source.of(waiting) if waiting else {}
