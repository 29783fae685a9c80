"""The wire laws, for requests that describe their tools in text, in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, note
from hypothesis import strategies as st

from parley.chat.history import DECLINED, GO_ON, NO_QUESTION, NO_REASON, NO_RESULT, NOT_APPROVED
from parley.chat.reader import parse
from parley.chat.transcript import CHOICES, YES, Answer, Proposal, Text, Transcript
from parley.chat.writer import render
from parley.models.encode import wire_name
from parley.models.text_tools.adapter import text_request
from parley.models.text_tools.prompt import RESULTS
from parley.tools.long_results import READ_RESULT
from tests.defaults import text_tools
from tests.examples import examples
from tests.formats import FORMATS, Said, WireFormat, cases, own, with_answers
from tests.text_calls_corpus import read

Case = tuple[Transcript, int]
Body = dict[str, Any]

# Transcripts are large for generated values, so some are discarded; this does not weaken a law.
loaded = examples(8, suppress_health_check=list(HealthCheck))
modes = st.sampled_from(["json", "xml"])


def for_every_wire(**drawn: Any) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """A law over generated cases and modes, tested in every format."""

    def decorate(law: Callable[..., None]) -> Callable[[], None]:
        def test(**values: Any) -> None:
            for form in FORMATS:
                note(form.name)
                law(form, **values)

        test.__name__ = law.__name__
        return loaded(given(case=cases(), mode=modes, **drawn)(test))

    return decorate


def body(form: WireFormat, case: Case, mode: Any, **further: Any) -> Body:
    request = form.ask(*case, text_tools=text_tools(mode), **further)
    return form.body(text_request(request))


def said(form: WireFormat, case: Case, mode: Any, **further: Any) -> list[Said]:
    return list(form.said(body(form, case, mode, **further)))


def proposals(case: Case) -> list[Proposal]:
    transcript, at = case
    answers = [answer for exchange in transcript.exchanges[: at + 1] for answer in exchange.answers]
    return [call for answer in answers for call in answer.calls if call.ran_by != "provider"]


def calls_in(mode: str, text: str) -> list[str]:
    """The names of the tools that a text calls, according to the mode's own reader."""
    kind = "json_tools" if mode == "json" else "xml_tools.unlimited"
    return [item[1] for item in read(kind, [text]) if item[0] == "call"]


_RESULT = re.compile(
    r"^(\d+)\. ([\w-]+)( failed)?\n(?P<fence>`{3,})\n(.*?)\n(?P=fence)(?:\n\n|\Z)", re.S
)


def results_in(text: str) -> list[tuple[str, str, str]]:
    """Name, outcome and content of each result in a user's message; the rest is the user's."""
    found = list[tuple[str, str, str]]()
    for part in re.split(rf"(?:\A|(?<=\n\n)){re.escape(RESULTS)}\n\n", text)[1:]:
        while result := _RESULT.match(part):
            if int(result[1]) == len(found) + 1 or int(result[1]) == 1:
                found.append((result[2], "failed" if result[3] else "ok", result[5]))
            part = part[result.end() :]
    return found


@for_every_wire(
    keep=st.booleans(),
    on=st.booleans(),
    full=st.none() | st.integers(0, 3),
    window=st.none() | st.integers(1, 500),
)
def test_providers_accept_every_request(
    form: WireFormat,
    case: Case,
    mode: str,
    keep: bool,
    on: bool,
    full: int | None,
    window: int | None,
) -> None:
    case = own(case[0], form), case[1]
    sent = body(
        form, case, mode, keep_thinking=keep, tools_on=on, max_full_exchanges=full, window=window
    )
    assert form.check(sent) == []


@for_every_wire(on=st.booleans())
def test_no_native_tools_are_used(form: WireFormat, case: Case, mode: str, on: bool) -> None:
    assert not {"tools", "tool_choice"} & set(body(form, case, mode, tools_on=on))
    assert not [each for each in said(form, case, mode) if each[0] in ("call", "result")]


@for_every_wire()
def test_law_1_every_call_is_present_and_answered_once_directly_after_it(
    form: WireFormat, case: Case, mode: str
) -> None:
    spoken = _conversation(said(form, case, mode))
    waiting, called, answered = list[str](), list[str](), list[str]()
    for role, text in spoken:
        if role == "assistant":
            assert not waiting
            waiting = calls_in(mode, text)
            called += waiting
        else:
            names = [name for name, _, _ in results_in(text)][: len(waiting)]
            assert names == waiting
            answered += names
            waiting = []
    assert called == answered == [wire_name(p.call.name) for p in proposals(case)]


def _conversation(spoken: list[Said]) -> list[tuple[str, str]]:
    """The speakers and their words; adjacent texts of one speaker are joined."""
    joined = list[tuple[str, str]]()
    for role, text, *_ in (each for each in spoken if each[0] in ("user", "assistant")):
        if joined and joined[-1][0] == role:
            joined[-1] = (role, f"{joined[-1][1]}\n\n{text}")
        else:
            joined.append((role, text))
    return joined


