"""Calls that were not shown, or that may have run, cause a warning first: the user decides what was
shown.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from parley.chat.edits import written_calls
from parley.chat.transcript import Proposal
from parley.policy.approval import Approvals, LedgerView, departed, written_key
from parley.policy.doubts import (
    LEAST_SEEN_S,
    MAY_HAVE_RUN,
    ONCE_MORE,
    Doubt,
    Seen,
    Sighting,
    caution,
    cautions,
    doubts,
    message,
    sighting,
    why_asked,
)
from parley.policy.plan import AwaitChoices
from parley.policy.rules import Pattern, Rules
from parley.tools.catalogue import Catalogue
from tests.chats import SEARCH, TOOLS, answer, asked, chat, key, ran, step, tool, view, yes

CALL = asked(1)
DRAWN = Sighting(written_key(CALL), SEARCH.digest)
BLIND = replace(DRAWN, digest="")
"""A call drawn before any server has started."""
USED = yes(CALL, state="used")
CLOSED = yes(CALL, state="closed")
PROPOSED = (key(CALL),)
STARTED_ONCE = ((CALL.call.id, CALL.call.arguments, "started 1"),)
OTHER = Catalogue.of([tool(description="Search, and tell everybody.")])


def doubts_of(
    known: LedgerView,
    sightings: set[Sighting] | None,
    *calls: Proposal,
    catalogue: Catalogue = TOOLS,
    seconds: float = LEAST_SEEN_S,
) -> list[str]:
    """The kinds of doubts about approving calls in one answer."""
    approvals = Approvals(chat(answer(*(calls or (CALL,)))), catalogue, known)
    seen = None if sightings is None else Seen(dict.fromkeys(sightings, seconds))
    return [
        doubt.kind
        for doubt in doubts([c for c in calls or (CALL,) if not c.result], approvals, seen)
    ]


def test_a_call_that_was_seen_in_its_present_form_is_decided_at_once() -> None:
    assert doubts_of(view(), {DRAWN}) == []
    assert doubts_of(view(), None) == []


@pytest.mark.parametrize("drawn", [DRAWN, BLIND])
def test_a_call_that_has_just_appeared_is_not_decided(drawn: Sighting) -> None:
    proposed = replace(view(), proposed=PROPOSED)
    assert doubts_of(proposed, {drawn}, seconds=LEAST_SEEN_S - 0.01) == ["early"]
    assert doubts_of(proposed, {drawn}, seconds=LEAST_SEEN_S) == []
    other = replace(DRAWN, call=("call_2", "web_search", CALL.call.arguments))
    approvals = Approvals(chat(answer(CALL)), TOOLS, proposed)
    (doubt,) = doubts([CALL], approvals, Seen({drawn: 0.1, other: 60.0}))
    assert doubt.kind == "early"
    assert doubts([CALL], approvals, Seen({drawn: 0.1}, least=0.0)) == []
    assert message([doubt], "ya") == "web_search has just appeared: read it, then press ya again"


def test_a_warning_that_has_just_appeared_does_not_count() -> None:
    told = replace(view(USED, wrote=(CALL,)), warnings=STARTED_ONCE)
    warned = replace(DRAWN, starts=1, has_warning=True)
    assert doubts_of(told, {warned, DRAWN}, seconds=0.08) == ["early"]
    assert doubts_of(told, {warned}) == []


STARTED = {
    "used, and no result in the file": view(USED, wrote=(CALL,)),
    "used for a tool defined otherwise": view(yes(CALL, tool(description="Older."), state="used")),
    "regenerated, and back in the file": view(CLOSED),
}


@pytest.mark.parametrize("known", STARTED.values(), ids=STARTED)
@pytest.mark.parametrize("sightings", [None, {DRAWN}, {replace(DRAWN, starts=1)}])
def test_the_first_approval_of_a_started_call_warns(
    known: LedgerView, sightings: set[Sighting] | None
) -> None:
    assert doubts_of(known, sightings) == ["started"]
    told = replace(known, warnings=((CALL.call.id, CALL.call.arguments, "started 1"),))
    drawn = replace(DRAWN, starts=1, has_warning=True)
    assert doubts_of(told, sightings and {drawn}) == []
    if sightings:  # pressed before the warning was drawn
        assert doubts_of(told, sightings) == ["unseen"]


def test_one_warning_is_for_one_more_run() -> None:
    told = ((CALL.call.id, CALL.call.arguments, "started 1"),)
    assert doubts_of(replace(view(USED, USED), warnings=told), None) == ["started"]


def test_new_calls_get_no_ids_of_calls_whose_results_are_gone() -> None:
    assert departed(chat(answer(CALL)), view(USED)) == {"call_1"}
    assert departed(chat(answer(ran(1))), view(USED)) == frozenset()
    assert departed(chat(answer(asked(2))), view(CLOSED)) == {"call_1"}
    written = written_calls([CALL.call, asked(2).call], {"call_1", "call_1.2"})
    assert [call.id for call in written] == ["call_1.3", "call_2"]


def test_no_rule_runs_a_call_that_regenerating_removed_and_an_undo_restored() -> None:
    made = step(chat(answer(CALL)), view=view(CLOSED), rules=Rules((Pattern("*/*"),)))
    assert made == AwaitChoices((CALL,))


def test_a_recorded_approval_still_counts() -> None:
    marked = asked(1, "ya")
    assert doubts_of(view(USED, yes(CALL)), set(), marked) == []


UNSEEN = {
    "it was not on the screen": set[Sighting](),
    "its arguments were changed": {replace(DRAWN, call=("call_1", "web_search", '{"query":"y"}'))},
    "its name was changed": {replace(DRAWN, call=("call_1", "read_file", CALL.call.arguments))},
    "its id was changed": {replace(DRAWN, call=("call_2", "web_search", CALL.call.arguments))},
}


@pytest.mark.parametrize("sightings", UNSEEN.values(), ids=UNSEEN)
def test_a_call_that_was_not_seen_in_its_present_form_is_not_decided(
    sightings: set[Sighting],
) -> None:
    assert doubts_of(view(), sightings) == ["unseen"]
    assert doubts_of(view(), sightings | {DRAWN}) == []


def test_a_call_drawn_without_its_tool_is_decided_if_the_model_called_this_tool() -> None:
    proposed = replace(view(), proposed=PROPOSED)
    assert doubts_of(proposed, {BLIND}) == []
    assert doubts_of(proposed, {BLIND}, catalogue=OTHER) == ["redefined"]
    assert doubts_of(view(), {BLIND}) == ["redefined"]
    assert doubts_of(proposed, {DRAWN}, catalogue=OTHER) == ["redefined"]
    assert (
        doubts_of(proposed, {replace(DRAWN, digest=OTHER.tools[0][1].digest)}, catalogue=OTHER)
        == []
    )


def test_without_a_screen_a_tool_changed_since_the_call_is_reported_once() -> None:
    proposed = replace(view(), proposed=PROPOSED)
    assert doubts_of(proposed, None) == []
    assert doubts_of(proposed, None, catalogue=OTHER) == ["redefined"]
    digest = OTHER.tools[0][1].digest
    told = replace(proposed, warnings=((CALL.call.id, CALL.call.arguments, f"defined {digest}"),))
    assert doubts_of(told, None, catalogue=OTHER) == []


def test_the_message_names_the_tool_the_key_and_the_number_of_further_calls() -> None:
    approvals = Approvals(chat(answer(CALL, asked(2))), TOOLS, view(USED))
    both = doubts([CALL, asked(2)], approvals, Seen())
    assert [doubt.kind for doubt in both] == ["started", "unseen"]
    assert message(both, "ya") == (
        "web_search may have run: no result in the file. ya reruns it (1 more)"
    )
    assert sighting(CALL, approvals) == replace(DRAWN, starts=1)
    long = asked(1, arguments='{"query":"' + "x" * 500 + '"}')
    assert len(message([Doubt(long, "unseen")], "ya")) < 160


REASONS = {
    "it may already have run": (CALL, view(USED), TOOLS),
    "the tool's definition has changed since the call was proposed": (
        CALL,
        replace(view(), proposed=PROPOSED),
        OTHER,
    ),
    "its mark [ya] was not set here for this exact call": (
        asked(1, "ya"),
        view(wrote=(CALL,)),
        TOOLS,
    ),
    "it was not proposed here by a model, or it was refused before": (CALL, view(), TOOLS),
    "no rule allows it, and no choice is remembered for the tool": (
        CALL,
        view(wrote=(CALL,)),
        TOOLS,
    ),
}


@pytest.mark.parametrize(("reason", "case"), REASONS.items(), ids=REASONS)
def test_a_waiting_call_says_why_the_user_decides(
    reason: str, case: tuple[Proposal, LedgerView, Catalogue]
) -> None:
    call, known, catalogue = case
    assert why_asked(call, Approvals(chat(answer(call)), catalogue, known), Rules()) == reason


@pytest.mark.parametrize(
    ("known", "warning"),
    [
        (view(), ""),
        (view(USED), MAY_HAVE_RUN),
        (replace(view(USED), warnings=STARTED_ONCE), ONCE_MORE),
    ],
)
def test_a_call_that_may_have_run_has_a_warning_on_its_line(
    known: LedgerView, warning: str
) -> None:
    approvals = Approvals(chat(answer(ran(2), CALL)), TOOLS, known)
    proposal = approvals.transcript.exchanges[0].answers[0].segments[-1]
    assert isinstance(proposal, Proposal)
    assert caution(proposal, approvals) == warning
    warnings = [(problem.line, problem.message) for problem in cautions(approvals)]
    assert warnings == ([(proposal.span.start, warning)] if warning else [])
