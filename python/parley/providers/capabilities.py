"""Remembers capabilities of providers' models, learnt from replies and refusals while the process
runs.

Knows how a refusal or a reply changes later requests; never sends requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from parley.errors import ModelError
from parley.models.events import Aside, Event, Finished, RateLimits
from parley.models.formats import Format
from parley.models.refusals import Amendment, amended
from parley.models.request import Request
from parley.models.thinking import unsupported_thinking
from parley.tools.catalogue import Tool


class Capabilities:
    """Known capabilities, by provider and model."""

    def __init__(self) -> None:
        self._apis: dict[tuple[str, str], str] = {}
        self._windows: dict[tuple[str, str], int] = {}
        self._blind = set[tuple[str, str]]()
        self._refused = dict[tuple[str, str], frozenset[str]]()
        """The paths of refused pictures."""
        self._refused_tools = dict[tuple[str, str], frozenset[Tool]]()
        self._notices = set[tuple[str, str]]()

    def settled(self, request: Request) -> Request:
        """The request in the form that the provider is known to accept for this model."""
        known = request.provider, request.model
        wishes: dict[str, Any] = {
            "api": self._apis.get(known, request.api),
            "window": self._windows.get(known, request.window),
            "is_blind": known in self._blind,
            "refused": self._refused.get(known, request.refused),
        }
        is_settled = all(getattr(request, name) == wish for name, wish in wishes.items())
        settled = request if is_settled else replace(request, **wishes)
        return settled.without(self._refused_tools.get(known, frozenset()))

    def news(self, request: Request, wire_format: Format) -> Iterator[Aside]:
        """Notices for the user before a request in this format; each is shown once."""
        yield from self._once(unsupported_thinking(request.model, request.thinking))
        for notice in () if request.is_blind else request.unseen():
            yield from self._once(notice)
        if notice := wire_format.notice(request):
            question = request.transcript.exchanges[request.at].question
            yield from self._once(notice, f"{request.at} {question.text if question else ''}")

    def _once(self, notice: str, about: str = "") -> Iterator[Aside]:
        if notice and (notice, about) not in self._notices:
            self._notices.add((notice, about))
            yield Aside(notice)

    def amended(self, request: Request, api: str, refusal: ModelError) -> Amendment | None:
        """How to repeat a refused request; None if unknown. `api` is "" if the user chose it."""
        return amended(request, api, refusal.status, refusal.words)

    def heed(self, event: Event, request: Request) -> None:
        """For later requests, use the form of a request that has received a reply; make later
        requests smaller if the reply filled the context window.
        """
        if isinstance(event, RateLimits):
            return
        is_full = isinstance(event, Finished) and event.reason == "context"
        sent = (request.narrowed() if is_full else None) or request
        known = sent.provider, sent.model
        if sent.api:
            self._apis[known] = sent.api
        if sent.window:
            self._windows[known] = min(sent.window, self._windows.get(known, sent.window))
        if sent.is_blind:
            self._blind.add(known)
        self._refused[known] = sent.refused
        if sent.refused_tools:
            self._refused_tools[known] = (
                self._refused_tools.get(known, frozenset()) | sent.refused_tools
            )
