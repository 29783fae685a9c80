"""The choice keys in one table: the calls that each key decides, for both meanings of the keys."""

from __future__ import annotations

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import CHOICES, Choice, Proposal, Text, Transcript
from parley.policy.approval import Approvals, LedgerView
from parley.policy.choice import Chosen, Scope, chosen, continued_at, exchange_at, open_calls
from tests.chats import OK, TOOLS, answer, asked, call, chat, ran, view, yes

FOUR = chat(
    answer(
        Text("I look."),
        asked(1),
        asked(2, name="read_file"),
        asked(3),
        asked(4, "ya", name="read_file"),
    )
)
"""Calls 1 and 3 use one tool, 2 and 4 another; 4 is approved."""
DECIDED = view(yes(asked(4, name="read_file"), TOOLS.tools[0][1]))

TABLE: dict[Scope, dict[Choice, tuple[str, str, str]]] = {
    "letter": {
        "ya": ("1 2 3", "1 2 3", "1 2 3"),
        "yA": ("1 2 3", "1 2 3", "1 2 3"),
        "yo": ("1", "2", "4"),
        "yO": ("1 3", "2", "4 2"),
        "yn": ("1", "2", "4"),
        "yN": ("1 2 3", "1 2 3", "1 2 3"),
    },
    "case": {
        "ya": ("1", "2", "4"),
        "yA": ("1 2 3", "1 2 3", "1 2 3"),
        "yo": ("1", "2", "4"),
        "yO": ("1 2 3", "1 2 3", "1 2 3"),
        "yn": ("1", "2", "4"),
        "yN": ("1 2 3", "1 2 3", "1 2 3"),
    },
}
"""The calls that a key decides with the cursor on call 1, 2 and 4."""


def press(
    transcript: Transcript, line: int, key: Choice, scope: Scope, known: LedgerView = DECIDED
) -> Chosen:
    exchange = transcript.exchanges[-1]
    return chosen(exchange, line, key, scope, Approvals(transcript, TOOLS, known))


def ids(chosen: Chosen) -> str:
    return " ".join(
        c.call.id[-1] if isinstance(c, Proposal) else "broken" for c in chosen.proposals
    )


@pytest.mark.parametrize("key", CHOICES)
@pytest.mark.parametrize("scope", ["letter", "case"])
def test_a_key_decides_these_calls(scope: Scope, key: Choice) -> None:
    lines = [p.span.start for p in FOUR.exchanges[0].answers[0].proposals]
    pressed = tuple(ids(press(FOUR, lines[n], key, scope)) for n in (0, 1, 3))
    assert pressed == TABLE[scope][key]


@pytest.mark.parametrize("key", CHOICES)
@pytest.mark.parametrize("scope", ["letter", "case"])
def test_a_key_for_a_named_call_decides_only_that_call(scope: Scope, key: Choice) -> None:
    line = FOUR.exchanges[0].answers[0].proposals[1].span.start
    decided = chosen(FOUR.exchanges[0], line, key, scope, Approvals(FOUR, TOOLS, DECIDED), "one")
    assert ids(decided) == "2"


@pytest.mark.parametrize("key", CHOICES)
@pytest.mark.parametrize("scope", ["letter", "case"])
def test_away_from_the_calls_only_the_keys_for_all_decide(scope: Scope, key: Choice) -> None:
    made = press(FOUR, 2, key, scope)
    if len(set(TABLE[scope][key])) == 1:
        assert ids(made) == "1 2 3"
    else:
        assert made == Chosen(
            message=f"{key} applies to the tool call under the cursor: put the cursor on its ❓ line"
        )


def test_if_all_is_decided_the_keys_for_all_say_so() -> None:
    transcript = chat(answer(asked(1, "ya")))
    known = view(yes(asked(1)))
    assert press(transcript, 2, "ya", "letter", known) == Chosen(
        message="every tool call here is already decided"
    )
    assert ids(press(transcript, 4, "yo", "letter", known)) == "1"


def test_a_mark_without_an_entry_must_still_be_decided() -> None:
    assert ids(press(FOUR, 0, "ya", "letter", view())) == "1 2 3 4"


