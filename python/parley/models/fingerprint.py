"""A request's fingerprint: digests of its settings, and of each part of the chat that is sent.

It contains no text from the chat. A fingerprint is computed from a sent request, to be recorded,
and from the file, for comparison. It does not depend on the wire format.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from parley.chat.front_matter import read_front_matter
from parley.chat.grammar import SUMMARY
from parley.chat.history import (
    GO_ON,
    NO_QUESTION,
    OMITTED,
    CallOutcome,
    ModelTurn,
    ProviderCall,
    Turn,
    UserTurn,
)
from parley.chat.rounds import Round
from parley.chat.transcript import Attachment, Proposal, Text, Thinking, ToolCall, Transcript
from parley.frozen import frozen
from parley.instructions.project import instruction_block
from parley.models.memory import memory
from parley.models.request import Request, goes_back
from parley.tools.catalogue import Catalogue, canonical

QUESTION, PICTURE, TEXT, SUMMED_UP, THINKING, CALL, ARGUMENTS, RESULT, STAND_IN = "qptskcgro"
"""The kinds of units; a unit starts with the letter of its kind."""

Units: TypeAlias = tuple[str, ...]
Source: TypeAlias = UserTurn | Text | Thinking | ProviderCall | CallOutcome | Attachment
GoesBack: TypeAlias = Callable[[Thinking, ModelTurn], bool]

REBUILT_FROM = ("provider", "model", "full", "thinks", "space")
"""The header keys that are needed to rebuild units."""

_STAND_INS = frozenset({OMITTED, NO_QUESTION, GO_ON})
_DIGEST_BYTES = 10
_OF_NO_REQUEST = frozenset({"topic", "tags", "forked_from"})
"""Front matter keys that do not affect a request."""


@frozen
class Fingerprint:
    """A request in digests: `header` covers everything outside the conversation; `units` are the
    conversation's parts in order.

    A unit is a letter for its kind, followed by a digest.
    """

    header: Mapping[str, Any]
    units: Units

    @property
    def digest(self) -> str:
        """The whole fingerprint's digest."""
        return request_digest(canonical(self.header), self.units)


def request_digest(header: str, units: Units) -> str:
    """A request's digest, computed from its header as canonical JSON and its units."""
    return hashlib.sha256("\n".join([header, *units]).encode()).hexdigest()


def fingerprint(request: Request, guidance: str) -> Fingerprint:
    """The fingerprint of a request whose system prompt ends with the tools' guidance."""
    units = tuple(units_of(request.turns(), request.goes_back))
    return Fingerprint(header(request, guidance), units)


def header(request: Request, guidance: str) -> dict[str, Any]:
    """A request's settings: the names as they are, all other values as digests.

    `space` is None unless parts of the chat were left out; only then does it affect the request.
    """
    answers = request.transcript.exchanges[request.at].answers
    system = request.system.removesuffix(guidance).rstrip("\n")
    own = system.removesuffix(instruction_block(request.instructions))
    return {
        "agent": (answers[-1].agent if answers else None) or "",
        "provider": request.provider,
        "model": request.model,
        "system": digest(own.rstrip("\n")),
        **({"instructions": instructions(request)} if own != system else {}),
        "front": front_matter(request.transcript),
        "parameters": digest(*_parameters(request)),
        "tools": tools(request.catalogue) if request.offers_tools else {},
        "servers": servers(request.catalogue) if request.offers_tools else {},
        "missing": list(request.catalogue.missing),
        "full": request.max_full_exchanges,
        "thinks": request.keep_thinking,
        "space": None if request.memory().is_whole else request.space,
    }


def instructions(request: Request) -> dict[str, str]:
    """The digests of the project's instructions, by their names."""
    return {each.name: digest(each.text) for each in request.instructions}


def _parameters(request: Request) -> Iterator[object]:
    """The settings that are parameters of the model."""
    yield from (request.temperature, request.max_tokens, request.thinking)
    yield request.text_tools.mode if request.text_tools else ""
    if request.parameters:
        yield canonical(request.parameters)


def front_matter(transcript: Transcript) -> dict[str, str]:
    """The front matter's values that affect requests, by key."""
    keys = read_front_matter(transcript.front_matter).keys
    return {key: digest(value) for key, value in sorted(keys.items()) if key not in _OF_NO_REQUEST}


def tools(catalogue: Catalogue) -> dict[str, str]:
    """The digests of the tools on offer, by their names on the wire."""
    return {wire: tool.digest[: 2 * _DIGEST_BYTES] for wire, tool in catalogue.tools}


