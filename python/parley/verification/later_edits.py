"""Verifies that a chat still matches the recorded requests to its models.

For each reply in the file, the text above it determines the request, which is compared with the
recorded request. Recorded requests are found by their replies. Knows only digests, so it can report
what was changed, but not the earlier text.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, NamedTuple

from parley.chat.history import CallOutcome, ProviderCall, whole
from parley.chat.rounds import Round, last_notice, replies
from parley.chat.transcript import (
    Attachment,
    Exchange,
    Proposal,
    Question,
    Text,
    Thinking,
    Transcript,
)
from parley.frozen import frozen
from parley.models import fingerprint as units
from parley.models.fingerprint import (
    REBUILT_FROM,
    Units,
    front_matter,
    rebuilt,
    reply_sources,
    reply_units,
    sources,
)
from parley.verification.unit_changes import EditKind, UnitChange, What, changes

_WORDS: Mapping[tuple[EditKind, What], str] = {
    ("question", "edited"): "the question was reworded",
    ("question", "removed"): "the question was removed",
    ("attachment", "edited"): "an attachment was replaced",
    ("attachment", "removed"): "an attachment was removed from the question",
    ("attachment", "added"): "an attachment was added to the question",
    ("answer", "edited"): "the answer was edited",
    ("answer", "removed"): "text was removed from the answer",
    ("answer", "added"): "text was added to the answer",
    ("summary", "edited"): "the summary of the answer was edited",
    ("summary", "removed"): "the summary of the answer was removed",
    ("thinking", "edited"): "the thinking was edited",
    ("thinking", "removed"): "a thinking block was removed",
    ("thinking", "added"): "a thinking block was added",
    ("call", "edited"): "the name or id of call {} was edited",
    ("call", "removed"): "a call and its result were removed",
    ("call", "added"): "call {} was added",
    ("arguments", "edited"): "the arguments of call {} were edited",
    ("result", "edited"): "the result of call {} was edited",
    ("result", "removed"): "the result of call {} was removed",
    ("reply", "removed"): "a reply to this question was removed",
    ("exchange", "removed"): "an exchange was removed here",
    ("exchange", "added"): "the exchange was added",
    ("exchange", "moved"): "the exchange was moved",
    ("request", "edited"): "the request for this reply was different",
}
"""The text for each change. A change that is not listed here is covered by another change, or is
irrelevant.
"""


@frozen
class RequestRecord:
    """A request and its reply, as digests; `at` is the time of sending, in seconds since 1970."""

    at: float
    header: Mapping[str, Any]
    units: Units
    reply: Units


@frozen
class LaterEdit:
    """A change to text that a model had already seen; `exchange` and `line` count from 1.

    `requests` is the number of requests that contained the earlier text.
    """

    line: int
    exchange: int
    kind: EditKind
    text: str
    requests: int = 1


@frozen
class Verification:
    """A chat's edits, the number of `requests` that led to its replies, and how many of these
    requests are still the `same`.

    `unknown` lists the exchange and line (from 1) of each reply without a recorded request, unless
    an unchanged later request contains the reply.
    """

    edits: tuple[LaterEdit, ...]
    requests: int
    same: int
    unknown: tuple[tuple[int, int], ...]


def verify_chat(transcript: Transcript, records: Sequence[RequestRecord]) -> Verification:
    """Compare a chat with the recorded requests, oldest first."""
    places = list(_places(transcript))
    pairs, front = _pairs(places, records), front_matter(transcript)
    questions = _Questions(transcript, records)
    counts, crowded, same = Counter[LaterEdit](), list[_Place](), list[_Place]()
    for record, place in pairs:
        edits = {*_edits_beside(record.header, front, place), *_edits_of_reply(record, place)}
        if record.header["space"] is None:
            edits |= set(_edits_of_request(record, place, questions))
        elif place.units(record.header) != record.units:
            crowded.append(place)  # everything above decides what was left out
            continue
        counts.update(edits)
        same += [] if edits else [place]
    counts.update(_edits_at_end(transcript, records, [record for record, _ in pairs]))
    if not counts:
        counts.update(_edit(("request", "edited"), place.here) for place in crowded)
    result = [replace(edit, requests=count) for edit, count in counts.items()]
    result.sort(key=lambda edit: (edit.line, edit.kind))
    unknown = _unknown(places, {id(place) for _, place in pairs}, same, result)
    return Verification(tuple(result), len(pairs), len(same), tuple(unknown))


def _unknown(
    places: Iterable[_Place],
    known: Collection[int],
    same: Sequence[_Place],
    edits: Iterable[LaterEdit],
) -> Iterator[tuple[int, int]]:
    """The exchange and line of each reply without a record."""
    added = {edit.exchange for edit in edits if edit.text == _WORDS["exchange", "added"]}
    for place in places:
        is_due = id(place) not in known and not place.is_cut and place.exchange + 1 not in added
        if is_due and not any(place.stands_before(later) for later in same):
            yield place.exchange + 1, place.here.line


def settings_changes(
    then: Mapping[str, Any], now: Mapping[str, Any], *, has_tools: bool
) -> list[str]:
    """Sentences about changed settings, from a request's header and a current header.

    Front matter is not a setting: if it has changed, the settings that it overrides are not
    reported. If `has_tools` is false, the current tools are unknown.
    """
    front, sentences = _different(then["front"], now["front"]), list[str]()
    if not front & {"agent", "provider", "model"} and then["agent"] == now["agent"]:
        agent, keys = then["agent"] or "the agent", ("provider", "model")
        sentences += [
            f"the {key} of {agent} was {then[key]} and is now {now[key]}"
            for key in keys
            if then[key] != now[key]
        ]
    is_same_agent = then["agent"] in ("", now["agent"])  # another agent has its own
    is_prompt_free = is_same_agent and not front & {"system_prompt", "system_prompt+"}
    if is_prompt_free and then["system"] != now["system"]:
        sentences.append("the system prompt has changed")
    if "instructions" not in front:
        sentences += _changes_of_instructions(then, now)
    if is_same_agent and not front and then["parameters"] != now["parameters"]:
        sentences.append("temperature, max_tokens, thinking, tool_mode or parameters have changed")
    if "max_full_exchanges" not in front and then["full"] != now["full"]:
        sentences.append(f"max_full_exchanges was {then['full']} and is now {now['full']}")
    if has_tools:
        sentences += _changes_of_tools(then, now)
    return sentences


def _changes_of_instructions(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about changed instructions, file by file; older records have none."""
    old, new = then.get("instructions", {}), now.get("instructions", {})
    for name in sorted(_different(old, new)):
        what = "have changed" if name in old and name in new else "are no longer sent"
        yield f"the instructions from {name} {what if name in old else 'are now sent'}"


