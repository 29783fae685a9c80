"""The modes, models and commands that an agent of another program offers for a chat.

Knows the protocol's plain JSON, and the form in which an offer is stored as a hint. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from parley.frozen import frozen
from parley.models.agent_modes import option_values
from parley.text import one_line

_LONGEST = 100
_ABOUT_SHOWN = 100
_MOST = 100


@frozen
class OfferedWord:
    """A mode, a model or a command by the word that the user writes, with a description."""

    word: str
    about: str = ""


@frozen
class AgentOffer:
    """The words that an agent offers, in its order."""

    modes: tuple[OfferedWord, ...] = ()
    models: tuple[OfferedWord, ...] = ()
    commands: tuple[OfferedWord, ...] = ()

    def with_state(self, response: Any) -> Self:
        """This offer with the modes and models of a session's response or update, if it has any."""
        modes, models = (tuple(_words(_of_state(response, key))) for key in ("mode", "model"))
        return replace(self, modes=modes or self.modes, models=models or self.models)

    def with_commands(self, commands: Any) -> Self:
        """This offer with these commands instead."""
        known = (_command(each) for each in commands) if isinstance(commands, list) else ()
        return replace(self, commands=tuple(_words(known)))

    def hint(self) -> str:
        """The offer as JSON."""
        lists = self.modes, self.models, self.commands
        return json.dumps([[(each.word, each.about) for each in words] for words in lists])


def offer_of(hint: str | None) -> AgentOffer:
    """The offer in a hint; an empty one if there is no readable hint."""
    try:
        known = json.loads(hint or "null")
    except (ValueError, RecursionError):
        return AgentOffer()
    match known:
        case [[*modes], [*models], [*commands]]:
            return AgentOffer(*(tuple(_words(map(_pair, w))) for w in (modes, models, commands)))
    return AgentOffer()


def _of_state(response: Any, key: str) -> Iterator[tuple[Any, Any]]:
    """The ids and descriptions of the modes or models; options take precedence."""
    match response:
        case {"configOptions": [*options]}:
            for option in options:
                match option:
                    case {"category": str(category), "options": [*values]} if category == key:
                        yield from (_named(each, "value") for each in option_values(values))
                        return
    match response:
        case {"modes": {"availableModes": [*modes]}} if key == "mode":
            yield from (_named(each, "id") for each in modes)
        case {"models": {"availableModels": [*models]}} if key == "model":
            yield from (_named(each, "modelId") for each in models)


def _named(raw: Any, key: str) -> tuple[Any, Any]:
    if not isinstance(raw, Mapping):
        return None, None
    texts = [text for text in (raw.get("name"), raw.get("description")) if isinstance(text, str)]
    return raw.get(key), ": ".join(texts)


def _command(raw: Any) -> tuple[Any, Any]:
    match raw:
        case {"name": str(name)} if not any(map(str.isspace, name)):
            return name, raw.get("description")
    return None, None


def _pair(raw: Any) -> tuple[Any, Any]:
    return (raw[0], raw[1]) if isinstance(raw, list) and len(raw) == 2 else (None, None)


def _words(pairs: Iterable[tuple[Any, Any]]) -> Iterator[OfferedWord]:
    """The first words that can be shown and written."""
    known = set[str]()
    for word, about in pairs:
        if not isinstance(word, str) or not 0 < len(word) <= _LONGEST or one_line(word) != word:
            continue
        if word not in known and len(known) < _MOST:
            known.add(word)
            yield OfferedWord(word, one_line(about, _ABOUT_SHOWN) if isinstance(about, str) else "")
