"""The laws of memory: the sent part of a chat, for any content and any window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, given, note
from hypothesis import strategies as st

from parley.chat.history import ModelTurn, ProviderCall, Turn, UserTurn, history
from parley.chat.omissions import MIDDLE
from parley.chat.transcript import (
    Attachment,
    Exchange,
    Proposal,
    Question,
    Result,
    Segment,
    Text,
    Transcript,
)
from parley.models.context_window import BYTES_PER_TOKEN
from parley.models.memory import LEAST_TOKENS, Memory, memory
from parley.models.request import Request
from tests.chats import answer, call, chat
from tests.examples import examples
from tests.formats import FORMATS, WireFormat, cases, own, with_answers

Case = tuple[Transcript, int]
loaded = examples(15, suppress_health_check=list(HealthCheck))

# Factors by which generated texts are lengthened, in turn, so that something must be left out.
TIMES = st.lists(st.sampled_from([1, 1, 30, 2_000]), min_size=1, max_size=7)
FULL = st.none() | st.integers(0, 4)


def longer(case: Case, times: list[int]) -> Case:
    """The case with some texts and results lengthened, and some exchanges repeated."""
    transcript, at = case
    count = iter(range(10**6))

    def grown(text: str) -> str:
        return "\n".join([text] * times[next(count) % len(times)])

    def segment(part: Segment) -> Segment:
        match part:
            case Text(text):
                return Text(grown(text))
            case Proposal(result=Result(body=body)) if part.result and body:
                return replace(part, result=replace(part.result, body=grown(body)))
            case _:
                return part

    def exchange(one: Exchange) -> Exchange:
        parts = one.question.parts if one.question else ()
        texts = tuple(Text(grown(part.text)) if isinstance(part, Text) else part for part in parts)
        return replace(one, question=one.question and Question(texts))

    answered = with_answers(
        transcript, lambda a: replace(a, segments=tuple(map(segment, a.segments)))
    )
    exchanges = tuple(map(exchange, answered.exchanges))
    again = tuple(one for one in exchanges[:at] if one.question) * (len(times) - 1)
    first = 0 if exchanges[0].question else 1
    return replace(answered, exchanges=(*exchanges[:first], *again, *exchanges[first:])), at + len(
        again
    )


def remembered(case: Case, full: int | None, room: int) -> Memory:
    transcript, at = case
    return memory(transcript.exchanges[: at + 1], full, room, lambda *_: True)


def texts(turns: tuple[Turn, ...]) -> Iterator[str]:
    for turn in turns:
        if isinstance(turn, UserTurn):
            yield turn.text
        else:
            yield from (part.text for part in turn.parts if isinstance(part, Text))
            for outcome in turn.calls:
                yield from (outcome.call.arguments, outcome.content)


def rooms(case: Case, full: int | None) -> st.SearchStrategy[int]:
    return st.integers(remembered(case, full, 0).size, remembered(case, full, 10**12).size)


@given(case=cases(), times=TIMES, full=FULL, data=st.data())
@loaded
def test_a_request_fits_into_any_window_that_is_not_tiny(
    case: Case, times: list[int], full: int | None, data: st.DataObject
) -> None:
    case = longer(case, times)
    least = remembered(case, full, 0)
    calls = max((len(turn.calls) for turn in least.turns if isinstance(turn, ModelTurn)), default=0)
    assert least.size < 6 * LEAST_TOKENS + calls * 4 * LEAST_TOKENS
    room = data.draw(rooms(case, full))
    assert remembered(case, full, room).size <= room


def test_searches_of_a_provider_cost_room_and_are_left_out_with_the_results() -> None:
    raw = Attachment("text/plain 40 kB", f"chat.assets/{'0' * 64}.txt")
    found = Proposal(call(1), result=Result("ok", "a page", (raw,)), ran_by="provider")
    one = chat(answer(Text("I look."), found, Text("Nothing.")))
    case = replace(one, exchanges=one.exchanges * 5), 4
    everything = remembered(case, None, 10**12)
    assert 200_000 < everything.size < 201_000
    less = remembered(case, None, 170_000)
    assert (less.results, less.is_cut, less.missing) == (1, False, 0)
    kept = [[type(p) for p in t.parts] for t in less.turns if isinstance(t, ModelTurn)]
    assert kept == [[Text, Text], *[[Text, ProviderCall, Text]] * 4]
    least = remembered(case, None, 3_000)
    assert least.size < 3_000
    assert Text("Nothing.") in least.turns[-1].parts
    assert least.is_cut


@given(case=cases(), times=TIMES, full=FULL)
@loaded
def test_everything_is_sent_if_there_is_room(
    case: Case, times: list[int], full: int | None
) -> None:
    transcript, at = case = longer(case, times)
    whole = remembered(case, full, 10**12)
    assert whole.turns == history(transcript, at, max_full_exchanges=full)
    assert remembered(case, full, whole.all) == whole
    assert whole.is_whole


@given(case=cases(), times=TIMES, full=FULL, data=st.data())
@loaded
def test_a_larger_window_lacks_nothing_that_a_smaller_one_has(
    case: Case, times: list[int], full: int | None, data: st.DataObject
) -> None:
    case = longer(case, times)
    one, other = sorted(data.draw(st.tuples(rooms(case, full), rooms(case, full))))
    small, large = remembered(case, full, one), remembered(case, full, other)
    note(f"{one} {other} of {large.all}")
    assert small.size <= large.size
    whole = set(texts(remembered(case, full, 10**12).turns))
    in_small, in_large = (
        Counter(t for t in texts(each.turns) if t in whole) for each in (small, large)
    )
    assert not in_small - in_large
    beginnings = [text.partition(MIDDLE)[0] for text in texts(small.turns) if MIDDLE in text]
    assert all(
        any(text.startswith(beginning) for text in texts(large.turns)) for beginning in beginnings
    )


@given(case=cases(), times=TIMES, full=FULL, part=st.floats(0, 1), keep=st.booleans())
@loaded
def test_providers_accept_the_shortened_request(
    case: Case, times: list[int], full: int | None, part: float, keep: bool
) -> None:
    transcript, at = longer(case, times)
    for form in FORMATS:
        note(form.name)
        request = form.ask(
            own(transcript, form), at, max_full_exchanges=full, keep_thinking=keep, max_tokens=2_000
        )
        request = replace(request, window=round(part * request.tokens()) + 2_000)
        assert form.check(form.body(request)) == []
        if request.memory().is_whole:
            assert form.body(request) == form.body(replace(request, window=10**9))


@given(case=cases(), times=TIMES, part=st.floats(0, 1))
@loaded
def test_no_call_is_sent_without_its_result(case: Case, times: list[int], part: float) -> None:
    for form in FORMATS:
        request = windowed(form, longer(case, times), part)
        spoken = list(form.said(form.body(request)))
        calls, results = (
            [each[1] for each in spoken if each[0] == kind] for kind in ("call", "result")
        )
        assert calls == results
        assert spoken[-1][0] in ("user", "result")
        assert spoken[0][0] == "user"


def windowed(form: WireFormat, case: Case, part: float) -> Request:
    """The request for a model that accepts only a part of it."""
    request = form.ask(*case, max_tokens=2_000)
    return replace(request, window=round(part * request.tokens()) + 2_000)


@given(case=cases(), times=TIMES, part=st.floats(0, 1))
@loaded
def test_a_request_fits_its_window(case: Case, times: list[int], part: float) -> None:
    form = FORMATS[0]
    request = windowed(form, longer(case, times), part)
    sent, least = request.memory(), replace(request, window=1).memory()
    room = (request.reach - 2_000) * BYTES_PER_TOKEN
    assert sent.size <= room or sent == least


@given(case=cases(), times=TIMES, part=st.floats(0.1, 1))
@loaded
def test_a_refused_request_gets_smaller_until_nothing_can_be_left_out(
    case: Case, times: list[int], part: float
) -> None:
    request = windowed(FORMATS[0], longer(case, times), part)
    least, tries = replace(request, window=1).memory().size, 0
    while narrow := request.narrowed():
        assert narrow.memory().size < request.memory().size
        request, tries = narrow, tries + 1
    assert request.memory().size == least
    assert tries < 60
