"""The laws of the next step: every file has a next step, which never exceeds its permissions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from parley.chat import edits
from parley.chat.edits import apply_edits
from parley.chat.reader import parse, split_lines
from parley.chat.rounds import is_resumption, rounds
from parley.chat.transcript import CHOICES, YES, Proposal, Segment, Thinking, Transcript
from parley.chat.writer import render
from parley.policy.approval import (
    Approvals,
    CallKey,
    Entry,
    LedgerView,
    all_proposals,
    call_key,
    unclaimed,
    written_key,
)
from parley.policy.choice import REACH, chosen
from parley.policy.plan import (
    AskModel,
    AwaitChoices,
    AwaitQuestion,
    Complete,
    Decide,
    Resume,
    RunTools,
    Settle,
    Situation,
    StartAnswer,
    next_step,
    waiting,
)
from parley.policy.rules import Pattern, Rules
from parley.policy.turn_limits import Limits
from parley.tools.catalogue import Catalogue, Tool
from tests.examples import examples
from tests.strategies import files

moderate = examples(40)

TOOLS = [
    Tool("demo", "web_search", input_schema={"type": "object"}),
    Tool("server", "tool", input_schema={"type": "object", "required": ["query"]}, trusted=True),
    Tool(
        "odd",
        "x",
        input_schema={"type": ["nonsense"]},
        annotations={"readOnlyHint": True},
        trusted=True,
    ),
]
catalogues = st.lists(st.sampled_from(TOOLS), unique_by=lambda t: t.name).map(Catalogue.of)
small = st.none() | st.integers(0, 3)
words = st.sampled_from(
    ["*", "*/*", "web", "web_search", "demo/*", "/(/", "/web/", "[", "server/tool", ""]
)
patterns = st.builds(
    Pattern, words, st.sampled_from([{}, {"query": ".*"}, {"query": "("}, {"a": "x"}])
)
several = st.lists(patterns, max_size=2).map(tuple)
rules = st.builds(Rules, several, several, st.booleans())
limits = st.builds(
    Limits,
    per_message=small,
    per_session=small,
    max_iterations=st.integers(1, 4),
    max_consecutive_errors=st.integers(1, 3),
    max_tools_per_request=st.integers(0, 5),
    blocked=st.lists(words, max_size=1).map(tuple),
)
STATES: Any = st.sampled_from(["live", "used", "revoked"])
BY: Any = st.sampled_from(["key", "command", "memory", "auto"])


@st.composite
def views(draw: st.DrawFn, transcript: Transcript, catalogue: Catalogue) -> LedgerView:
    """A possible ledger: approvals for calls in the file, some of them for slightly different
    calls.
    """
    entries = list[Entry]()
    proposals = [p for e in transcript.exchanges for answer in e.answers for p in answer.calls]
    for proposal in proposals:
        tool = catalogue.get(proposal.call.name) or TOOLS[0]
        for _ in range(draw(st.integers(0, 2))):
            bound = call_key(proposal, tool)
            off = draw(st.sampled_from(["", "", "", "id", "server", "tool", "arguments", "digest"]))
            bound = replace(bound, **{off: "another"}) if off else bound
            entries.append(Entry(bound, draw(st.sampled_from(sorted(YES))), draw(BY), draw(STATES)))
    written = [p for p in proposals if draw(st.booleans())]
    return LedgerView(tuple(entries), tuple(map(written_key, written)))


def _call(mark: str, index: int, call_id: str, name: str, arguments: str) -> str:
    function = f'{{"name":"{name}","arguments":"{arguments}"}}'
    return f'❓:{mark} `{{"index":{index},"id":"{call_id}","function":{function}}}`'


calls = st.builds(
    _call,
    st.sampled_from(
        ["", "", "[ya]", "[ya]", "[yA]", "[yO]", "[yn]", "[zz]", "[provider]", "[agent]"]
    ),
    st.integers(0, 2),
    st.sampled_from(["call_1", "call_2"]),
    st.sampled_from(["web_search", "tool", "x", "nowhere"]),
    st.sampled_from(["", "{}", "[", '{\\"query\\":\\"a\\"}']),
)
pieces = st.one_of(
    calls,
    calls,
    st.sampled_from(
        [
            *[
                "🛠️: [x][call_1]\n\n`r`",
                "🛠️: [x][call_2][error]\n\n`r`",
                "🛠️: [x][call_1][refused]\n```",
            ],
            *[
                "text",
                "🔒: note",
                "🔒: [Interrupted: x]",
                "🔒: [Resumed after: x]",
                "❓: {",
                "🧠:[a:b]\n> hm",
            ],
            *[
                "💬: q\n\n🤖:[A]",
                "🤖:",
                "💬:",
                "🛠️: [x][call_2][refused]\n\n`Unknown tool 'nowhere'`",
            ],
        ]
    ),
)
calling = st.lists(pieces, min_size=1, max_size=8).map(
    lambda parts: "💬: q\n\n🤖:[A]\n\n" + "\n\n".join(parts)
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    text = draw(st.one_of(calling, calling, calling, files))
    transcript = parse(text)
    assume(transcript.exchanges)
    at = draw(st.integers(0, len(transcript.exchanges) - 1))
    catalogue = draw(catalogues)
    view = draw(views(transcript, catalogue))
    return Situation(transcript, at, catalogue, view, draw(limits), draw(rules))


def _live(situation: Situation, proposal: Proposal) -> bool:
    """Whether an approval matches in every detail, determined without the tested code."""
    tool = situation.catalogue.get(proposal.call.name)
    assert tool
    made = proposal.call
    wanted = CallKey(made.id, tool.server, tool.name, made.arguments, tool.digest)
    return any(e.state == "live" and e.key == wanted for e in situation.view.entries)


def _last_open(situation: Situation) -> list[Proposal]:
    last = rounds(situation.exchange.answers[-1])[-1]
    return [p for p in last.proposals if p.result is None]


@moderate
@given(situations())
def test_every_file_has_a_next_step_within_its_bounds(situation: Situation) -> None:
    match next_step(situation):
        case RunTools(proposals):
            assert proposals
            assert list(proposals) == _last_open(situation)
            assert all(p.choice in YES and _live(situation, p) for p in proposals)
        case Settle(results):
            assert results
            assert all(p in _last_open(situation) for p, _ in results)
            assert all(result.status == "refused" for _, result in results)
        case Decide(decisions):
            for decision in decisions:
                assert decision.proposal in _last_open(situation)
                assert decision.proposal.choice is None
                assert written_key(decision.proposal) in situation.view.proposals
        case AwaitChoices(calls):
            assert calls
            assert all(call in waiting(situation.exchange.answers[-1]) for call in calls)
        case AskModel() | Complete() | StartAnswer() | AwaitQuestion():
            assert not situation.exchange.answers or not waiting(situation.exchange.answers[-1])


@moderate
@given(situations())
def test_without_a_live_entry_nothing_runs_whatever_the_file_says(situation: Situation) -> None:
    dead = tuple(e for e in situation.view.entries if e.state != "live")
    step = next_step(replace(situation, view=replace(situation.view, entries=dead)))
    assert not isinstance(step, RunTools)


@moderate
@given(situations())
def test_a_strangers_file_is_never_decided_without_asking(situation: Situation) -> None:
    assert not isinstance(next_step(replace(situation, view=LedgerView())), RunTools | Decide)


@moderate
@given(situations())
def test_only_live_approvals_of_calls_that_will_not_run_are_revoked(
    situation: Situation,
) -> None:
    undone = unclaimed(situation.transcript, situation.view, situation.at)
    live = {e.key.id for e in situation.view.entries if e.state == "live"}
    assert undone <= live
    kept = tuple(e for e in situation.view.entries if e.state != "live" or e.key.id not in undone)
    after = replace(situation, view=replace(situation.view, entries=kept))
    assert unclaimed(after.transcript, after.view, after.at) == frozenset()


@moderate
@given(situations())
def test_a_call_that_others_ran_never_waits_or_runs_or_is_refused(situation: Situation) -> None:
    match next_step(situation):
        case AwaitChoices(calls) | RunTools(calls):
            named = [call for call in calls if isinstance(call, Proposal)]
        case Settle(results):
            named = [proposal for proposal, _ in results]
        case Decide(decisions):
            named = [decision.proposal for decision in decisions]
        case _:
            named = []
    assert not any(call.ran_by for call in named)
    open_calls = [c for e in situation.transcript.exchanges for a in e.answers for c in waiting(a)]
    assert not any(isinstance(call, Proposal) and call.ran_by for call in open_calls)
    undone = unclaimed(situation.transcript, situation.view, situation.at)
    without = replace(situation, transcript=_thinking_instead(situation.transcript))
    assert unclaimed(without.transcript, without.view, without.at) == undone


@moderate
@given(situations())
def test_a_call_that_others_ran_counts_and_approves_no_more_than_thinking(
    situation: Situation,
) -> None:
    """A broken-off reply is the only exception: such a call stays, and thinking does not."""
    segments = [s for answer in situation.exchange.answers for s in answer.segments]
    assume(not any(map(is_resumption, segments)))
    without = replace(situation, transcript=_thinking_instead(situation.transcript))
    assert next_step(without) == next_step(situation)


def _thinking_instead(transcript: Transcript) -> Transcript:
    """The chat with thinking in place of each call that others ran."""

    def instead(segment: Segment) -> Segment:
        is_ran = isinstance(segment, Proposal) and segment.ran_by
        return Thinking("a", "b", "hm") if is_ran else segment

    exchanges = tuple(
        replace(
            exchange,
            answers=tuple(
                replace(answer, segments=tuple(map(instead, answer.segments)))
                for answer in exchange.answers
            ),
        )
        for exchange in transcript.exchanges
    )
    return replace(transcript, exchanges=exchanges)


later = st.sampled_from(
    ["🤖:[B]", "🤖:", "💬: next", "💬: next\n\n🤖:[B]", "text\n\n❓: `{}`\n\n🤖:[B]"]
)


@moderate
@given(
    st.sampled_from(sorted(YES)),
    st.lists(pieces.filter(lambda piece: piece != "💬:"), max_size=3),
    later,
    st.lists(pieces, max_size=4),
)
def test_an_approval_in_an_older_answer_is_revoked(
    choice: str, before: list[str], marker: str, after: list[str]
) -> None:
    """The call is marked and waits, but in an older answer, or not in the current exchange."""
    old = _call(f"[{choice}]", 2, "call_old", "web_search", "{}")
    transcript = parse("\n\n".join(["💬: q", "🤖:[A]", *before, old, marker, *after]) + "\n")
    proposal = next(p for p in all_proposals(transcript) if p.call.id == "call_old")
    assert proposal.result is None
    entries = (Entry(call_key(proposal, TOOLS[0]), proposal.choice or "ya", "key", "live"),)
    holders = [
        number
        for number, exchange in enumerate(transcript.exchanges)
        if any(proposal in each.proposals for each in exchange.answers)
    ]
    is_last = proposal in transcript.exchanges[holders[0]].answers[-1].proposals
    since = holders[0] + 1 if is_last else 0
    assert unclaimed(transcript, LedgerView(entries), since) == {"call_old"}


def _carried_out(situation: Situation, text: str) -> str | None:
    """The file after a step that needs no user; None if the step needs the user."""
    lines, answer = split_lines(text), situation.exchange.answers and situation.exchange.answers[-1]
    match next_step(situation):
        case Settle(results) if answer:
            edited = [edits.put_result(lines, p, result) for p, result in results]
        case Resume() if answer:
            edited = edits.drop_unfinished(lines, answer)
        case _:
            return None
    return "".join(line + "\n" for line in apply_edits(lines, edited))


@moderate
@given(situations())
def test_steps_that_need_no_user_come_to_an_end(situation: Situation) -> None:
    text = render(situation.transcript)
    situation = replace(situation, transcript=parse(text))
    for _ in range(20):
        after = _carried_out(situation, text)
        if after is None:
            return
        text, situation = after, replace(situation, transcript=parse(after))
    raise AssertionError(f"still not at an end:\n{text}")


@moderate
@given(situations(), st.sampled_from(CHOICES), st.data())
def test_a_key_decides_only_waiting_calls_in_the_exchange_under_the_cursor(
    situation: Situation, key: Any, data: st.DataObject
) -> None:
    exchange = situation.exchange
    calls = waiting(exchange.answers[-1]) if exchange.answers else []
    lines = [c.span.start for c in calls] or [exchange.span.start]
    line = data.draw(st.sampled_from(lines))
    approvals = Approvals(situation.transcript, situation.catalogue, situation.view)
    for scope in REACH:
        made = chosen(exchange, line, key, scope, approvals)
        assert bool(made.proposals) != bool(made.message)
        assert all(call in calls for call in made.proposals)
        if REACH[scope][key] == "one" and made.proposals:
            assert [c.span.start for c in made.proposals] == [line]
