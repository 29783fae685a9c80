"""Gateways and mock models from other projects, which break replies in every way that they offer.

Parley asks, runs a tool of an MCP server and answers, in all its wire formats. Each answer in a
file is what the mock model was told to say, or is marked as interrupted. The mock models check the
requests: `llmock` gives a verdict on how a client treats faults, and `aimock` keeps a log.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.gateway_chats import (
    ANSWERS,
    CALL,
    CALLS,
    FORMATS,
    Case,
    Fault,
    Said,
    address,
    all_of,
    answered,
    called,
    chat,
    running,
    settings,
)
from tests.e2e.machine import Machine, Process, proposals

GUESTS = Path(__file__).parents[2] / ".tools" / "guests"
LITELLM, LLMOCK = (GUESTS / "gateways" / "bin" / name for name in ("litellm", "llmock"))
AIMOCK = GUESTS / "node_modules" / ".bin" / "llmock"

pytestmark = [pytest.mark.guests, pytest.mark.timeout(180)]


# --- llmock ---------------------------------------------------------------------------------------

AFTER = (0, 2, 5, 9)
"""The numbers of events before a fault: before any text, in the text, and at its end."""


def broken(kind: str, after: int, **more: Any) -> Fault:
    return {"type": "stream_fault", "kind": kind, "after_chunks": after, **more}


BREAKS: Mapping[str, Fault] = {
    f"{kind}-{after}": broken(kind, after)
    for kind in ("disconnect", "truncate", "malformed")
    for after in AFTER
}
REFUSALS: Mapping[str, Fault] = {
    **{f"status-{status}": {"type": "fail", "status": status} for status in (408, 429, 500, 529)},
    "soon": {"type": "fail", "status": 429, "retry_after": 0.2},
    "later": {"type": "fail", "status": 503, "retry_after": 1.1},
}
DELAYS: Mapping[str, Fault] = {
    "stall": broken("stall", 4, stall_seconds=0.4),
    "slow": {"type": "slow_first_token", "seconds": 0.5},
    "late": {"type": "delay", "seconds": 0.5},
}


async def queue(mock: httpx2.AsyncClient, model: str, *behaviours: Fault) -> None:
    """Tell `llmock` what to do with a model's next requests."""
    named = [{**each, "match": {"model": model}} for each in behaviours]
    queued = await mock.post("/_llmock/scenario", json={"behaviors": named})
    assert queued.status_code == 201, queued.text


def says(text: str, *calls: Mapping[str, Any]) -> Fault:
    return {"type": "reply", "text": text, "tool_calls": calls, "times": None}


async def play(
    machine: Machine, process: Process, mock: httpx2.AsyncClient, cases: Mapping[str, Case]
) -> None:
    """Play all cases; the keys are the models' names for `llmock`."""
    paths = {model: chat(machine, case) for model, case in cases.items()}
    for model, case in cases.items():
        await queue(mock, model, says(CALLS, CALL), *case.first)
    await all_of(called(process, path) for path in paths.values())
    await mock.delete("/_llmock/scenario")
    for model, case in cases.items():
        await queue(mock, model, says(ANSWERS), *case.then)
    ready = [path for path in paths.values() if proposals(path)]
    await all_of(answered(process, path) for path in ready)
    assert len(machine.calls()) == len(ready)
    await mock.delete("/_llmock/scenario")


