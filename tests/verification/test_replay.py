"""Chats replayed with their own replies have the same outcome, and differences are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.chat.history import GO_ON, UserTurn
from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.models.request import Request
from parley.runtime.app import App
from parley.settings.read import read_settings
from parley.verification.replay import Replay, replay_chat
from tests.ledgers import open_ledger
from tests.test_transcripts import CASES, read

NOT_AS_THE_ENGINE_GOES_ON = {
    "arguments_that_do_not_fit": "calls that are still to be refused",
    "attachments_of_results": "a call without a result beside others that have some",
    "crash_between_call_and_result": "the same",
    "index_begins_a_round": "the same",
    "one_id_twice_in_a_round": "two calls of one id, as Parley writes none",
    "pending": "a call that still runs beside one that has its result",
    "pending_of_another_name": "a reply below a call that has no result",
    "provider_search_after_an_open_call": "the same",
    "provider_search_before_calls": "a call without a result beside one that has its result",
}
"""Chats in the corpus whose replay differs: they are not finished, or the engine would not write
them.
"""
CALL = (
    '`{"index":%d,"id":"c%d","type":"function","function":{"name":"web_search","arguments":"{}"}}`'
)
CHAT = f"""💬: one

🤖:[Demo]

❓:[ya] {CALL % (0, 1)}

🛠️: [web_search][c1]

`rain`

❓:[yn] {CALL % (1, 2)}

🛠️: [web_search][c2][refused]

`The user declined this call. too dear`

It rains.

💬: two

🤖:[Demo]

Half of it

🔒: [Stopped: by the user]

💬:\x20
"""


async def replayed(
    transcript: Transcript, path: str = "", settings: dict[str, object] | None = None
) -> tuple[Replay, list[tuple[int, Request]]]:
    """The outcome of a replay, with its requests."""
    app, requests = (
        App(read_settings(settings or {})[0], {}, open_ledger()),
        list[tuple[int, Request]](),
    )
    try:
        outcome = await replay_chat(
            transcript,
            app.resolve(None),
            app.ledger(""),
            app.attachments(path).read,
            lambda number, request: requests.append((number, request)),
        )
    finally:
        await app.close()
    assert outcome.requests == len(requests)
    return outcome, requests


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
async def test_every_finished_chat_follows_from_its_own_replies_and_results(path: Path) -> None:
    outcome, _ = await replayed(read(path), str(path))
    assert (outcome.diff == "") == (path.stem not in NOT_AS_THE_ENGINE_GOES_ON), outcome.diff


def test_the_chats_that_differ_are_not_finished() -> None:
    for path in (path for path in CASES if path.stem in NOT_AS_THE_ENGINE_GOES_ON):
        step = path.with_suffix(".step").read_text(encoding="utf-8").split()[0]
        problems = path.with_suffix(".problems")
        is_open = (
            problems.exists()
            and "has no result, and Parley tells the model so"
            in problems.read_text(encoding="utf-8")
        )
        assert is_open or step in ("AwaitChoices", "AskModel", "Settle")


async def test_calls_are_decided_as_in_the_file_and_early_ends_recur() -> None:
    outcome, requests = await replayed(parse(CHAT))
    assert outcome == Replay(3, "")
    assert [number for number, _ in requests] == [1, 1, 2]
    assert requests[1][1].turns()[-1].calls[1].content == ("The user declined this call. too dear")  # type: ignore[union-attr]


async def test_a_chat_that_todays_limits_end_earlier_differs() -> None:
    outcome, _ = await replayed(parse(CHAT), settings={"max_tool_calls": 0})
    assert "+`rain`" not in outcome.diff
    assert "-`rain`" in outcome.diff
    assert outcome.diff.startswith("--- file\n+++ replay\n")


async def test_a_chat_continues_where_its_user_continued_after_a_limit() -> None:
    calls = "\n\n".join(
        f"❓:[ya] {CALL % (0, number)}\n\n🛠️: [web_search][c{number}]\n\n`{number}`"
        for number in range(14)
    )
    resumed = "🔒: [Resumed after: the limit of 10 iterations was reached]"
    text = f"💬: one\n\n🤖:[Demo]\n\n{calls}\n\n{resumed}\n\nDone.\n\n💬: \n"
    rounds = text.replace("\n\n❓", "\n\nAgain.\n\n❓")
    outcome, requests = await replayed(parse(rounds))
    assert (outcome.diff, len(requests)) == ("", 15)
    outcome, requests = await replayed(parse(rounds.replace(f"{resumed}\n\n", "")))
    assert "+🔒: [Unable to complete task: " in outcome.diff
    assert len(requests) < 15


RESUMED = """💬: one

🤖:[Demo]

I look.

❓:[provider] `{"id":"s1","type":"function","function":{"name":"find","arguments":"{}"}}`

🛠️: [find][s1]

`a page`

🔒: [Resumed after: no route]

🔒:

Nothing.

❓:[agent] `{"id":"s2","type":"function","function":{"name":"find","arguments":"{}"}}`

💬:\x20
"""


async def test_a_reply_continues_where_it_broke_off_after_a_call_that_others_ran() -> None:
    outcome, requests = await replayed(parse(RESUMED))
    assert outcome == Replay(2, "")
    assert requests[1][1].turns()[-1] == UserTurn(GO_ON)


async def test_requests_use_todays_settings() -> None:
    _, requests = await replayed(parse(CHAT), settings={"system_prompt": "Be kind."})
    assert all(request.system.startswith("Be kind.") for _, request in requests)


async def test_a_long_chat_is_read_piece_by_piece() -> None:
    chat = "".join(f"💬: {number}\n\n🤖:[Demo]\n\nYes.\n\n" for number in range(300))
    outcome, _ = await replayed(parse(chat))
    assert outcome == Replay(300, "")