@for_every_wire()
def test_law_1_and_3_results_and_stand_ins_have_their_outcome(
    form: WireFormat, case: Case, mode: str
) -> None:
    users = "\n\n".join(
        text for role, text in _conversation(said(form, case, mode)) if role == "user"
    )
    at = 0
    for proposal in proposals(case):
        is_ok, content = _outcome(proposal)
        told = content if is_ok else f"Error: {content}"
        name = wire_name(proposal.call.name) + ("" if is_ok else " failed")
        more = rf"\n\[{READ_RESULT.name} .*\]" if _is_long(proposal) else ""
        found = re.compile(
            rf"\d+\. {re.escape(name)}\n(`{{3,}})\n{re.escape(told)}{more}\n\1"
        ).search(users, at)
        assert found
        at = found.end()


def _is_long(proposal: Proposal) -> bool:
    """Whether the whole result is next to the chat."""
    return (
        any(attachment.is_text for attachment in proposal.result.attachments)
        if proposal.result
        else False
    )


def _outcome(proposal: Proposal) -> tuple[bool, str]:
    if proposal.result:
        is_ok, body = proposal.result.status == "ok", proposal.result.body
        pictures = [
            attachment.text for attachment in proposal.result.attachments if not attachment.is_text
        ]
        content = body if is_ok or body.strip() else NO_REASON
        return is_ok, "\n".join(filter(None, (content, *pictures)))
    if not proposal.mark:
        return False, NOT_APPROVED
    return False, NO_RESULT if proposal.ran_by or proposal.choice in YES else DECLINED


@for_every_wire()
def test_law_2_choices_appear_only_in_stand_ins(form: WireFormat, case: Case, mode: str) -> None:
    def chosen(answer: Answer) -> Answer:
        segments = (
            replace(s, choice=CHOICES[0])
            if isinstance(s, Proposal) and s.result and not s.ran_by
            else s
            for s in answer.segments
        )
        return replace(answer, segments=tuple(segments))

    transcript, at = case
    assert body(form, case, mode) == body(form, (with_answers(transcript, chosen), at), mode)


@for_every_wire(on=st.booleans())
def test_law_2_the_user_speaks_first_and_last_and_nothing_is_empty(
    form: WireFormat, case: Case, mode: str, on: bool
) -> None:
    spoken = said(form, case, mode, tools_on=on)
    assert (spoken[0][0], spoken[-1][0]) == ("user", "user")
    assert all(each[1].strip() for each in spoken if each[0] in ("user", "assistant"))


@for_every_wire()
def test_law_4_thinking_is_sent_back_only_in_the_open_loop_and_to_its_maker(
    form: WireFormat, case: Case, mode: str
) -> None:
    signed = own(case[0], form), case[1]
    found = [each[1] for each in said(form, signed, mode) if each[0] == "thinking"]
    native = [each[1] for each in form.said(form.body(form.ask(*signed))) if each[0] == "thinking"]
    assert found == native
    assert not [
        each for each in said(form, signed, mode, keep_thinking=False) if each[0] == "thinking"
    ]


@for_every_wire(later=st.integers(0, 2))
def test_law_5_later_content_changes_nothing_earlier(
    form: WireFormat, case: Case, mode: str, later: int
) -> None:
    """No ids are sent; the file's earlier part is sent unchanged, for provider caches."""
    transcript, at = case
    repeated = tuple(
        e for e in transcript.exchanges[later:] if e.question is not None and e.question.text
    )
    longer = replace(transcript, exchanges=(*transcript.exchanges[: at + 1], *repeated))
    short, long = (
        said(form, each_case, mode, keep_thinking=False)
        for each_case in (case, (longer, len(longer.exchanges) - 1))
    )
    of_file = _letters(short)
    for stand_in in (NO_QUESTION, GO_ON):  # none of it is in the file
        of_file = of_file.removesuffix("".join(stand_in.split()))
    assert _letters(long).startswith(of_file)


def _letters(spoken: list[Said]) -> str:
    return "".join("".join(text.split()) for _, text, *_ in spoken)


@for_every_wire()
def test_law_7_a_reopened_file_makes_the_same_request(
    form: WireFormat, case: Case, mode: str
) -> None:
    transcript, at = case
    one, other = (body(form, (each, at), mode) for each in (transcript, parse(render(transcript))))
    assert json.dumps(one, ensure_ascii=False) == json.dumps(other, ensure_ascii=False)


@for_every_wire()
def test_the_files_texts_are_sent(form: WireFormat, case: Case, mode: str) -> None:
    transcript, at = case
    sent = "".join("".join(text.split()) for _, text, *_ in said(form, case, mode))
    place = 0
    for exchange in transcript.exchanges[: at + 1]:
        for answer in exchange.answers:
            for segment in answer.segments:
                if isinstance(segment, Text):
                    wanted = "".join(segment.text.split())
                    place = sent.index(wanted, place) + len(wanted)