async def requests(mock: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """All requests that `llmock` has seen."""
    seen: list[dict[str, Any]] = (await mock.get("/_llmock/requests")).json()["requests"]
    assert all(each["status"] == 200 or each["fault"] for each in seen)
    return seen


async def findings(mock: httpx2.AsyncClient) -> list[tuple[str, str]]:
    """The rules that a client broke according to `llmock`, with the model's name."""
    by_number = {each["seq"]: each["model"] for each in await requests(mock)}
    verdict = (await mock.get("/_llmock/verdict")).json()
    return [(each["code"], by_number[each["requests"][-1]]) for each in verdict["findings"]]


def llmock() -> AbstractAsyncContextManager[httpx2.AsyncClient]:
    return running((LLMOCK, "serve", "--port", "{port}", "--log-level", "warning"), "/health")


async def test_a_reply_that_breaks_once_arrives_whole_and_llmock_finds_no_fault(
    tmp_path: Path,
) -> None:
    faults = {**BREAKS, **REFUSALS, **DELAYS}
    made = [
        Case(name, form, [fault], [fault]) for name, fault in faults.items() for form in FORMATS
    ]
    cases = {case.agent: case for case in made}
    machine = Machine(tmp_path)
    async with (
        llmock() as mock,
        machine.start(settings(machine, address(mock), made, "/anthropic", "k")) as process,
    ):
        await play(machine, process, mock, cases)
        # A second request is no retry for it if its stream had ended before the client hung up.
        codes = {code for code, _ in await findings(mock)}
        assert codes <= {"malformed_chunk_ignored"}
        asked = [each["model"] for each in await requests(mock)]
    assert len(machine.calls()) == len(cases)
    for model, case in cases.items():
        tries = 1 if case.name in DELAYS else 2
        assert (model, asked.count(model)) == (model, 2 * tries)


TWICE: Mapping[str, Fault] = {
    kind: broken(kind, 5, times=2) for kind in ("disconnect", "truncate", "malformed")
}
LASTING: Fault = {"type": "fail", "status": 500, "times": None}
FINAL: Mapping[str, Fault] = {
    f"status-{status}": {"type": "fail", "status": status} for status in (400, 401, 404, 422)
}


async def test_a_reply_that_breaks_twice_is_marked_as_interrupted(tmp_path: Path) -> None:
    faults = {**TWICE, **FINAL, "lasting": LASTING}
    made = [
        Case(name + when, form, *((), [fault]) if when else ([fault], ()))
        for name, fault in faults.items()
        for when in ("", "-then")
        for form in FORMATS
    ]
    cases = {case.agent: case for case in made}
    machine = Machine(tmp_path)
    async with (
        llmock() as mock,
        machine.start(settings(machine, address(mock), made, "/anthropic", "k")) as process,
    ):
        await play(machine, process, mock, cases)
        # The verdict cannot see the notice in the file, nor that the request was a second one.
        about = {(code, model.split("-")[0]) for code, model in await findings(mock)}
        assert about - {("malformed_chunk_ignored", "malformed")} == {
            ("truncated_stream_accepted", "truncate")
        }
        asked = [each["model"] for each in await requests(mock)]
    assert len(machine.calls()) == len(cases) / 2
    for model, case in cases.items():
        kind = case.name.removesuffix("-then")
        tries = 1 if kind in FINAL else 4 if kind == "lasting" else 2
        assert (model, asked.count(model)) == (model, tries + len(case.then))
        said = Said.of(machine.folder / f"{model}.md")
        assert said.notice.startswith("[Interrupted: ")
        assert len(said.texts) == (kind in TWICE) + len(case.then)


BROKEN_CALLS = ("malformed_arguments", "unknown_tool")


async def test_a_call_that_cannot_run_is_refused_and_the_model_answers(tmp_path: Path) -> None:
    made = [Case(kind, form) for kind in BROKEN_CALLS for form in FORMATS]
    machine = Machine(tmp_path)
    async with (
        llmock() as mock,
        machine.start(settings(machine, address(mock), made, "/anthropic", "k")) as process,
    ):
        for case in made:
            replies = {**says(CALLS, CALL), "times": 1}, says(ANSWERS)
            await queue(mock, case.agent, *replies, {"type": "tool_fault", "kind": case.name})
        paths = [chat(machine, case) for case in made]
        ends = await all_of(process.respond(path) for path in paths)
        assert await findings(mock) == []
    assert {end.kind for end in ends} == {"complete"}
    for path in paths:
        assert Said.of(path) == Said([CALLS, ANSWERS]), path.read_text(encoding="utf-8")
    assert machine.calls() == []


# --- LiteLLM, in front of llmock ------------------------------------------------------------------

MASTER_KEY = "sk-of-the-tests-0123456789abcdef0123456789abcdef"
TUNED = "ft:gpt-4o-2024-08-06:o::"
"""The beginning of the name of a model that OpenAI streams, according to LiteLLM. It only pretends
to stream models that it does not know.
"""
LITELLM_LOSES_TEXT = {("malformed-5", "anthropic", "openai")}
"""LiteLLM 1.110 skips an event of OpenAI's that it cannot read; Anthropic's format does not show
the gap, OpenAI's Responses do.
"""


@asynccontextmanager
async def litellm(folder: Path, mock: httpx2.AsyncClient) -> AsyncIterator[httpx2.AsyncClient]:
    """LiteLLM in front of `llmock`, without retries of its own."""
    roots = {"openai": "/v1", "anthropic": "/anthropic"}
    models = [
        {
            "model_name": f"{kind}/*",
            "litellm_params": {
                "model": f"{kind}/*",
                "api_base": address(mock) + root,
                "api_key": "k",
            },
        }
        for kind, root in roots.items()
    ]
    config = folder / "litellm.yaml"  # JSON is YAML
    config.write_text(
        json.dumps(
            {
                "model_list": models,
                "litellm_settings": {"telemetry": False, "drop_params": False},
                "router_settings": {"num_retries": 0, "disable_cooldowns": True},
                "general_settings": {"master_key": MASTER_KEY},
            }
        ),
        encoding="utf-8",
    )
    command = (LITELLM, "--config", config, "--host", "127.0.0.1", "--port", "{port}")
    async with running(
        command, "/health/liveliness", LITELLM_LOCAL_MODEL_COST_MAP="True"
    ) as client:
        yield client


THROUGH = ("disconnect-5", "truncate-0", "truncate-5", "malformed-5", "soon")


async def test_through_litellm_every_reply_arrives_whole_or_is_marked(tmp_path: Path) -> None:
    """With exceptions, which are LiteLLM's: Parley receives sound streams that are not whole."""
    faults, cases = {**BREAKS, **REFUSALS}, dict[str, Case]()
    for name in THROUGH:
        for form in FORMATS:
            for kind, known in (("openai", TUNED), ("anthropic", "")):
                if (name, form, kind) in LITELLM_LOSES_TEXT:
                    continue
                model = f"{known}{kind}-{name}-{form}"
                both = [faults[name]]
                cases[model] = Case(f"{kind}-{name}", form, both, both, f"{kind}/{model}")
    machine = Machine(tmp_path)
    async with (
        llmock() as mock,
        litellm(tmp_path, mock) as gateway,
        machine.start(
            settings(machine, address(gateway), cases.values(), "", MASTER_KEY)
        ) as process,
    ):
        await play(machine, process, mock, cases)
        found = await findings(mock)
        asked = [each["model"] for each in await requests(mock)]
    ends_early = {m for m, case in cases.items() if case.name.endswith("-truncate-0")}
    assert {model for code, model in found if code != "malformed_chunk_ignored"} <= ends_early
    for model, case in cases.items():
        said = Said.of(machine.folder / f"{case.agent}.md")
        if said.notice:  # LiteLLM ended the empty stream as if the model had said nothing
            assert model in ends_early
            assert said.notice == "[Interrupted: the model's reply was empty]"
        else:
            assert (model, said.texts, asked.count(model)) == (model, [CALLS, ANSWERS], 4)


# --- aimock ---------------------------------------------------------------------------------------

AIMOCK_KEY = "a-key-for-aimock"
FAULTS: Mapping[str, Fault] = {
    "truncated": {"truncateAfterChunks": 9, "latency": 5, "chunkSize": 4},
    "disconnected": {"disconnectAfterMs": 60, "latency": 10, "chunkSize": 4},
    "dropped": {"chaos": {"dropRate": 1}},
    "limited": {"chaos": {"rateLimitRate": 1}},
    "hung-up": {"chaos": {"disconnectRate": 1}},
    "late": {"chaos": {"latencyMs": 300}},
    "paced": {"streamingProfile": {"ttft": 200, "tps": 100, "jitter": 0.1}},
    "garbage": {"chaos": {"malformedRate": 1}},
}


def fixtures(case: Case) -> list[Fault]:
    """Two replies with their fault, each followed by the same reply without it."""
    call: Fault = {"content": CALLS, "reasoning": "Hm.", "toolCalls": [CALL]}
    answer: Fault = {"content": ANSWERS, "reasoning": "Aha."}
    asks = {"model": case.agent, "toolName": "note", "userMessage": "Write a note, please."}
    first = {**asks, "hasToolResult": False, "turnIndex": 0}
    # Responses have no messages with calls: the text and the call count as two.
    turn = 2 if case.format == "responses" else 1
    then = {
        **asks,
        "hasToolResult": True,
        "turnIndex": turn,
        "toolResultContains": "noted it rains",
    }
    fault = FAULTS[case.name]
    return [
        {"match": {**match, **({"sequenceIndex": 0} if more else {})}, "response": reply, **more}
        for match, reply in ((first, call), (then, answer))
        for more in (fault, {})
    ]


async def test_aimock_knows_every_request_and_no_fault_of_its_own_is_taken_for_an_answer(
    tmp_path: Path,
) -> None:
    cases = [Case(name, form) for name in FAULTS for form in FORMATS]
    file = tmp_path / "fixtures.json"
    content = {"fixtures": [each for case in cases for each in fixtures(case)]}
    file.write_text(json.dumps(content), encoding="utf-8")
    options = ("--fixtures", file, "--strict", "--validate-on-load", "--journal-max", "0")
    strict = {"AIMOCK_API_KEYS": AIMOCK_KEY, "AIMOCK_STRICT_TURN_INDEX": "1"}
    machine = Machine(tmp_path)
    async with (
        running((AIMOCK, "--port", "{port}", *options), "/health", **strict) as mock,
        machine.start(settings(machine, address(mock), cases, "", AIMOCK_KEY)) as process,
    ):
        paths = {case: chat(machine, case) for case in cases}
        await all_of(called(process, path) for path in paths.values())
        ready = [path for path in paths.values() if proposals(path)]
        await all_of(answered(process, path) for path in ready)
        mock.headers["authorization"] = f"Bearer {AIMOCK_KEY}"
        log = (await mock.get("/__aimock/journal")).json()
    seen = {case.agent: list[Any]() for case in cases}
    for entry in log:
        assert entry["response"]["fixture"], entry["body"]
        seen[entry["body"]["model"]].append(entry["response"])
    for case, path in paths.items():
        said, answers = Said.of(path), seen[case.agent]
        bad = [each for each in answers if each.get("chaosAction") or each.get("interrupted")]
        if case.name == "garbage":  # no event stream: asking again would not help
            assert said.notice.endswith(" did not send an event stream]")
            assert (len(bad), len(answers)) == (1, 1)
        else:
            assert (said.texts, said.notice) == ([CALLS, ANSWERS], "")
            faults = 0 if case.name in ("late", "paced") else 2
            assert (case.agent, len(bad), len(answers)) == (case.agent, faults, 2 + faults)
