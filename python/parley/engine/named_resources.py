"""Collects the resources that a chat's results mention, for each server that returned such a
result. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parley.chat.transcript import Exchange, Transcript
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.resources import links_in, reader


def readers(catalogue: Catalogue, transcript: Transcript) -> list[Tool]:
    """The tools that read resources: one for each server whose results mentioned resources."""
    named = {tool.server: tool for tool, _ in _links(catalogue, transcript)}
    return [reader(tool) for tool in named.values()]


def resources_of(server: str, catalogue: Catalogue, transcript: Transcript) -> list[str]:
    """The URIs that a server's results mentioned, in order, without duplicates."""
    links = [
        uri for tool, uris in _links(catalogue, transcript) if tool.server == server for uri in uris
    ]
    return list(dict.fromkeys(links))


def _links(catalogue: Catalogue, transcript: Transcript) -> Iterator[tuple[Tool, Sequence[str]]]:
    """The tools whose results mention resources, with the URIs; results from Parley's own tools do
    not count.
    """
    for exchange in transcript.exchanges:
        for name, uris in _links_of(exchange):
            tool = catalogue.get(name)
            if tool and not tool.is_own:
                yield tool, uris


def _links_of(exchange: Exchange) -> Sequence[tuple[str, Sequence[str]]]:
    if "links" not in exchange.derived:
        runs = [p for answer in exchange.answers for p in answer.proposals if p.has_run]
        exchange.derived["links"] = [
            (p.call.name, uris) for p in runs if p.result and (uris := links_in(p.result.body))
        ]
    links: Sequence[tuple[str, Sequence[str]]] = exchange.derived["links"]
    return links
