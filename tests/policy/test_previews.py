"""A diff binds the approval: another text, a guarded path or an impossible edit changes the step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.transcript import Choice
from parley.policy.approval import Approvals, Decision, Entry, written_key
from parley.policy.doubts import LEAST_SEEN_S, Seen, doubts, sighting, why_asked
from parley.policy.plan import AwaitChoices, Decide, RunTools, Settle, Step
from parley.policy.previews import CallPreview
from parley.policy.rules import Pattern, Rules
from tests.chats import TOOLS, answer, asked, chat, key, step, view, yes

CALL, MARKED = asked(), asked(choice="ya")
BASES = st.sampled_from(["", "old", "new"])


def approved(base: str) -> Entry:
    entry = yes(MARKED)
    return replace(entry, key=replace(key(MARKED), base=base))


def approvals(
    preview: CallPreview | None, *entries: Entry, choice: Choice | None = None
) -> Approvals:
    call = asked(choice=choice)
    previews = {written_key(call): preview} if preview else {}
    return Approvals(chat(answer(call)), TOOLS, view(*entries, wrote=(CALL,)), previews)


@given(BASES, BASES, st.booleans())
def test_an_approval_counts_exactly_for_the_text_that_it_was_given_for(
    given_for: str, now: str, is_binding: bool
) -> None:
    found = approvals(
        CallPreview(base=now, is_binding=is_binding), approved(given_for), choice="ya"
    )
    counts = not is_binding or given_for == now
    assert found.standing(MARKED) == ("approved" if counts else "undecided")
    assert found.is_outdated(MARKED) == (not counts)


def test_an_outdated_approval_waits_for_the_user_and_says_why() -> None:
    known = {written_key(MARKED): CallPreview(base="new", is_binding=True)}
    ledger = view(approved("old"), wrote=(CALL,))
    waits = step(chat(answer(MARKED)), view=ledger, previews=known)
    assert isinstance(waits, AwaitChoices)
    outdated = approvals(known[written_key(MARKED)], approved("old"), choice="ya")
    assert why_asked(MARKED, outdated, Rules()).startswith("the file has changed since")
    runs = step(chat(answer(MARKED)), view=view(approved("new"), wrote=(CALL,)), previews=known)
    assert isinstance(runs, RunTools)


def test_an_impossible_edit_is_refused_without_asking_but_not_another_servers() -> None:
    def taken(*, is_binding: bool) -> Step:
        preview = CallPreview(is_binding=is_binding, problem="a.py: no such text")
        previews = {written_key(CALL): preview}
        return step(chat(answer(CALL)), view=view(wrote=(CALL,)), previews=previews)

    refused = taken(is_binding=True)
    assert isinstance(refused, Settle)
    assert [result.body for _, result in refused.results] == ["a.py: no such text"]
    assert isinstance(taken(is_binding=False), AwaitChoices)


@pytest.mark.parametrize("guard", ["", ".env is named like a secret"])
def test_no_rule_and_no_memory_decides_about_a_guarded_path(guard: str) -> None:
    rules = Rules(auto=(Pattern("*/*"),))
    previews = {written_key(CALL): CallPreview(guard=guard)}
    found = step(chat(answer(CALL)), view=view(wrote=(CALL,)), rules=rules, previews=previews)
    if guard:
        assert isinstance(found, AwaitChoices)
        assert why_asked(CALL, approvals(CallPreview(guard=guard)), Rules()) == guard
    else:
        assert isinstance(found, Decide)
        assert [type(each) for each in found.decisions] == [Decision]


def test_a_key_counts_only_for_the_diff_that_was_on_the_screen() -> None:
    old, new = (approvals(CallPreview(base=b, is_binding=True)) for b in ("old", "new"))
    seen = Seen({sighting(CALL, old): LEAST_SEEN_S})
    assert doubts([CALL], old, seen) == []
    assert [doubt.kind for doubt in doubts([CALL], new, seen)] == ["changed"]
    assert new.key(CALL, TOOLS.tools[0][1]).base == "new"