def servers(catalogue: Catalogue) -> dict[str, list[str]]:
    """The wire names of each server's tools; a name alone does not identify the server."""
    names = dict[str, list[str]]()
    for wire, tool in catalogue.tools:
        names.setdefault(tool.server, []).append(wire)
    return names


def rebuilt(transcript: Transcript, settings: Mapping[str, Any]) -> Units:
    """Rebuild the units of a request for a transcript's last answer, with a header's settings."""
    model = settings["provider"], settings["model"]
    space = sys.maxsize if settings["space"] is None else settings["space"]

    def is_sent(part: Thinking, reply: ModelTurn) -> bool:
        return bool(settings["thinks"]) and goes_back(part, reply, model)

    turns = memory(transcript.exchanges, settings["full"], space, is_sent).turns
    return tuple(units_of(turns, is_sent))


def units_of(turns: Iterable[Turn], is_sent: GoesBack) -> Iterator[str]:
    """The turns' units; `is_sent` decides which thinking is sent."""
    for turn in turns:
        if isinstance(turn, ModelTurn) and turn.open:
            yield from (unit for unit, _ in sources(turn, is_sent))
            continue
        if "units" not in turn.derived:
            turn.derived["units"] = tuple(unit for unit, _ in sources(turn, is_sent))
        yield from turn.derived["units"]


def sources(turn: Turn, is_sent: GoesBack) -> Iterator[tuple[str, Source]]:
    """A turn's units, each with its source."""
    if isinstance(turn, UserTurn):
        words = (
            [part for part in turn.parts if isinstance(part, str)] if turn.parts else [turn.text]
        )
        yield (STAND_IN if turn.text in _STAND_INS else QUESTION) + digest(*words), turn
        yield from (
            (PICTURE + digest(part.path), part)
            for part in turn.parts
            if isinstance(part, Attachment)
        )
        return
    for part in turn.parts:
        if isinstance(part, Text):
            yield from ((unit, part) for unit in _text_units(part.text))
        elif isinstance(part, ProviderCall):
            yield from ((unit, part) for unit in _provider_units(part))
        elif is_sent(part, turn):
            yield _thinking_unit(part), part
    for outcome in turn.calls:
        yield from ((unit, outcome) for unit in _call_units(outcome.call, outcome.id))
        paths = [part.path for part in outcome.parts if isinstance(part, Attachment)]
        whole = outcome.whole.path if outcome.whole else ""
        yield RESULT + digest(outcome.status, outcome.content, paths, whole), outcome


def reply_sources(reply: Round) -> Iterator[tuple[str, Text | Thinking | Proposal]]:
    """A model's reply as units, without its calls' results, each with its source."""
    for segment in reply.segments:
        if isinstance(segment, Text):
            yield from ((unit, segment) for unit in _text_units(segment.text))
        elif isinstance(segment, Thinking):
            yield _thinking_unit(segment), segment
        elif isinstance(segment, Proposal):
            yield from ((unit, segment) for unit in _call_units(segment.call, segment.call.id))


def reply_units(reply: Round) -> Units:
    """A model's reply as units."""
    return tuple(unit for unit, _ in reply_sources(reply))


def _text_units(text: str) -> Iterator[str]:
    """One unit for the text without its summary, which may be written later, and one for each
    summary line."""
    lines = text.split("\n")
    prose = "\n".join(line for line in lines if not line.startswith(SUMMARY)).strip()
    if prose:
        yield TEXT + digest(prose)
    yield from (SUMMED_UP + digest(line.rstrip()) for line in lines if line.startswith(SUMMARY))


def _thinking_unit(part: Thinking) -> str:
    return THINKING + digest(part.text, part.signature, part.redacted)


def _provider_units(part: ProviderCall) -> Iterator[str]:
    """The units of a call that a provider ran. They count for all providers, because the file does
    not say which of them ran it. The result's text is for people, and is not sent.
    """
    yield from _call_units(part.call, part.call.id)
    if part.raw:
        yield RESULT + digest(part.status, part.raw.path)


def _call_units(call: ToolCall, call_id: str) -> Iterator[str]:
    yield CALL + digest(call_id, call.name)
    yield ARGUMENTS + digest(call.arguments, call.extra)


def digest(*values: object) -> str:
    """The digest of these values."""
    text = "\0".join(value if isinstance(value, str) else repr(value) for value in values)
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES
    ).hexdigest()
