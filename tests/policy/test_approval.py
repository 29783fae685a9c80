"""An approval is bound to the approved call, machine and user; everything else counts as undecided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.transcript import Choice, Exchange, Proposal, Question, Text, Transcript
from parley.policy.approval import (
    Approvals,
    Decision,
    Entry,
    Lapse,
    LedgerView,
    State,
    decide,
    unclaimed,
)
from parley.policy.doubts import why_asked
from parley.policy.plan import AwaitChoices, Decide, RunTools, Settle
from parley.policy.rules import Pattern, Rules
from parley.tools.catalogue import Catalogue, Tool
from tests.chats import OK, READ, SEARCH, TOOLS, answer, asked, chat, ran, step, tool, view, yes

MARKED = asked(1, "ya")
WAITING = chat(answer(MARKED))


def standing(proposal: Proposal, known: LedgerView, catalogue: Catalogue = TOOLS) -> str:
    return Approvals(chat(answer(proposal)), catalogue, known).standing(proposal)


def changed(**key: Any) -> Entry:
    entry = yes(MARKED)
    return replace(entry, key=replace(entry.key, **key))


def test_an_approval_given_here_counts_only_with_its_mark() -> None:
    """The mark was removed, by hand or by undo, so Parley asks the user again."""
    bare = asked(1)
    assert standing(bare, view(yes(MARKED))) == "undecided"
    assert isinstance(step(chat(answer(bare)), view=view(yes(MARKED))), AwaitChoices)


def test_an_approval_given_here_runs_its_call() -> None:
    known = view(yes(MARKED))
    assert standing(MARKED, known) == "approved"
    assert step(WAITING, view=known) == RunTools((MARKED,))


FORGED = [
    view(),
    view(changed(id="call_2")),
    view(changed(server="other")),
    view(changed(tool="read_file")),
    view(changed(arguments='{"query": "x"}')),
    view(changed(digest="0" * 64)),
    view(yes(MARKED, state="revoked")),
]


@pytest.mark.parametrize("known", FORGED)
def test_only_a_yes_given_here_to_this_very_call_can_be_widened(known: LedgerView) -> None:
    def can_be(known: LedgerView) -> bool:
        return Approvals(WAITING, TOOLS, known).was_approved(MARKED, SEARCH)

    assert not can_be(known)
    assert can_be(view(yes(MARKED))), "it waits for other calls"
    assert can_be(view(yes(MARKED, state="used"))), "it has run"


def test_an_undone_approval_differs_from_one_never_given_here() -> None:
    def was_taken_back(mark: Choice, known: LedgerView) -> bool:
        marked = asked(1, mark)
        return Approvals(chat(answer(marked)), TOOLS, known).was_taken_back(marked)

    undone = yes(MARKED, state="revoked")
    assert was_taken_back("ya", view(undone))
    assert not was_taken_back("yo", view(undone)), "this mark was never given"
    assert not was_taken_back("ya", view(changed(arguments="{}")))
    assert not was_taken_back("ya", view())


@pytest.mark.parametrize("known", FORGED)
@pytest.mark.parametrize("mark", ["ya", "yA", "yo", "yO"])
def test_a_mark_without_a_fully_matching_approval_is_undecided(
    known: LedgerView, mark: Choice
) -> None:
    forged = asked(1, mark)
    assert standing(forged, known) == "undecided"
    assert step(chat(answer(forged)), view=known) == AwaitChoices((forged,))


@pytest.mark.parametrize("mark", ["ya", "yA", "yo", "yO"])
def test_a_used_approval_without_a_result_may_have_run_and_only_the_user_decides(
    mark: Choice,
) -> None:
    known = view(yes(MARKED, state="used"), wrote=(MARKED,))
    rules = Rules(auto=(Pattern("*/*"),))
    for proposal in (asked(1, mark), asked(1)):
        assert standing(proposal, known) == "may have run"
        assert step(chat(answer(proposal)), view=known, rules=rules) == AwaitChoices((proposal,))


def test_a_new_approval_runs_a_call_again_that_may_have_run() -> None:
    assert standing(MARKED, view(yes(MARKED, state="used"), yes(MARKED))) == "approved"


def test_a_call_that_may_have_run_is_known_even_if_its_tool_changed() -> None:
    old = tool(description="Older.")
    assert standing(MARKED, view(yes(MARKED, old, state="used"))) == "may have run"


def test_the_same_call_in_a_later_round_is_another_call() -> None:
    first, later = ran(1), asked(1)
    known = view(yes(first, state="used"))
    transcript = chat(answer(first, later))
    assert Approvals(transcript, TOOLS, known).standing(later) == "undecided"
    assert Approvals(chat(answer(later)), TOOLS, known).standing(later) == "may have run"


def test_a_decline_counts_regardless_of_the_ledger() -> None:
    declined = asked(1, "yn")
    assert standing(declined, view(yes(declined))) == "declined"
    made = step(chat(answer(declined)), view=view(yes(declined)))
    assert isinstance(made, Settle)
    assert made.results[0][1].body == "The user declined this call."


# --- Memory ---------------------------------------------------------------------------------------


def remembering(mark: Choice, later: Proposal | None = None) -> Transcript:
    return chat(answer(replace(ran(1), choice=mark)), answer(later or asked(2)))


@pytest.mark.parametrize("mark", ["yA", "yO"])
@pytest.mark.parametrize("rule", ["key", "command"])
@pytest.mark.parametrize("state", ["live", "used"])
def test_a_capital_mark_given_here_decides_later_calls_of_the_tool(
    mark: Choice, rule: Any, state: State
) -> None:
    known = view(yes(asked(1), choice=mark, rule=rule, state=state), wrote=(asked(2),))
    made = step(remembering(mark), view=known)
    assert made == Decide(
        (Decision(asked(2), "memory", f"you remembered it with {mark} on call_1"),)
    )


NOT_REMEMBERED: dict[str, tuple[Choice, Entry, LedgerView | None]] = {
    "a small letter": ("ya", yes(asked(1)), None),
    "a capital edited into the file": ("yA", yes(asked(1), choice="ya", state="used"), None),
    "a capital edited away": ("ya", yes(asked(1), choice="yA", state="used"), None),
    "a capital without an entry": ("yA", yes(asked(3), choice="yA"), None),
    "a capital of a rule": ("yA", yes(asked(1), choice="yA", rule="auto"), None),
    "a capital of memory": ("yA", yes(asked(1), choice="yA", rule="memory"), None),
    "a capital taken back": ("yA", yes(asked(1), choice="yA", state="revoked"), None),
    "a tool defined anew": ("yA", yes(asked(1), tool(description="Older."), choice="yA"), None),
}


@pytest.mark.parametrize("why", NOT_REMEMBERED)
def test_a_tool_is_not_remembered_by(why: str) -> None:
    mark, entry, _ = NOT_REMEMBERED[why]
    known = view(entry, wrote=(asked(2),))
    assert step(remembering(mark), view=known) == AwaitChoices((asked(2),))


def test_a_proposal_that_parley_did_not_write_asks_even_for_a_remembered_tool() -> None:
    remembered = yes(asked(1), choice="yA", state="used")
    for wrote in [
        (),
        (asked(2, arguments='{"query":"y"}'),),
        (asked(3),),
        (asked(2, name="read_file"),),
    ]:
        made = step(
            remembering("yA"), view=view(remembered, wrote=wrote), rules=Rules((Pattern("*/*"),))
        )
        assert made == AwaitChoices((asked(2),))


def test_memory_applies_to_one_tool_only() -> None:
    other = asked(2, name="read_file")
    known = view(yes(asked(1), choice="yA", state="used"), wrote=(other,))
    assert step(remembering("yA", later=other), view=known) == AwaitChoices((other,))


# --- Approvals that a new definition made void ----------------------------------------------------

OLDER = tool(description="Older.")


def lapsed(transcript: Transcript, known: LedgerView) -> Lapse | None:
    proposal = transcript.exchanges[-1].answers[-1].proposals[-1]
    return Approvals(transcript, TOOLS, known).lapsed(proposal)


def test_an_approval_of_a_call_lapses_when_its_tool_changes() -> None:
    assert lapsed(WAITING, view(yes(MARKED, OLDER))) == Lapse(OLDER.digest, "approved")
    assert lapsed(WAITING, view(yes(MARKED))) is None
    assert lapsed(WAITING, view(yes(MARKED, OLDER, state="revoked"))) is None
    assert lapsed(chat(answer(asked(1))), view(yes(MARKED, OLDER))) is None


def test_memory_lapses_when_its_tool_changes_and_is_not_remembered_again() -> None:
    older = yes(asked(1), OLDER, choice="yA", state="used")
    assert lapsed(remembering("yA"), view(older)) == Lapse(OLDER.digest, "remembered")
    assert lapsed(remembering("ya"), view(older)) is None
    newer = yes(asked(1), choice="yA", state="used")
    assert lapsed(remembering("yA"), view(older, newer)) is None
    other = tool(server="other")
    assert lapsed(remembering("yA"), view(yes(asked(1), other, choice="yA", state="used"))) is None


# --- Why the user is asked ------------------------------------------------------------------------

ASKED_BECAUSE = {
    "no rule allows it, and no choice is remembered for the tool": (
        asked(2),
        view(wrote=(asked(2),)),
    ),
    "it may already have run": (asked(2), view(yes(asked(2), state="used"))),
    "the tool's definition has changed since the tool was remembered": (
        asked(2),
        view(yes(asked(1), OLDER, choice="yA", state="used"), wrote=(asked(2),)),
    ),
    "the tool's definition has changed since the call was approved": (
        asked(2, "ya"),
        view(yes(asked(2), OLDER), wrote=(asked(2),)),
    ),
    "its mark [yO] was not set here for this exact call": (
        asked(2, "yO"),
        view(wrote=(asked(2),)),
    ),
    "it was not proposed here by a model, or it was refused before": (
        asked(2),
        view(yes(asked(1), choice="yA", state="used")),
    ),
}


@pytest.mark.parametrize("why", ASKED_BECAUSE)
def test_the_user_is_asked_because(why: str) -> None:
    proposal, known = ASKED_BECAUSE[why]
    transcript = remembering("yA", proposal)
    assert step(transcript, view=known) == AwaitChoices((proposal,))
    assert why_asked(proposal, Approvals(transcript, TOOLS, known), Rules()) == why


def test_a_rule_gives_its_setting_as_the_reason() -> None:
    pattern = Pattern("demo/*", {"path": "a.*"})
    assert Rules(auto=(pattern,)).allowed(READ, '{"path":"ab"}') == (
        """approval.auto has 'demo/*' with {"path": "a.*"}"""
    )
    assert str(Pattern("demo/*")) == "'demo/*'"


# --- Rules ----------------------------------------------------------------------------------------


def test_deny_beats_remembered_beats_auto_beats_ask() -> None:
    everything = (Pattern("*/*"),)
    known = view(yes(asked(1), choice="yA", state="used"), wrote=(asked(2),))
    denied = step(remembering("yA"), view=known, rules=Rules(everything, everything))
    assert isinstance(denied, Settle)
    assert denied.results[0][1].body == "Tool web_search is denied by the rule '*/*'"
    remembered = step(remembering("yA"), view=known, rules=Rules(everything))
    assert isinstance(remembered, Decide)
    assert remembered.decisions[0].rule == "memory"
    auto = step(remembering("ya"), view=known, rules=Rules(everything))
    assert isinstance(auto, Decide)
    assert auto.decisions[0].rule == "auto"
    assert step(remembering("ya"), view=known) == AwaitChoices((asked(2),))


def test_deny_beats_an_earlier_approval() -> None:
    made = step(WAITING, view=view(yes(MARKED)), rules=Rules(deny=(Pattern("web_search"),)))
    assert isinstance(made, Settle)


TRUSTED = tool(trusted=True)
OF_PROJECT = tool(of_project=True)


@pytest.mark.parametrize(
    ("pattern", "of", "allowed", "denied"),
    [
        ("demo/web_search", SEARCH, True, True),
        ("demo/*", SEARCH, True, True),
        ("*/web_*", SEARCH, True, True),
        ("web_search", SEARCH, False, True),
        ("web_search", TRUSTED, True, True),
        ("*", SEARCH, False, True),
        ("*", TRUSTED, True, True),
        ("demo", SEARCH, False, False),
        ("dem/web_search", SEARCH, False, False),
        ("other/*", SEARCH, False, False),
        ("WEB_SEARCH", TRUSTED, False, False),
        ("demo/web", SEARCH, False, False),
        ("d*o/search", tool("o/search", server="de"), False, True),
        ("*/search", tool("a/search"), False, True),
        ("demo/*", OF_PROJECT, False, True),
        ("*/*", OF_PROJECT, False, True),
        ("project:demo/*", OF_PROJECT, True, True),
        ("project:*/web_search", OF_PROJECT, True, True),
        ("project:other/*", OF_PROJECT, False, False),
        ("project:*", OF_PROJECT, False, True),
        ("project:demo/*", SEARCH, False, False),
        ("project:*", TRUSTED, False, False),
        ("proj*", OF_PROJECT, False, False),
    ],
)
def test_a_pattern_names_these_tools(pattern: str, of: Tool, allowed: bool, denied: bool) -> None:
    assert (Rules(auto=(Pattern(pattern),)).allowed(of, "{}") is not None) == allowed
    assert (Rules(deny=(Pattern(pattern),)).denied(of, "{}") is not None) == denied


@pytest.mark.parametrize(
    ("expression", "arguments", "allowed", "denied"),
    [
        (r"/home/.*", '{"path":"/home/me"}', True, True),
        (r"/home/.*", '{"path":"/etc /home/me"}', False, False),
        (r"/home", '{"path":"/home/me"}', False, False),
        (r"/home/.*", '{"path":"/home/\\n/etc"}', False, True),
        (r"/home/.*$", '{"path":"/home/a\\n"}', False, True),
        (r".*", "{}", False, True),
        (r".*", '{"path":["/etc"]}', False, True),
        (r"5", '{"path":5}', False, True),
        (r"6", '{"path":5}', False, False),
        (r"(", '{"path":"x"}', False, True),
        (r".*", "not json", False, False),
        (r".*", '{"path":"a","path":"b"}', False, False),
    ],
)
def test_an_expression_must_match_the_whole_value_and_allows_nothing_in_doubt(
    expression: str, arguments: str, allowed: bool, denied: bool
) -> None:
    pattern = Pattern("demo/read_file", {"path": expression})
    assert (Rules(auto=(pattern,)).allowed(READ, arguments) is not None) == allowed
    assert (Rules(deny=(pattern,)).denied(READ, arguments) is not None) == denied


def test_all_expressions_of_a_pattern_must_match() -> None:
    pattern = Pattern("demo/*", {"path": "a", "mode": "r"})
    assert pattern.allows(READ, '{"path":"a","mode":"r","more":1}')
    assert not pattern.allows(READ, '{"path":"a","mode":"w"}')
    assert not pattern.forbids(READ, '{"path":"a","mode":"w"}')


@pytest.mark.parametrize(
    ("trusted", "hint", "on", "allowed"),
    [
        (True, True, True, True),
        (False, True, True, False),
        (True, False, True, False),
        (True, "true", True, False),
        (True, True, False, False),
    ],
)
def test_a_read_only_hint_counts_only_for_trusted_servers(
    trusted: bool, hint: object, on: bool, allowed: bool
) -> None:
    reader = tool(trusted=trusted, annotations={"readOnlyHint": hint})
    assert (Rules(auto_read_only=on).allowed(reader, "{}") is not None) == allowed


@given(st.text(), st.text(), st.text())
def test_no_pattern_raises(glob: str, expression: str, arguments: str) -> None:
    pattern = Pattern(glob, {"query": expression})
    Rules(auto=(pattern,), deny=(pattern,)).denied(TRUSTED, arguments)
    Rules(auto=(pattern,), deny=(pattern,)).allowed(TRUSTED, arguments)


def test_a_rule_decides_only_undecided_proposals() -> None:
    rules = Rules(auto=(Pattern("*/*"),))
    for proposal in (asked(1, "ya"), asked(1, "yn"), asked(1, name="unknown")):
        transcript = chat(answer(proposal))
        approvals = Approvals(transcript, TOOLS, view(wrote=(proposal,)))
        assert decide(proposal, approvals, rules) is None


# --- Approvals that the file no longer shows ------------------------------------------------------


@pytest.mark.parametrize(
    "proposal",
    [
        asked(1),
        asked(1, "yn"),
        asked(1, "ya", OK),
        asked(2, "ya"),
        asked(1, "ya", arguments='{"query":"y"}'),
    ],
)
def test_an_approval_is_unclaimed_when_its_call_no_longer_waits_with_its_mark(
    proposal: Proposal,
) -> None:
    transcript = chat(answer(proposal))
    assert unclaimed(transcript, view(yes(MARKED))) == {"call_1"}


def test_a_marked_call_claims_its_approval_until_the_model_continues_without_it() -> None:
    known = view(yes(MARKED))
    assert unclaimed(WAITING, known) == frozenset()
    two = chat(answer(MARKED), answer())
    assert unclaimed(two, known) == frozenset()
    assert unclaimed(two, known, since=1) == {"call_1"}
    assert unclaimed(WAITING, view(yes(asked(2), state="used"))) == frozenset()


def test_an_approval_in_an_older_answer_of_its_exchange_is_unclaimed() -> None:
    question = Question((Text("q"),))
    transcript = Transcript((Exchange(question, (answer(MARKED), answer(Text("a later answer")))),))
    assert unclaimed(transcript, view(yes(MARKED))) == {"call_1"}
    transcript = Transcript(
        (Exchange(question, (answer(Text("an older answer")), answer(MARKED))),)
    )
    assert unclaimed(transcript, view(yes(MARKED))) == frozenset()


def test_a_call_has_the_rule_of_its_last_unrevoked_approval() -> None:
    def rule(*entries: Entry) -> str:
        return Approvals(WAITING, TOOLS, view(*entries)).rule(MARKED)

    old, new = yes(MARKED, rule="key", state="used"), yes(MARKED, rule="auto")
    assert rule(old, new) == "auto"
    assert rule(old, replace(new, state="revoked")) == "key"
    assert rule(replace(old, state="revoked")) == ""
    assert rule() == ""


MISSING = Catalogue.of([READ], missing=["demo"])


@pytest.mark.parametrize("call", [asked(1), MARKED])
def test_a_call_whose_server_is_missing_waits_for_it(call: Proposal) -> None:
    known = LedgerView((yes(MARKED),), proposed=(yes(call).key,))
    assert step(chat(answer(call)), MISSING, view=known) == AwaitChoices((call,))


def test_a_call_proposed_without_a_tool_is_refused_whichever_servers_are_missing() -> None:
    assert isinstance(step(chat(answer(asked(1))), MISSING), Settle)
    known = LedgerView(proposed=(yes(asked(1)).key,))
    assert isinstance(step(chat(answer(asked(1))), Catalogue.of([READ]), view=known), Settle)
