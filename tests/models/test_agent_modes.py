"""Which mode of an agent is used."""

from __future__ import annotations

from typing import Any

import pytest

from parley.errors import ModelError
from parley.models.agent_modes import (
    ModeState,
    is_asking_mode,
    mode_state,
    model_state,
    wanted_mode,
    wanted_model,
)

GROUPS = [{"group": "g", "options": [{"value": "a"}, {"value": 1}]}, {"value": "b"}]


@pytest.mark.parametrize(
    ("response", "state"),
    [
        (None, ModeState()),
        ({"modes": {"currentModeId": "a", "availableModes": [{"id": "a"}, {"id": 1}, 2]}},
         ModeState("a", ("a",))),
        ({"configOptions": [3, {"category": "mode", "id": "m", "currentValue": "b", "options": GROUPS}],
          "modes": {"currentModeId": "a", "availableModes": []}}, ModeState("b", ("a", "b"), "m")),
        ({"configOptions": [{"category": "model", "id": "x", "currentValue": "y"}]}, ModeState()),
        ({"configOptions": [{"category": "mode", "id": "m", "currentValue": "b", "options": 1}]},
         ModeState("b", (), "m")),
    ],
)  # fmt: skip
def test_the_modes_of_a_session(response: Any, state: ModeState) -> None:
    assert mode_state(response) == state


@pytest.mark.parametrize(
    ("agent", "modes", "wanted"),
    [
        ("@agentclientprotocol/claude-agent-acp Claude", ("auto", "default", "plan"), "default"),
        ("codex-acp", ("agent", "workspace-write"), "workspace-write"),
        ("codex-acp", ("agent", "workspace-write", "read-only"), "read-only"),
        ("gemini-cli", ("yolo", "default"), "default"),
        ("OpenCode", ("build", "plan"), ""),
        ("unknown", ("default", "all"), "default"),
        ("unknown", (), ""),
    ],
)
def test_the_mode_that_asks(agent: str, modes: tuple[str, ...], wanted: str) -> None:
    assert wanted_mode(agent, ModeState("auto", modes), "") == wanted
    assert is_asking_mode(agent, wanted)


@pytest.mark.parametrize("chosen", ["", "turbo"])
def test_a_mode_that_is_not_known_to_ask_needs_the_front_matter(chosen: str) -> None:
    state = ModeState("fast", ("fast", "faster"))
    with pytest.raises(ModelError, match="one of its modes: fast, faster"):
        wanted_mode("unknown", state, chosen)
    assert wanted_mode("unknown", state, "faster") == "faster"
    assert not is_asking_mode("unknown", "faster")


def test_the_models_of_a_session_and_the_one_that_is_used() -> None:
    option = {"category": "model", "id": "x", "currentValue": "a", "options": GROUPS}
    older = {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}, 3]}
    assert model_state({"configOptions": [option]}) == ModeState("a", ("a", "b"), "x")
    assert model_state({"models": older}) == ModeState("a", ("a", "b"))
    assert model_state({}) == ModeState()
    state = ModeState("b", ("a", "b"))
    assert wanted_model(state, "a", "") == "a"
    assert wanted_model(state, "gone", "") == ""
    assert wanted_model(state, "a", "b") == "b"
    with pytest.raises(ModelError, match=r"no model 'c'\. Choose one of its models: a, b"):
        wanted_model(state, "a", "c")
    with pytest.raises(ModelError, match="It chooses its model itself"):
        wanted_model(ModeState(), "", "c")


def test_a_message_names_only_the_first_of_very_many_modes() -> None:
    many = ModeState("0", tuple(map(str, range(100_000))))
    with pytest.raises(ModelError, match=r"0, 1, .*, 19, and 99980 more$"):
        wanted_mode("unknown", many, "turbo")
    with pytest.raises(ModelError, match=r"19, and 99980 more$"):
        wanted_model(many, "", "turbo")