@pytest.mark.parametrize(
    "transcript",
    [
        chat(answer(ran(1))),
        chat(answer(Text("done"))),
        parse("💬: q\n"),
        chat(answer(asked(1), Text("later"))),
    ],
)
def test_if_nothing_waits_a_key_says_so(transcript: Transcript) -> None:
    made = press(transcript, 4, "ya", "letter")
    assert made == Chosen(message="no tool call is waiting for a choice here")


def test_a_call_with_a_result_is_not_decided_again() -> None:
    transcript = chat(answer(ran(1), asked(2)))
    line = transcript.exchanges[0].answers[0].proposals[0].span.start
    assert press(transcript, line, "yn", "letter", view()).proposals == ()
    assert ids(press(transcript, line, "ya", "letter", view())) == "2"


def test_only_the_last_round_can_be_decided() -> None:
    transcript = chat(answer(asked(1), Text("more"), asked(1)))
    (first, second) = transcript.exchanges[0].answers[0].proposals
    assert open_calls(transcript.exchanges[0]) == [second]
    assert press(transcript, first.span.start, "yo", "letter", view()).proposals == ()


def test_an_unreadable_call_waits_until_it_is_declined() -> None:
    transcript = parse("💬: q\n\n🤖:[A]\n\n❓: {broken\n")
    assert ids(press(transcript, 4, "yN", "letter")) == "broken"
    declined = parse("💬: q\n\n🤖:[A]\n\n❓:[yn] {broken\n")
    assert press(declined, 4, "yN", "letter").proposals == ()


@pytest.mark.parametrize(("line", "number"), [(0, 0), (1, 0), (2, 0), (3, 1), (99, 1)])
def test_a_line_is_in_the_exchange_that_began_above(line: int, number: int) -> None:
    assert exchange_at(parse("preamble\n💬: a\nmore\n💬: b\n"), line) == number


STOPPED = "💬: a\n\n🤖:[A]\n\nsome\n\n🔒: [Stopped: by the user]\n\n💬: "
ANSWERED = "💬: a\n\n🤖:[A]\n\nall\n\n💬: "
WAITING = "💬: a\n\n🤖:[A]\n\n❓:[yn] {broken\n\n💬: "


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (STOPPED, 0),
        (f"{STOPPED}b", 1),
        (f"{STOPPED}\n\n💬: b", 1),
        (ANSWERED, 1),
        (WAITING, 1),
        ("💬: ", 0),
        ("💬: \n\n💬: ", 1),
    ],
)
def test_only_a_stopped_answer_is_continued_from_the_empty_question_at_the_end(
    text: str, number: int
) -> None:
    assert continued_at(parse(text), 1 if text.count("💬") > 1 else 0) == number


SEARCHED = chat(
    answer(
        Text("I look."),
        Proposal(call(1), result=OK, ran_by="provider"),
        Proposal(call(2), ran_by="agent"),
        asked(3),
    )
)
"""Calls 1 and 2 were run by others."""


@pytest.mark.parametrize("key", CHOICES)
@pytest.mark.parametrize("scope", ["letter", "case"])
def test_on_a_call_that_others_ran_a_key_says_so_and_approves_nothing(
    scope: Scope, key: Choice
) -> None:
    provided, of_agent, _ = SEARCHED.exchanges[0].answers[0].calls
    assert provided.result is not None
    for line in (provided.span.start, provided.result.span.end - 1, of_agent.span.start):
        made = press(SEARCHED, line, key, scope, view())
        who = "agent" if line == of_agent.span.start else "provider"
        assert made == (
            Chosen((SEARCHED.exchanges[0].answers[0].proposals[0],))
            if key == "yN"  # declines all calls that wait
            else Chosen(message=f"this call was run by the {who}: there is nothing to decide")
        )


@pytest.mark.parametrize("key", CHOICES)
def test_no_key_decides_on_a_call_that_others_ran(key: Choice) -> None:
    lines = range(SEARCHED.exchanges[0].span.end)
    decided = {ids(press(SEARCHED, line, key, "letter", view())) for line in lines}
    assert decided <= {"", "3"}