def _changes_of_tools(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about changed tools; the tools of a server that is missing are not reported as
    gone."""
    missing = [server for server in now["missing"] if server not in then["missing"]]
    yield from (f"the tools of {server} are now missing" for server in missing)
    old, new = dict(then["tools"]), dict(now["tools"])
    both = sorted(old.keys() & new.keys())
    changed = [name for name in both if old.pop(name) != new.pop(name)]
    names = {digest: name for name, digest in new.items()}
    owners = {name: server for server, tools in then.get("servers", {}).items() for name in tools}
    for name, digest in sorted(old.items()):
        if other := names.pop(digest, ""):  # a name depends on the tools of other servers
            del new[other]
            yield f"the tool {name} is now named {other}"
        elif not missing or owners.get(name, missing[0]) not in missing:
            yield f"the tool {name} was removed"
    yield from (f"the tool {name} was added" for name in sorted(new))
    yield from (f"the definition of the tool {name} has changed" for name in changed)


def _different(one: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    """The keys whose values differ, and the keys in only one mapping."""
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


class _Location(NamedTuple):
    """A location: the exchange's number from 0, the line from 1, and a call's name.

    `anchor` is the line to report for changes below it.
    """

    exchange: int
    line: int
    name: str = ""
    has_result: bool = True
    anchor: int | None = None


class _Place:
    """One reply in the file, and everything above it."""

    def __init__(
        self, transcript: Transcript, exchange: int, answer: int, number: int, reply: Round
    ) -> None:
        self.exchange = exchange
        self._order = exchange, answer, number
        self._transcript = transcript
        self.reply = reply
        self.reply_units = reply_units(reply)
        self.answer = transcript.exchanges[exchange].answers[answer]
        self.is_cut = last_notice(self.answer) is not None and reply == replies(self.answer)[-1]
        """Whether the reply ended early; incomplete replies are not recorded."""
        self._units = dict[tuple[Any, ...], Units]()

    @property
    def here(self) -> _Location:
        first = next(iter(reply_sources(self.reply)))[1]
        return _Location(self.exchange, first.span.start + 1)

    def stands_before(self, other: _Place) -> bool:
        return self._order < other._order

    def units(self, header: Mapping[str, Any]) -> Units:
        """The units of the reply's request, with these settings."""
        settings = tuple(header[key] for key in REBUILT_FROM)
        if settings not in self._units:
            self._units[settings] = rebuilt(self.above, header)
        return self._units[settings]

    @cached_property
    def above(self) -> Transcript:
        """The transcript up to this reply, from which its request is rebuilt."""
        number, answer, count = self._order
        exchange = self._transcript.exchanges[number]
        segments = tuple(s for reply in replies(self.answer)[:count] for s in reply.segments)
        begun = replace(self.answer, segments=segments)
        now = Exchange(exchange.question, (*exchange.answers[:answer], begun), exchange.span)
        return replace(self._transcript, exchanges=(*self._transcript.exchanges[:number], now))


def _places(transcript: Transcript) -> Iterator[_Place]:
    for number, exchange in enumerate(transcript.exchanges):
        for at, answer in enumerate(exchange.answers):
            for count, reply in enumerate(replies(answer)):
                if reply_units(reply):
                    yield _Place(transcript, number, at, count, reply)


# --- Which request led to which reply -------------------------------------------------------------


def _pairs(
    places: Sequence[_Place], records: Sequence[RequestRecord]
) -> list[tuple[RequestRecord, _Place]]:
    """The requests that led to a reply in the file, each paired with this reply, in file order.

    Neither replies nor requests have an id, and replies may be edited, moved, deleted or copied. So
    the surest matches come first, because each request has only one reply.
    """
    partner = dict[int, int]()  # a place's number: its record's number
    # 1. Reply and request are unchanged.
    free = dict.fromkeys(range(len(records)))
    for place in reversed(range(len(places))):  # from the end: the latest of equal requests counts
        number = next(filter(lambda n: _is_same(records[n], places[place]), reversed(free)), None)
        _join(partner, free, place, number)
    rest = [
        number for number, place in enumerate(places) if number not in partner and not place.is_cut
    ]
    # 2. Only the request is edited: equal replies in the same order.
    numbers = list(free)
    matcher = SequenceMatcher(
        None,
        [records[n].reply for n in numbers],
        [places[p].reply_units for p in rest],
        autojunk=False,
    )
    for start, begin, size in matcher.get_matching_blocks():
        for step in range(size):
            _join(partner, free, rest[begin + step], numbers[start + step])
    # 3. Equal replies that have moved.
    for place in [place for place in rest if place not in partner]:
        reply = places[place].reply_units
        _join(partner, free, place, next((n for n in free if records[n].reply == reply), None))
    # 4. Edited replies: only their neighbours and their questions can identify the request.
    for place in reversed([place for place in rest if place not in partner]):
        _join(partner, free, place, _between(place, partner, free, places, records))
    return [(records[number], places[place]) for place, number in sorted(partner.items())]


def _join(partner: dict[int, int], free: dict[int, None], place: int, number: int | None) -> None:
    if number is not None:
        partner[place] = number
        del free[number]


def _is_same(record: RequestRecord, place: _Place) -> bool:
    return record.reply == place.reply_units and record.units == place.units(record.header)


def _between(
    place: int,
    partner: Mapping[int, int],
    free: Iterable[int],
    places: Sequence[_Place],
    records: Sequence[RequestRecord],
) -> int | None:
    """Find the request for an edited reply: a request between its neighbours' requests, preferably
    with the same question."""
    before = max((n for p, n in partner.items() if p < place), default=-1)
    after = min((n for p, n in partner.items() if p > place and n > before), default=len(records))
    numbers = [number for number in free if before < number < after]
    question = _last_question(places[place].units(records[numbers[-1]].header)) if numbers else None
    alike = [number for number in numbers if _last_question(records[number].units) == question]
    return next(iter(reversed(alike or numbers)), None)


def _last_question(request: Units) -> str | None:
    return next((unit for unit in reversed(request) if unit[0] == units.QUESTION), None)


# --- Changes --------------------------------------------------------------------------------------


def _edits_beside(
    header: Mapping[str, Any], front: Mapping[str, str], place: _Place
) -> Iterator[LaterEdit]:
    """Changes to the agent and the front matter."""
    old: Mapping[str, str] = header["front"]
    for key in sorted(_different(old, front)):
        how = "changed" if key in old and key in front else "removed" if key in old else "added"
        yield LaterEdit(1, 0, "front_matter", f"the front matter key {key} was {how}")
    if header["agent"] != (place.answer.agent or ""):
        name = header["agent"] or "an agent without a name"
        yield LaterEdit(
            place.answer.span.start + 1,
            place.exchange + 1,
            "agent",
            f"the answer came from {name}",
        )


class _Questions:
    """The file's questions and all recorded questions; an exchange that is found in both was only
    moved.
    """

    def __init__(self, transcript: Transcript, records: Sequence[RequestRecord]) -> None:
        exchanges = enumerate(transcript.exchanges)
        places = ((unit, where) for n, e in exchanges for unit, where in _locations(n, e))
        self.places = {unit: where for unit, where in places if unit[0] == units.QUESTION}
        self.on_record = {
            unit for record in records for unit in record.units if unit[0] == units.QUESTION
        }


def _edits_of_reply(record: RequestRecord, place: _Place) -> Iterator[LaterEdit]:
    """Changes to the model's reply."""
    locations = [
        _location(place.exchange, unit, source) for unit, source in reply_sources(place.reply)
    ]
    for change in changes(record.reply, place.reply_units):
        yield from _edits_of_change(change, locations, place)


def _edits_of_request(
    record: RequestRecord, place: _Place, questions: _Questions
) -> Iterator[LaterEdit]:
    """Changes to the request."""
    now = place.units(record.header)
    if now == record.units:
        return
    queues, where = defaultdict[str, deque[_Location]](deque), list[_Location]()
    for number, exchange in enumerate(place.above.exchanges):
        for unit, location in _locations(number, exchange):
            queues[unit].append(location)
    last = _Location(0, 1)
    for unit in now:
        last = queues[unit].popleft() if queues[unit] else last
        where.append(last)
    for change in changes(record.units, now):
        if (
            change.kind == "exchange"
            and change.what == "removed"
            and change.unit in questions.places
        ):
            yield _edit(("exchange", "moved"), questions.places[change.unit])
        elif (
            change.kind == "exchange"
            and change.what == "added"
            and change.unit in questions.on_record
        ):
            yield _edit(("exchange", "moved"), where[change.at])
        else:
            yield from _edits_of_change(change, where, place)


def _edits_of_change(
    change: UnitChange, where: Sequence[_Location], place: _Place
) -> Iterator[LaterEdit]:
    kind, what, at = change.kind, change.what, change.at
    location = where[at] if at < len(where) else place.here
    if what == "removed" and kind != "exchange":
        location = where[max(at - 1, 0)]
        location = location._replace(line=location.anchor or location.line)
    if (kind, what) == ("result", "edited") and not location.has_result:
        what = "removed"
    if (kind, what) in _WORDS:
        yield _edit((kind, what), location)


def _edit(change: tuple[EditKind, What], where: _Location) -> LaterEdit:
    return LaterEdit(where.line, where.exchange + 1, change[0], _WORDS[change].format(where.name))


def _edits_at_end(
    transcript: Transcript, records: Sequence[RequestRecord], known: Sequence[RequestRecord]
) -> Iterator[LaterEdit]:
    """Replies that were removed after the last recorded reply in the file.

    If none of the file's replies are recorded, the file may be new and reuse an old name, so
    removed exchanges are not reported.
    """
    ids = {id(record) for record in known}
    last = max((index for index, record in enumerate(records) if id(record) in ids), default=-1)
    places = {
        unit: (where, exchange.answers[-1:])
        for number, exchange in enumerate(transcript.exchanges)
        for unit, where in _locations(number, exchange)
        if unit[0] == units.QUESTION
    }
    for question in dict.fromkeys(_last_question(record.units) for record in records[last + 1 :]):
        where, answers = places.get(question or "", (None, ()))
        is_cut = any(last_notice(answer) is not None for answer in answers)
        if where and not is_cut:  # else: asked again, and the answer ended early
            yield _edit(("reply", "removed"), where)
        elif not where and known:
            line = max(transcript.exchanges[-1].span.end, 1)
            yield _edit(("exchange", "removed"), _Location(len(transcript.exchanges) - 1, line))


# --- Places ---------------------------------------------------------------------------------------


def _locations(number: int, exchange: Exchange) -> tuple[tuple[str, _Location], ...]:
    """The units in a complete exchange with their locations, cached in the exchange."""
    if "locations" not in exchange.derived:
        exchange.derived["locations"] = tuple(_located(number, exchange))
    locations: tuple[tuple[str, _Location], ...] = exchange.derived["locations"]
    return locations


def _located(number: int, exchange: Exchange) -> Iterator[tuple[str, _Location]]:
    calls = deque(call for answer in exchange.answers for call in answer.calls)
    question, outcome = exchange.question or Question(), None
    for turn in whole(exchange, is_answered=False):
        for unit, source in sources(turn, lambda *_: True):
            if isinstance(source, CallOutcome | ProviderCall):
                if source is not outcome:
                    outcome, proposal = source, _of(source, calls)
                yield unit, _location(number, unit, proposal)
            elif isinstance(source, Text | Thinking | Attachment):
                yield unit, _location(number, unit, source)
            else:
                yield unit, _Location(number, max(question.span.start, 0) + 1)


def _of(source: CallOutcome | ProviderCall, calls: deque[Proposal]) -> Proposal:
    """The call that a turn contains, from the calls in order; earlier calls are in no turn."""
    while (call := calls.popleft()).call != source.call:
        pass
    return call


def _location(number: int, unit: str, source: Text | Thinking | Attachment | Proposal) -> _Location:
    line = source.span.start + 1
    if isinstance(source, Proposal):
        below = source.result.span.start + 1 if source.result and unit[0] == units.RESULT else line
        return _Location(number, below, source.call.name, source.result is not None, line)
    if unit[0] == units.SUMMED_UP and isinstance(source, Text):
        texts = source.text.split("\n")
        line += next(
            n
            for n, text in enumerate(texts)
            if units.SUMMED_UP + units.digest(text.rstrip()) == unit
        )
    return _Location(number, line)
