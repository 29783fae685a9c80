"""The wire laws, for every format: providers accept each request, which has exactly the file's
content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

from hypothesis import HealthCheck, given, note
from hypothesis import strategies as st

from parley.chat.history import (
    DECLINED,
    GO_ON,
    NO_QUESTION,
    NO_REASON,
    NO_RESULT,
    NOT_APPROVED,
    OMITTED,
    ModelTurn,
    Turn,
    UserTurn,
    history,
)
from parley.chat.reader import parse
from parley.chat.rounds import rounds
from parley.chat.transcript import (
    CHOICES,
    YES,
    Answer,
    Broken,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    Segment,
    Text,
    Thinking,
    Transcript,
)
from parley.chat.writer import render
from parley.models import anthropic, openai_chat
from parley.models.encode import encoded
from parley.tools.catalogue import Catalogue
from tests.examples import examples
from tests.formats import FORMATS, Said, WireFormat, cases, own, with_answers

Case = tuple[Transcript, int]

# Transcripts are large for generated values, so some are discarded; this does not weaken a law.
loaded = examples(10, suppress_health_check=list(HealthCheck))


def for_every_wire(**drawn: Any) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """A law over generated cases, tested in every format because making a case is the costly part."""

    def decorate(law: Callable[..., None]) -> Callable[[], None]:
        def test(**values: Any) -> None:
            for form in FORMATS:
                note(form.name)
                law(form, **values)

        test.__name__ = law.__name__
        return loaded(given(case=cases(), **drawn)(test))

    return decorate


def said(form: WireFormat, case: Case, **further: Any) -> list[Said]:
    return list(form.said(form.body(form.ask(*case, **further))))


def proposals(case: Case) -> list[Proposal]:
    transcript, at = case
    answers = [answer for exchange in transcript.exchanges[: at + 1] for answer in exchange.answers]
    return [call for answer in answers for call in answer.calls if call.ran_by != "provider"]


@for_every_wire(keep=st.booleans(), on=st.booleans(), full=st.none() | st.integers(0, 3))
def test_providers_accept_every_request(
    form: WireFormat, case: Case, keep: bool, on: bool, full: int | None
) -> None:
    request = form.ask(
        own(case[0], form), case[1], keep_thinking=keep, tools_on=on, max_full_exchanges=full
    )
    assert form.check(form.body(request)) == []


@for_every_wire()
def test_law_1_every_call_is_answered_once_in_order_directly_after_it(
    form: WireFormat, case: Case
) -> None:
    spoken = said(form, case)
    runs = [
        (kind, [each[1] for each in run]) for kind, run in groupby(spoken, key=lambda each: each[0])
    ]
    for at, (kind, ids) in enumerate(runs):
        if kind == "call":
            assert runs[at + 1] == ("result", ids)
        if kind == "result":
            assert runs[at - 1] == ("call", ids)


@for_every_wire()
def test_law_1_a_call_without_result_gets_its_stand_in(form: WireFormat, case: Case) -> None:
    wanted = [_outcome(proposal) for proposal in proposals(case)]
    results = [each[2] for each in said(form, case) if each[0] == "result"]
    results = [_GO_ON.sub("", text) for text in results]
    assert [text.removeprefix("Error: ") for text in wanted] == [
        t.removeprefix("Error: ") for t in results
    ]


_GO_ON = re.compile(r'\n\[read_result with the call "[^"]*" reads on in this result\]$')


def _outcome(proposal: Proposal) -> str:
    if result := proposal.result:
        body = result.body if result.status == "ok" or result.body.strip() else NO_REASON
        pictures = [attachment.text for attachment in result.attachments if not attachment.is_text]
        return "\n".join([*([body] if body else []), *pictures]) if pictures else body
    if not proposal.mark:
        return NOT_APPROVED
    return NO_RESULT if proposal.ran_by or proposal.choice in YES else DECLINED


def _secretly(transcript: Transcript) -> Transcript:
    """The transcript with a secret in every place that is never sent."""

    def hidden(segment: Segment) -> Segment:
        match segment:
            case Note():
                return Note("SECRET")
            case Broken():
                return replace(segment, text=segment.text + " SECRET")
            case _:
                return segment

    def changed(answer: Answer) -> Answer:
        is_open = any(p.call.id == "call_1" and not p.result for p in answer.proposals)
        orphan = Orphan(
            "web_search", "call_of_nobody" if is_open else "call_1", Result("ok", "SECRET")
        )
        return replace(answer, segments=(*map(hidden, answer.segments), orphan))

    preamble = (Text("SECRET"),)
    later = Exchange(Question((Text("SECRET"),)), (Answer("SECRET", (Text("SECRET"),)),))
    hiding = with_answers(transcript, changed)
    return replace(
        hiding, preamble=preamble, exchanges=(*hiding.exchanges, later), front_matter="SECRET: 1"
    )


@for_every_wire()
def test_law_2_only_turns_are_sent(form: WireFormat, case: Case) -> None:
    transcript, at = case
    assert "SECRET" not in json.dumps(form.body(form.ask(_secretly(transcript), at)))


@for_every_wire()
def test_law_2_choices_appear_only_in_stand_ins(form: WireFormat, case: Case) -> None:
    def chosen(answer: Answer) -> Answer:
        return replace(
            answer,
            segments=tuple(
                replace(s, choice=CHOICES[0])
                if isinstance(s, Proposal) and s.result and not s.ran_by
                else s
                for s in answer.segments
            ),
        )

    transcript, at = case
    assert said(form, case) == said(form, (with_answers(transcript, chosen), at))


@for_every_wire()
def test_law_2_the_user_or_a_tool_speaks_first_and_last_and_nothing_is_empty(
    form: WireFormat, case: Case
) -> None:
    spoken = said(form, case)
    assert spoken[0][0] == "user"
    assert spoken[-1][0] in ("user", "result")
    assert all(each[1].strip() for each in spoken if each[0] in ("user", "assistant"))


@for_every_wire()
def test_law_2_texts_come_in_the_files_order(form: WireFormat, case: Case) -> None:
    transcript, at = case
    wanted = ""
    for exchange in transcript.exchanges[: at + 1]:
        wanted += exchange.question.text if exchange.question else ""
        texts = (s.text for a in exchange.answers for s in a.segments if isinstance(s, Text))
        wanted += "".join(texts)
    sent = "".join(each[1] for each in said(form, case) if each[0] in ("user", "assistant"))
    assert _letters(sent.replace(NO_QUESTION, "").removesuffix(GO_ON)) == _letters(wanted)


def _letters(text: str) -> str:
    return "".join(text.split())


@for_every_wire()
def test_law_3_failed_and_refused_results_say_so(form: WireFormat, case: Case) -> None:
    wanted = ["ok" if p.result and p.result.status == "ok" else "failed" for p in proposals(case)]
    found = [each[3] for each in said(form, case) if each[0] == "result"]
    assert found == wanted or any(
        p.result and p.result.body.startswith("Error: ") for p in proposals(case)
    )


@given(case=cases())
@loaded
def test_law_3_anthropic_has_calls_last_and_results_first(case: Case) -> None:
    for message in anthropic.request_body(FORMATS[0].ask(*case))["messages"]:
        kinds = [block["type"] for block in message["content"]]
        first = "tool_result" if message["role"] == "user" else None
        order = [kind for kind, _ in groupby(kinds, key=lambda k: k in ("tool_use", first))]
        assert order in ([True], [False], [first is not None, first is None])


@for_every_wire()
def test_law_3_chat_calls_are_sent_without_index_as_they_were_streamed(
    form: WireFormat, case: Case
) -> None:
    if form.adapter is not openai_chat:
        return
    messages = form.body(form.ask(*case))["messages"]
    calls = [call for message in messages for call in message.get("tool_calls", [])]
    assert not any("index" in call for call in calls)
    for call, proposal in zip(calls, proposals(case), strict=True):
        given_, sent = proposal.call.arguments, call["function"]["arguments"]
        if given_.strip() and not re.search("[\0\ud800-\udfff]", given_) and not form.quirks:
            assert sent == given_
        elif form.quirks:
            assert isinstance(json.loads(sent), dict)


def _goes_back(case: Case, form: WireFormat) -> list[str]:
    """The signatures of the thinking in an answer with an open tool loop."""
    transcript, at = case
    answers = transcript.exchanges[at].answers
    heard = (
        [r for r in rounds(answers[-1]) if r.proposals or _has_text(r.segments)] if answers else []
    )
    if not heard or not heard[-1].proposals:
        return []
    thoughts = [s for r in heard for s in r.segments if isinstance(s, Thinking)]
    mine = [t for t in thoughts if (t.provider, t.model) == (form.provider, form.model)]
    return [t.signature for t in mine if t.signature]


def _has_text(segments: tuple[Segment, ...]) -> bool:
    return any(isinstance(s, Text) and s.text.strip() for s in segments)


@for_every_wire()
def test_law_4_thinking_is_sent_back_only_in_the_open_loop_and_to_its_maker(
    form: WireFormat, case: Case
) -> None:
    signed = own(case[0], form), case[1]
    wanted = _goes_back(signed, form)
    if form.name == "responses":
        wanted = [json.loads(signature)["encrypted_content"] for signature in wanted]
    elif not form.name.startswith("anthropic"):
        wanted = []
    assert [each[1] for each in said(form, signed) if each[0] == "thinking"] == wanted
    assert not [each for each in said(form, signed, keep_thinking=False) if each[0] == "thinking"]


@for_every_wire()
def test_law_5_ids_are_unique_and_valid(form: WireFormat, case: Case) -> None:
    ids = [each[1] for each in said(form, case) if each[0] == "call"]
    fits = "[A-Za-z0-9_-]{1,64}" if form.name.startswith("anthropic") else "[A-Za-z0-9_.:-]{1,64}"
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(fits, each) for each in ids)


@for_every_wire(later=st.integers(0, 2))
def test_law_5_later_content_changes_no_earlier_id(
    form: WireFormat, case: Case, later: int
) -> None:
    transcript, at = case
    repeated = tuple(e for e in transcript.exchanges[later:] if e.question is not None)
    longer = replace(transcript, exchanges=(*transcript.exchanges[: at + 1], *repeated))
    ids = [each[1] for each in said(form, case) if each[0] == "call"]
    all_ids = [
        each[1] for each in said(form, (longer, len(longer.exchanges) - 1)) if each[0] == "call"
    ]
    assert all_ids[: len(ids)] == ids


@for_every_wire(is_empty=st.booleans())
def test_law_6_with_tools_off_the_same_tools_are_forbidden(
    form: WireFormat, case: Case, is_empty: bool
) -> None:
    further: dict[str, Any] = {"catalogue": Catalogue()} if is_empty else {}
    off = form.body(form.ask(*case, tools_on=False, **further))
    on = form.body(form.ask(*case, **further))
    if proposals(case):
        assert off["tools"] == on["tools"] != []
        assert off["tool_choice"] in ("none", {"type": "none"})
    else:
        assert "tools" not in off
        assert "tool_choice" not in off


@for_every_wire()
def test_law_7_a_reopened_file_makes_the_same_request(form: WireFormat, case: Case) -> None:
    transcript, at = case
    reopened = parse(render(transcript))
    one, other = (form.adapter.request_body(form.ask(each, at)) for each in (transcript, reopened))
    assert (
        json.dumps(one, ensure_ascii=False).encode()
        == json.dumps(other, ensure_ascii=False).encode()
    )


@for_every_wire(keep=st.booleans(), on=st.booleans(), full=st.none() | st.integers(0, 3))
def test_values_cached_from_other_requests_change_no_request(
    form: WireFormat, case: Case, keep: bool, on: bool, full: int | None
) -> None:
    transcript, at = case
    for number in range(at + 1):
        encoded(form.body(form.ask(transcript, number, keep_thinking=not keep, tools_on=not on)))
    how = {"keep_thinking": keep, "tools_on": on, "max_full_exchanges": full}
    fresh = form.body(form.ask(parse(render(transcript)), at, **how))
    sent = json.dumps(fresh, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    assert encoded(form.body(form.ask(transcript, at, **how))) == sent


def _without_ids(turns: tuple[Turn, ...]) -> list[object]:
    """The turns without any values that depend on how often an id was sent before."""
    return [
        replace(turn, calls=tuple(replace(each, id="") for each in turn.calls))
        if isinstance(turn, ModelTurn)
        else turn
        for turn in turns
    ]


@given(case=cases(), full=st.integers(0, 3))
@loaded
def test_memory_sends_exchanges_whole_or_not_at_all_and_the_current_one_whole(
    case: Case, full: int
) -> None:
    transcript, at = case
    whole, short = (
        _without_ids(history(transcript, at, max_full_exchanges=n)) for n in (None, full)
    )
    alone = len(
        history(
            replace(transcript, exchanges=transcript.exchanges[at : at + 1]),
            0,
            max_full_exchanges=1,
        )
    )
    assert short[-alone:] == whole[-alone:]
    for turn in short:
        assert (
            turn in whole
            or turn == UserTurn(OMITTED)
            or (isinstance(turn, ModelTurn) and not turn.calls)
        )
