"""The modes and models of agents: which mode asks the user, and how a session gets a mode or a
model. Pure.

An agent may start in a mode that decides without the user. Knows the modes of known agents, in one
table, and the protocol's plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.errors import ModelError
from parley.frozen import frozen
from parley.text import one_line

# Tried on 2026-11-24 with @agentclientprotocol/claude-agent-acp 0.101.0, whose mode `auto` wrote a
# file unasked; @agentclientprotocol/codex-acp 2.6.0, in whose mode `agent` a model decides;
# @google/gemini-cli 0.61.0; opencode-ai 1.18.33, whose modes say nothing about permissions.
# tests/e2e/test_guest_agents.py tries them again.
ASKING: Mapping[str, tuple[str, ...]] = {
    "claude": ("default",),
    "codex": ("read-only", "workspace-write"),
    "gemini": ("default",),
    "opencode": (),
}
"""The modes that ask the user, the best first, by a word in the agent's name. For an agent without
such modes, the agent's own settings decide when it asks."""
_USUAL = ("default", "ask", "read-only")
_MOST_SHOWN = 60
_MOST_NAMED = 20


@frozen
class ModeState:
    """The modes, or the models, that a session offers. `option` is the id of the option that sets
    them; "" if they have a method of their own."""

    current: str = ""
    available: tuple[str, ...] = ()
    option: str = ""


def mode_state(response: Any) -> ModeState:
    """The modes in a session's response; options take precedence over modes."""
    if state := _option_state(response, "mode"):
        return state
    match response:
        case {"modes": {"currentModeId": str(current), "availableModes": [*modes]}}:
            return ModeState(current, _ids(modes, "id"))
    return ModeState()


def model_state(response: Any) -> ModeState:
    """The models in a session's response; options take precedence over the older list of models."""
    if state := _option_state(response, "model"):
        return state
    match response:
        case {"models": {"currentModelId": str(current), "availableModels": [*models]}}:
            return ModeState(current, _ids(models, "modelId"))
    return ModeState()


def _option_state(response: Any, category: str) -> ModeState | None:
    match response:
        case {"configOptions": [*options]}:
            for option in options:
                match option:
                    case {"category": str(found), "id": str(name), "currentValue": str(current)}:
                        if found == category:
                            values = list(option_values(option.get("options")))
                            return ModeState(current, _ids(values, "value"), name)
    return None


def _ids(items: list[Any], key: str) -> tuple[str, ...]:
    known = (item.get(key) for item in items if isinstance(item, Mapping))
    return tuple(name for name in known if isinstance(name, str))


def option_values(options: Any) -> Iterator[Any]:
    """The values of an option, which may be in groups."""
    for each in options if isinstance(options, list) else []:
        match each:
            case {"options": [*more]}:
                yield from more
            case _:
                yield each


def wanted_mode(agent: str, state: ModeState, chosen: str) -> str:
    """The mode that a session needs: the user's, else the mode that asks; "" for the agent's own.

    Raises ModelError if the agent has modes, and none is known to ask.
    """
    offered = _listed(state.available) or "none"
    if chosen:
        if chosen in state.available:
            return chosen
        raise ModelError(
            f"the agent has no mode {one_line(chosen, _MOST_SHOWN)!r}. Set mode in the chat's front "
            f"matter to one of its modes: {offered}",
            reason="no such mode",
        )
    if not state.available:
        return ""
    known = next((modes for word, modes in ASKING.items() if word in agent.lower()), _USUAL)
    if not known:
        return ""
    for mode in known:
        if mode in state.available:
            return mode
    raise ModelError(
        "the agent has modes, and Parley does not know which of them asks before each call. Set mode "
        f"in the chat's front matter to one of its modes: {offered}",
        reason="no mode that asks",
    )


def wanted_model(state: ModeState, first: str, chosen: str) -> str:
    """The model that a session needs: the user's, else the session's `first` model; "" for the
    agent's own. Raises ModelError if the agent does not offer the user's model.
    """
    if not chosen:
        return first if first in state.available else ""
    if chosen in state.available:
        return chosen
    offered = _listed(state.available)
    remedy = f"Choose one of its models: {offered}" if offered else "It chooses its model itself"
    raise ModelError(
        f"the agent has no model {one_line(chosen, _MOST_SHOWN)!r}. {remedy}",
        reason="no such model",
    )


def _listed(names: Sequence[str]) -> str:
    """The first names that an agent offers, for a message."""
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return ", ".join([*(one_line(name, _MOST_SHOWN) for name in names[:_MOST_NAMED]), *more])


def is_asking_mode(agent: str, mode: str) -> bool:
    """Whether a mode of this agent is known to ask, so that it need not be shown."""
    known = next((modes for word, modes in ASKING.items() if word in agent.lower()), _USUAL)
    return not mode or not known or mode in known
