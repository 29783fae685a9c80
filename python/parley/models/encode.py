"""Encodes the parts that differ between requests and files: calls' ids, names and arguments, and
some characters.

Equal files give equal requests. Knows no wire format.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any

from parley.chat.grammar import fit
from parley.chat.history import CallOutcome, ModelTurn, Turn
from parley.chat.transcript import Attachment
from parley.late_patterns import late_pattern
from parley.tools.long_results import READ_RESULT
from parley.tools.names import fold
from parley.tools.schema import decode_arguments

NAME_LENGTH = 64
# No documentation states these limits, but refusals do, read 2026-11-22:
# "messages.1.content.1.tool_use.id: String
# should match pattern '^[a-zA-Z0-9_-]+$'" (Anthropic, github.com/RooCodeInc/Roo-Code/pull/10649),
# "Invalid 'input[95].call_id': string too long. Expected a string with maximum length 64" (OpenAI,
# github.com/AnswerDotAI/fastllm/issues/45).
STRICT_ID = late_pattern(r"[A-Za-z0-9_-]{1,64}")
"""The ids that Anthropic accepts."""
SHORT_ID = late_pattern(r"[A-Za-z0-9_.:-]{1,64}")
"""The ids that OpenAI accepts."""

RAW = "_raw"
"""The only key in the object that replaces arguments that are not a JSON object."""

_DIGEST = 12


def wire_ids(turns: Iterable[Turn], fits: re.Pattern[str]) -> Mapping[str, str]:
    """A unique id that matches `fits` for each call in the turns; matching ids stay unchanged.

    Ids depend only on earlier turns. Later text never changes an earlier id, because providers
    cache requests by their beginning.
    """
    ids = dict[str, str]()
    known = set[str]()
    for call_id in (
        outcome.id for turn in turns if isinstance(turn, ModelTurn) for outcome in turn.calls
    ):
        salt, candidate = 0, call_id if fits.fullmatch(call_id) else _hashed(call_id, 0)
        while candidate in known:
            salt += 1
            candidate = _hashed(call_id, salt)
        ids[call_id] = candidate
        known.add(candidate)
    return ids


def wire_name(name: str) -> str:
    """The name of a called tool in a form that every provider accepts."""
    folded = fold(name)
    return folded if len(folded) <= NAME_LENGTH else _hashed(name, 0)


def _hashed(text: str, salt: int) -> str:
    digest = hashlib.sha256(f"{salt or ''}{text}".encode("utf-8", "surrogatepass")).hexdigest()[
        :_DIGEST
    ]
    return f"{fold(text)[: NAME_LENGTH - _DIGEST - 1]}_{digest}"


def arguments_object(arguments: str) -> dict[str, Any]:
    """The arguments as the object that a wire format expects; blank arguments become `{}`.

    Text that is not one unambiguous JSON object is sent in full under the key `_raw`, so that the
    model sees its own text. Big integers, `1.0` and the order of keys are preserved.
    """
    text = fit(arguments)
    try:
        return decode_arguments(text)
    except ValueError:
        return {RAW: text}


def arguments_text(arguments: str, *, exact: bool) -> str:
    """The arguments as JSON text; blank arguments become `{}`, and an object's text is unchanged.

    Unless `exact`, any other arguments become an object: compatible servers parse the arguments of
    past calls and fail on other values.
    """
    if exact and arguments.strip():
        return fit(arguments)
    value = arguments_object(arguments)
    return fit(arguments) if value and RAW not in value else json.dumps(value, ensure_ascii=False)


def result_parts(outcome: CallOutcome) -> tuple[str | Attachment, ...]:
    """The parts of a result with pictures, with a hint on how to read more of a long result."""
    return (*outcome.parts, *_how_to_go_on(outcome)) if outcome.parts else ()


def bare_text(outcome: CallOutcome) -> str:
    """A result's text, with a hint on how to read more of a long result."""
    return "\n".join([outcome.content, *_how_to_go_on(outcome)])


def _how_to_go_on(outcome: CallOutcome) -> list[str]:
    return (
        [f'[{READ_RESULT.name} with the call "{outcome.id}" reads on in this result]']
        if outcome.whole
        else []
    )


def result_text(outcome: CallOutcome) -> str:
    """A call's result as the model reads it, in a format without a field for failure."""
    text = bare_text(outcome)
    return text if outcome.status == "ok" else f"Error: {text}"


class Piece(dict[str, Any]):
    """A part of a request's body that never changes; its JSON is encoded once."""

    @cached_property
    def json(self) -> bytes:
        """The part's JSON."""
        return _json(self)


def pieces(
    turn: Turn, key: Hashable, make: Callable[[], Iterable[Mapping[str, Any]]]
) -> tuple[dict[str, Any], ...]:
    """The parts of a request's body that `make` creates from a turn, cached in the turn by key.

    The key includes everything other than the turn that the parts depend on. Nothing is cached in
    an open turn, because it may change.
    """
    if isinstance(turn, ModelTurn) and turn.open:
        return tuple(map(fit_body, make()))
    if key not in turn.derived:
        turn.derived[key] = tuple(Piece(fit_body(part)) for part in make())
    kept: tuple[dict[str, Any], ...] = turn.derived[key]
    return kept


def call_ids(turn: Turn, ids: Mapping[str, str]) -> tuple[str, ...]:
    """The ids of a turn's calls as they are sent."""
    return tuple(ids[outcome.id] for outcome in turn.calls) if isinstance(turn, ModelTurn) else ()


def encoded(body: Mapping[str, Any]) -> bytes:
    """A request body's JSON, as the SDKs write it."""
    return b"{%s}" % b",".join(
        b"%s:%s" % (_json(key), _encoded(value)) for key, value in body.items()
    )


def _encoded(value: object) -> bytes:
    match value:
        case Piece():
            return value.json
        case dict() if "role" in value and isinstance(value.get("content"), list):
            return encoded(value)
        case [dict(), *_]:
            return b"[%s]" % b",".join(map(_encoded, value))
        case _:
            return _json(value)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def fit_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Make every text in a request body valid UTF-8; schemas and extra keys may contain
    anything."""
    return {fit(key): _fit_value(value) for key, value in body.items()}


def _fit_value(value: object) -> object:
    match value:
        case str():
            return fit(value)
        case Piece():
            return value
        case dict():
            return fit_body(value)
        case list() | tuple():
            return [_fit_value(item) for item in value]
        case _:
            return value
