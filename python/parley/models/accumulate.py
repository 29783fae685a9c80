"""Assembles texts and tool calls that arrive in pieces, split anywhere.

Knows which text a chat file can contain, but no wire formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from parley.chat.call_lines import extra_json
from parley.chat.grammar import fit
from parley.chat.transcript import CALL_ID, ToolCall
from parley.errors import ModelError
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.models.events import Call
from parley.models.fields import mapping, number, text
from parley.models.text_tools.json_scan import JsonScan

_SURROGATE = late_pattern("[\ud800-\udfff]")


@frozen
class PendingCall:
    """A call that is being written: its tool's name ("" if unknown) and its size so far, in
    characters. If it `is_running`, the provider runs its own tool.
    """

    name: str
    size: int
    is_running: bool = False


class PartialCall:
    """A call whose pieces are still arriving."""

    def __init__(self, id: str = "", name: str = "", arguments: str = "") -> None:  # noqa: A002 - it is one
        self.id = id
        self.name = name
        self.extra: dict[str, Any] = {}
        self.size = len(arguments)
        self.is_running = False
        """Whether the provider runs its own tool, instead of the model writing the call."""
        self._pieces = [arguments]
        self._scan = JsonScan()
        self._scanned = 0

    @property
    def arguments(self) -> str:
        """The arguments received so far."""
        return "".join(self._pieces)

    @arguments.setter
    def arguments(self, text: str) -> None:
        self.size = len(text)
        self._pieces, self._scan, self._scanned = [text], JsonScan(), 0

    def add(self, piece: str) -> None:
        """Add the next piece of the arguments."""
        self.size += len(piece)
        self._pieces.append(piece)

    def is_whole(self) -> bool:
        """Whether the arguments are a complete JSON value; blank arguments are not."""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True

    def seems_whole(self) -> bool:
        """Whether the arguments look like a complete object or array; never reads a piece
        twice."""
        for piece in self._pieces[self._scanned :]:
            self._scan.feed(piece, 0)
        self._scanned = len(self._pieces)
        return self._scan.state == "closed"


class CallAccumulator:
    """Assembles the calls in a Chat Completions reply from their pieces."""

    def __init__(self) -> None:
        self.all: list[PartialCall] = []
        self._at: dict[int, PartialCall] = {}

    def feed(self, piece: Mapping[str, Any]) -> PartialCall:
        """Add a piece to the last call with the same index, and return that call.

        A piece with another id, or with a tool's name after a complete call, starts a new call:
        Gemini sends parallel calls in one piece, sometimes all with index 0 and without an id.
        """
        index, call_id, function = (
            number(piece, "index"),
            text(piece, "id"),
            mapping(piece, "function"),
        )
        name, arguments = text(function, "name"), function.get("arguments")
        call = self._at.get(index)
        if call is None or _is_another(call, call_id, name):
            call = self._at[index] = PartialCall()
            self.all.append(call)
        call.id, call.name = call.id or call_id, call.name or name
        call.add(arguments if isinstance(arguments, str) else _as_text(arguments))
        call.extra |= _beside(piece, function)
        return call


def _as_text(arguments: object) -> str:
    """The JSON text of arguments that a server sent as an object instead of text."""
    return json.dumps(arguments, ensure_ascii=False) if arguments else ""


def _is_another(call: PartialCall, call_id: str, name: str) -> bool:
    if call_id and call.id:
        return call_id != call.id
    return bool(name and call.name) and (name != call.name or call.seems_whole())


def _beside(piece: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any]:
    """The call's keys that OpenAI does not define; they are stored in the file and sent back to the
    provider."""
    own = {
        key: value for key, value in piece.items() if key not in ("index", "id", "type", "function")
    }
    inner = {key: value for key, value in function.items() if key not in ("name", "arguments")}
    extra = own | ({"function": inner} if inner else {})
    return {key: value for key, value in extra.items() if value is not None}


def finished_calls(partial_calls: Sequence[PartialCall], *, cut: bool) -> list[Call]:
    """A reply's calls, numbered. If the reply was cut off, an incomplete last call is dropped.

    A missing, repeated or unusable id is replaced with an id based on the position.
    """
    whole = (
        partial_calls[:-1]
        if cut and partial_calls and not partial_calls[-1].is_whole()
        else partial_calls
    )
    calls, ids, known = list[Call](), set[str](), {call.id for call in whole}
    for index, call in enumerate(whole):
        if not call.name:
            raise ModelError(
                "The model called a tool without naming one.", reason="a tool call without a name"
            )
        call_id = call.id
        if call_id in ids or not CALL_ID.fullmatch(call_id):
            call_id = _own_id(index, known)
        ids.add(call_id)
        known.add(call_id)
        name, arguments = _joined(call.name), _joined(call.arguments)
        calls.append(Call(ToolCall(call_id, name, arguments, index, extra_json(call.extra))))
    return calls


def _own_id(index: int, known: set[str]) -> str:
    own = f"call_p{index + 1}"
    while own in known:
        own += "_"
    return own


class Pieces:
    """Text that arrives in pieces, split anywhere, even inside a surrogate pair."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        """The complete part of the text, without characters that a text file cannot contain."""
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return fit(_joined(piece)) if piece else ""

    def end(self) -> str:
        """The replacement for half of a surrogate pair if the other half never arrived."""
        return self.feed(" ")[:-1] if self._half else ""


def _joined(piece: str) -> str:
    """Join surrogate halves, which JSON escapes may split between two texts."""
    if not _SURROGATE.search(piece):
        return piece
    return piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
