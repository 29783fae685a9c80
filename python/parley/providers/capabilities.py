"""What providers were found to want of requests to their models: kept for the life of the process.

Knows how a refusal or a reply changes the requests to come; sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from parley.errors import ModelError
from parley.models import anthropic
from parley.models.events import Aside, Event, Finished
from parley.models.refusals import Amended, amended
from parley.models.request import Api, Ask
from parley.models.thinking import unsupported_thinking


class Learned:
    """What is known by now, by provider and model."""

    def __init__(self) -> None:
        self._apis: dict[tuple[str, str], Api] = {}
        self._windows: dict[tuple[str, str], int] = {}
        self._told = set[tuple[str, str]]()

    def settled(self, ask: Ask) -> Ask:
        """The request as its provider was found to want it for this model."""
        known = ask.provider, ask.model
        return replace(ask, api=self._apis.get(known, ask.api), window=self._windows.get(known, ask.window))

    def news(self, ask: Ask, api: str) -> Iterator[Aside]:
        """What the user is to know before a request in this format, each thing once."""
        yield from self._once(unsupported_thinking(ask.model, ask.thinking))
        if api == "anthropic":
            question = ask.transcript.exchanges[ask.at].question
            yield from self._once(
                anthropic.thinking_paused(ask), f"{ask.at} {question.text if question else ''}"
            )

    def _once(self, told: str, about: str = "") -> Iterator[Aside]:
        if told and (told, about) not in self._told:
            self._told.add((told, about))
            yield Aside(told)

    def amended(self, ask: Ask, api: str, refusal: ModelError) -> Amended | None:
        """How a refused request is to be asked, None where that is not known. A chosen `api` is ""."""
        other = amended(ask, api, refusal.status, refusal.said)
        if other:
            self._keep(other.ask)
        return other

    def heed(self, event: Event, ask: Ask) -> None:
        """The next request is to be smaller than one that left no room for its reply."""
        if event == Finished("context") and (narrow := ask.narrowed()):
            self._keep(narrow)

    def _keep(self, ask: Ask) -> None:
        if ask.api:
            self._apis[ask.provider, ask.model] = ask.api
        if ask.window:
            self._windows[ask.provider, ask.model] = ask.window
