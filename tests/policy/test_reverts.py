"""Which changes are in effect after any series of changes and reverts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from parley.policy.reverts import (
    ChangeKind,
    RecordedChange,
    histories,
    of_calls,
    of_file,
    reverted,
)


def change(number: int, reverts: int | None = None) -> RecordedChange:
    kind: ChangeKind = "edit" if reverts is None else "revert"
    return RecordedChange(
        "c1", kind, Path("/"), Path("/a"), "x", "y", reverts=reverts, number=number
    )


@given(st.lists(st.integers(0, 9)))
def test_each_revert_toggles_the_change_that_it_is_about(steps: list[int]) -> None:
    changes, is_reverted = list[RecordedChange](), dict[int, bool]()
    for which in steps:
        known, number = histories(changes), len(changes) + 1
        if which < len(known):
            about = known[which]
            changes.append(change(number, about.last.number))
            is_reverted[about.change.number] ^= True
        else:
            changes.append(change(number))
            is_reverted[number] = False
    after = histories(changes)
    assert {each.change.number: each.is_reverted for each in after} == is_reverted
    assert [each.change.number for each in after] == sorted(is_reverted)


def test_a_revert_of_an_unknown_change_is_ignored() -> None:
    assert histories([change(5, reverts=4)]) == []


def test_a_revert_of_a_revert_is_the_change_again() -> None:
    first = RecordedChange(
        "c1", "edit", Path("/"), Path("/a"), "x", "y", 0o755, Path("/b"), number=1
    )
    back = replace(reverted(first), number=2)
    assert (back.path, back.moved_to, back.before, back.after) == (Path("/b"), Path("/a"), "y", "x")
    assert reverted(back) == replace(first, kind="revert", reverts=2, number=0)
    assert of_file([first, back], Path("/b")) == [first, back]
    assert of_calls([first, back], {"c1"}) == [first, back]
    assert of_calls([first, back], {"c2"}) == []
