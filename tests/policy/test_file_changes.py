"""Changes by file, the exchanges that they come from, and changes that were never made."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.chat.transcript import Proposal, Result
from parley.policy.file_changes import (
    CallPlace,
    ChangingCall,
    by_file,
    not_made,
    of_exchange,
    places,
)
from parley.policy.reverts import ChangeKind, ChangeState, RecordedChange, histories
from tests.chats import answer, asked, call, chat, ran

A, B = Path("/p/a"), Path("/p/b")


def change(
    number: int,
    path: Path = A,
    before: str = "0",
    after: str = "1",
    *,
    to: Path | None = None,
    reverts: int | None = None,
    call: str = "call_1",
    state: ChangeState = "done",
) -> RecordedChange:
    kind: ChangeKind = "edit" if reverts is None else "revert"
    root = Path("/p")
    return RecordedChange(
        call, kind, root, path, before, after, 0o644, to, reverts, number, 1.0, state
    )


def test_a_moved_file_keeps_its_changes_and_a_new_file_with_its_old_name_is_another_file() -> None:
    edits = [
        change(1),
        change(2, before="1", after="1", to=B),
        change(3, before="", after="7"),
        change(4, B, "1", "2"),
    ]
    moved, new = by_file(histories(edits))
    assert [each.change.number for each in moved.histories] == [1, 2, 4]
    assert (moved.number, moved.place, moved.first.path, moved.after) == (1, B, A, "2")
    assert (new.number, new.place, new.after) == (3, A, "7")


def test_a_reverted_move_gives_the_file_its_old_place_back() -> None:
    edits = [change(1, to=B, after="0"), change(2, B, "0", "0", to=A, reverts=1)]
    (file,) = by_file(histories(edits))
    assert (file.place, file.standing, len(file.reverted)) == (A, (), 1)


def test_a_change_belongs_to_the_exchange_of_its_run_although_ids_repeat() -> None:
    same, other = '{"query":"x"}', '{"query":"y"}'
    transcript = chat(
        answer(ran(1)),
        answer(asked(1, "yn", Result("refused", "no"), arguments=other)),
        answer(ran(1, arguments=other)),
        answer(ran(1)),
    )
    calls = {
        1: ChangingCall("workspace", "edit_file", same, 1),
        2: ChangingCall("workspace", "edit_file", other, 2),
        3: ChangingCall("workspace", "edit_file", same, 2),
        4: ChangingCall("workspace", "edit_file", "{}", 1),
    }
    lost = change(5, call="gone")
    found = places(transcript, [*(change(n) for n in calls), lost], calls)
    assert {number: place.exchange for number, place in found.items()} == {
        1: 1,
        2: 3,
        3: 4,
        4: 1,
        5: 0,
    }
    assert (found[1].tool, found[5]) == ("edit_file", CallPlace(0, ""))
    chosen = of_exchange(histories([change(1), change(3)]), found, 4)
    assert [each.change.number for each in chosen] == [3]


def test_a_change_by_a_call_that_an_agent_ran_belongs_to_its_exchange() -> None:
    transcript = chat(answer(ran(1)), answer(Proposal(call(2), ran_by="agent")))
    found = places(transcript, [change(1, call="call_2")], {})
    assert found == {1: CallPlace(2, "web_search")}


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        ([change(1, state="begun")], {A: "0"}, {1}),
        ([change(1, state="begun")], {A: "1"}, set()),
        ([change(1, state="begun")], {A: "mine"}, set()),
        ([change(1, state="begun"), change(2)], {A: "1"}, {1}),
        ([change(1, state="begun"), change(2, before="1", after="0")], {A: "0"}, set()),
        ([change(1, state="begun", after="0", to=B)], {A: "0", B: ""}, {1}),
        ([change(1, state="begun", after="0", to=B)], {A: "0", B: "0"}, set()),
        ([change(1, state="begun", after="0", to=B), change(2, B)], {A: "", B: "1"}, set()),
        (
            [change(1, to=B, after="0"), change(2, B, "0", "0", to=A, reverts=1, state="begun")],
            {A: "0", B: "0"},
            {2},
        ),
        ([change(1)], {}, set()),
    ],
)
def test_a_change_was_not_made_if_the_file_still_had_its_old_content(
    changes: list[RecordedChange], now: dict[Path, str], expected: set[int]
) -> None:
    assert not_made(changes, now) == expected
