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
from parley.models.searches import WEB_SEARCH, cannot_search, is_web_search
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
        self._refused_fields = dict[tuple[str, str], frozenset[str]]()
        self._notices = set[tuple[str, str]]()

    def settled(self, request: Request) -> Request:
        """The request in the form that the provider is known to accept for this model."""
        known = request.provider, request.model
        wishes: dict[str, Any] = {
            "api": self._apis.get(known, request.api),
            "window": self._windows.get(known, request.window),
            "is_blind": known in self._blind,
            "refused": self._refused.get(known, request.refused),
            "refused_fields": (fields := self._refused_fields.get(known, request.refused_fields)),
            "web_search": request.web_search and WEB_SEARCH not in fields,
        }
        is_settled = all(getattr(request, name) == wish for name, wish in wishes.items())
        settled = request if is_settled else replace(request, **wishes)
        return settled.without(self._refused_tools.get(known, frozenset()))

    def news(self, request: Request, wire_format: Format) -> Iterator[Aside]:
        """Notices for the user before a request in this format; each is shown once."""
        yield from self._once(unsupported_thinking(request.model, request.thinking, request.facts))
        yield from self._once(_unsupported_temperature(request, wire_format))
        yield from self._once(_no_search(request, wire_format))
        for name in wire_format.ignored(request):
            words = f"the parameter {name} is ignored: Parley sets it itself"
            yield from self._once(words, request.provider)
        for notice in () if request.is_blind else request.unseen():
            yield from self._once(notice)
        if notice := wire_format.notice(request):
            question = request.transcript.exchanges[request.at].question
            yield from self._once(notice, f"{request.at} {question.text if question else ''}")

    def _once(self, notice: str, about: str = "") -> Iterator[Aside]:
        if notice and (notice, about) not in self._notices:
            self._notices.add((notice, about))
            yield Aside(notice)

    def amended(
        self, request: Request, wire_format: Format, refusal: ModelError, *, is_chosen: bool
    ) -> Amendment | None:
        """How to repeat a request that was refused in this format; None if unknown. The format may
        change unless it `is_chosen` by the user.
        """
        api = "" if is_chosen else wire_format.name
        return amended(request, api, refusal.status, refusal.words, wire_format.refused_field)

    def learn(self, event: Event, request: Request) -> None:
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
        self._refused_fields[known] = sent.refused_fields
        if sent.refused_tools:
            self._refused_tools[known] = (
                self._refused_tools.get(known, frozenset()) | sent.refused_tools
            )


def _no_search(request: Request, wire_format: Format) -> str:
    """The notice that the provider cannot search and that no tool can, or ""."""
    has_text_tools = request.text_tools is not None and request.text_tools.syntax is not None
    is_unable = request.facts.searches is False or has_text_tools
    is_wanted = request.web_search and request.tools_on and (is_unable or not wire_format.searches)
    has_tool = any(is_web_search(tool) for _, tool in request.catalogue.tools)
    name = request.model if is_unable else request.provider
    return cannot_search(name) if is_wanted and not has_tool else ""


def _unsupported_temperature(request: Request, wire_format: Format) -> str:
    """The notice that the setting is ignored, or "". Retries of failed calls set it, too."""
    is_retry = request.text_tools is not None and bool(request.text_tools.errors)
    if request.temperature is None or is_retry or wire_format.takes_temperature(request.model):
        return ""
    return f"{request.model} accepts no temperature, so the setting `temperature` is ignored"
