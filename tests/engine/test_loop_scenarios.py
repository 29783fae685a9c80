"""Possible courses of a task with tools, on a fake clock; providers accept each of its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Result
from parley.engine import End
from parley.models import anthropic
from parley.policy.rules import Pattern, Rules
from parley.tools.catalogue import Catalogue
from tests.chats import TOOLS, call
from tests.fakes import LoggedTools, ScriptedModel, ScriptStep, Turns, calls, says
from tests.strict import check_anthropic

GOOD, BAD = call(1), call(2, "read_file", "{}", index=0)
CALL, FAIL = calls(GOOD), calls(BAD)
ANSWER = says("Done.")


@dataclass(frozen=True)
class Scenario:
    """The model's replies, the results and the outcome; each call takes `seconds`."""

    says: Sequence[list[ScriptStep]]
    results: list[str]
    reason: str = ""
    seconds: float = 1.0
    tools: Catalogue = TOOLS


SCENARIOS: dict[str, Scenario] = {
    "a single call": Scenario([CALL], ["ok"]),
    "four calls in sequence": Scenario([CALL] * 4, ["ok"] * 4),
    "recovery after an error": Scenario([FAIL, CALL], ["error", "ok"]),
    "error, ok, error, error": Scenario(
        [FAIL, CALL, FAIL, FAIL], ["error", "ok", "error", "error"]
    ),
    "ten rounds": Scenario(
        [CALL] * 10, ["ok"] * 10, "reached the maximum of 10 rounds of tool calls"
    ),
    "nine rounds": Scenario([CALL] * 9, ["ok"] * 9),
    "three errors in a row": Scenario(
        [FAIL] * 3, ["error"] * 3, "all tool calls failed in 3 replies in a row"
    ),
    "three errors at once": Scenario(
        [calls(*(call(n, "read_file", "{}") for n in (1, 2, 3)))],
        ["error"] * 3,
    ),
    "three errors at once, three times": Scenario(
        [calls(*(call(3 * reply + n, "read_file", "{}") for n in (1, 2, 3))) for reply in range(3)],
        ["error"] * 9,
        "all tool calls failed in 3 replies in a row",
    ),
    "a call that takes too long": Scenario(
        [CALL], ["error"], "it took longer than 120 seconds", 121.0
    ),
    "calls that take too long together": Scenario(
        [CALL] * 3, ["ok", "ok", "error"], "it took longer than 120 seconds", 45.0
    ),
    "no tools": Scenario([], [], tools=Catalogue()),
    "tools that are not needed": Scenario([], []),
}


def turns_of(scenario: Scenario) -> Turns:
    tools = LoggedTools(scenario.tools)
    model = ScriptedModel(*scenario.says, ANSWER)
    turns = Turns("💬: a task\n", model, tools, rules=Rules(auto=(Pattern("demo/*"),)))

    def after(result: Result) -> Callable[[str], Result]:
        def run(_: str) -> Result:
            turns.clock.time += scenario.seconds
            return result

        return run

    tools.results = {
        "web_search": after(Result("ok", "fine")),
        "read_file": after(Result("error", "broke")),
    }
    return turns


def results(turns: Turns) -> list[str]:
    proposals = parse(turns.text).exchanges[0].answers[0].proposals
    return [p.result.status if p.result else "none" for p in proposals]


def assert_taken(model: ScriptedModel) -> None:
    """Every request passes the wire format's strict check."""
    for request in model.asks:
        body: dict[str, Any] = json.loads(json.dumps(anthropic.request_body(request)))
        assert check_anthropic(body) == []


@pytest.mark.parametrize("what", SCENARIOS)
async def test_a_task_runs_to_its_end(what: str) -> None:
    scenario = SCENARIOS[what]
    turns = turns_of(scenario)
    end = await turns.run()
    assert results(turns) == scenario.results
    assert parse(turns.text).problems == ()
    if scenario.reason:
        assert end == End("stopped", f"Unable to complete task: {scenario.reason}")
        assert turns.text.endswith(
            f"\n\n🔒: [Unable to complete task: {scenario.reason}]\n\n💬: \n"
        )
        assert turns.observer.statuses[-2:] == [f"Stopped: {scenario.reason}", ""]
        turns.document.anchor = 0
        assert await turns.run() == End("complete")
        assert results(turns) == scenario.results
        assert "[Unable" not in turns.text
    else:
        assert end == End("complete")
        assert "🔒" not in turns.text
    assert turns.text.endswith("Done.\n\n💬: \n")
    assert_taken(turns.model)
