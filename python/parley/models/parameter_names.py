"""Translates tool parameters between their names on the wire and the servers' own names.

The file contains the servers' names, and a request contains the wire names. Knows neither the wire
formats nor why a name differs.
"""

from __future__ import annotations

from dataclasses import replace

from parley.chat.history import CallOutcome, ModelTurn, Turn
from parley.chat.transcript import ToolCall
from parley.models.request import Request
from parley.tools.catalogue import Catalogue
from parley.tools.wire_parameters import renamed, wire_parameters, wire_tool


def wire_catalogue(catalogue: Catalogue) -> Catalogue:
    """The tools with their parameters' wire names."""
    return replace(
        catalogue, tools=tuple((name, wire_tool(tool)) for name, tool in catalogue.tools)
    )


def wire_request(request: Request) -> Request:
    """The request with wire names in tools and past calls; usually the same object."""
    if not any(wire_parameters(tool) for _, tool in request.catalogue.tools):
        return request
    turns = tuple(_wire_turn(turn, request.catalogue) for turn in request.turns())
    return replace(request, catalogue=wire_catalogue(request.catalogue), wire_turns=turns)


def own_call(call: ToolCall, catalogue: Catalogue) -> ToolCall:
    """A call from the wire, with the server's names for its parameters."""
    tool = catalogue.get(call.name)
    names = wire_parameters(tool) if tool else {}
    own = {wire: name for name, wire in names.items()}
    return replace(call, arguments=renamed(call.arguments, own)) if own else call


def _wire_turn(turn: Turn, catalogue: Catalogue) -> Turn:
    """A turn as it is sent, cached in the file's turn."""
    if not isinstance(turn, ModelTurn):
        return turn
    calls = tuple(_wire_outcome(outcome, catalogue) for outcome in turn.calls)
    if calls == turn.calls:
        return turn
    changed: Turn = turn.derived.setdefault(("wire", calls), replace(turn, calls=calls))
    return changed


def _wire_outcome(outcome: CallOutcome, catalogue: Catalogue) -> CallOutcome:
    tool = catalogue.get(outcome.call.name)
    names = wire_parameters(tool) if tool else {}
    if not names:
        return outcome
    return replace(
        outcome, call=replace(outcome.call, arguments=renamed(outcome.call.arguments, names))
    )
