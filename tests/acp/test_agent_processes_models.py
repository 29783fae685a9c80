"""The models and offers of agents, in one process and over a restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.errors import ModelError
from parley.models.agent_offers import AgentOffer, OfferedWord
from parley.settings.values import OWN_MODEL
from tests.acp.agent_runs import CHAT, AgentRun, running, said
from tests.acp.test_agent_processes import QUESTION

OPTION = {"id": "m", "category": "model", "currentValue": "a",
          "options": [{"value": "a"}, {"value": "b", "name": "Bee"}]}  # fmt: skip
NEW = {"sessionId": "s", "configOptions": [OPTION]}
MORE = f"{QUESTION}\n🤖:[A]\n\nOk.\n\n💬: More.\n"
COMMANDS = {"update": {"sessionUpdate": "available_commands_update",
                       "availableCommands": [{"name": "review", "description": "Review"}]}}  # fmt: skip


def _no_tools(_: Path) -> frozenset[str]:
    return frozenset()


async def ask(run: AgentRun, agents: Any, text: str, model: str = OWN_MODEL, **fields: Any) -> str:
    request = replace(run.request(text, **fields), model=model)
    return said([e async for e in agents.stream(run.provider, request, CHAT, run.folder)])


async def test_a_model_is_set_before_the_prompt_and_the_agents_own_comes_back(
    tmp_path: Path,
) -> None:
    state = {"models": {"currentModelId": "a",
                        "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}}  # fmt: skip
    new = {"sessionId": "s", **state}
    run = AgentRun(
        tmp_path, {"prompts": [[{"say": "Ok."}]], "session/new": new, "session/set_model": {}}
    )
    async with running(run) as agents:
        await ask(run, agents, QUESTION, "b")
        assert await ask(run, agents, MORE) == "Ok."
    chosen = [each["modelId"] for each in run.received("session/set_model")]
    assert chosen == ["b", "a"]
    methods = [message.get("method") for message in run.received()]
    assert methods[2:4] == ["session/set_model", "session/prompt"]
    assert len(run.received("session/new")) == 1


async def test_an_option_sets_the_model_or_the_prompt_is_not_sent(tmp_path: Path) -> None:
    script = {"prompts": [[{"say": "Ok."}]], "session/new": NEW,
              "session/set_config_option": {"configOptions": [{**OPTION, "currentValue": "b"}]}}  # fmt: skip
    run = AgentRun(tmp_path, script)
    async with running(run) as agents:
        assert await ask(run, agents, QUESTION, "b") == "Ok."
        assert run.received("session/set_config_option") == [
            {"sessionId": "s", "configId": "m", "value": "b"}
        ]
        with pytest.raises(ModelError, match=r"no model 'c'\. Choose one of its models: a, b"):
            await ask(run, agents, MORE, "c")
        with pytest.raises(ModelError, match="did not switch to the model a"):
            await ask(run, agents, MORE)
    assert len(run.received("session/prompt")) == 1


async def test_a_session_with_the_users_model_is_not_resumed_with_the_agents_own(
    tmp_path: Path,
) -> None:
    start = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
    script = {"prompts": [[{"say": "Ok."}]], "session/new": NEW, "initialize": start,
              "session/load": {"configOptions": [{**OPTION, "currentValue": "b"}]},
              "session/set_config_option": {"configOptions": [{**OPTION, "currentValue": "b"}]}}  # fmt: skip
    run = AgentRun(tmp_path, script)
    async with running(run) as agents:
        await ask(run, agents, QUESTION, "b")
    async with running(run) as agents:
        await ask(run, agents, MORE, "b")
    assert len(run.received("session/load")) == 1
    async with running(run) as agents:
        await ask(run, agents, MORE)
    assert len(run.received("session/load")) == 1


async def test_an_offer_is_known_after_a_restart(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[COMMANDS, {"say": "Ok."}]], "session/new": NEW})
    offer = AgentOffer(
        (), (OfferedWord("a"), OfferedWord("b", "Bee")), (OfferedWord("review", "Review"),)
    )
    async with running(run) as agents:
        assert agents.offer(run.provider, CHAT) == AgentOffer()
        await ask(run, agents, QUESTION)
        assert agents.offer(run.provider, CHAT) == offer
    async with running(run) as agents:
        assert agents.offer(run.provider, "other.md") == offer


async def test_a_look_at_the_offer_opens_the_session_of_the_first_question(tmp_path: Path) -> None:
    run = AgentRun(tmp_path, {"prompts": [[{"say": "Ok."}]], "session/new": NEW})
    async with running(run) as agents:
        offer = await agents.look(run.provider, tmp_path, CHAT, _no_tools)
        assert [each.word for each in offer.models] == ["a", "b"]
        assert await agents.look(run.provider, tmp_path, CHAT, _no_tools) == offer
        await ask(run, agents, QUESTION, system="Be brief.")
    assert len(run.received("session/new")) == 1
    blocks = run.received("session/prompt")[0]["prompt"]
    assert [block["text"] for block in blocks] == ["Be brief.", "Do it."]
