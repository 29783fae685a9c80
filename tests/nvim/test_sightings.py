"""The numbers of drawn calls: an unchanged call keeps its number, and no number is used again."""

from __future__ import annotations

from parley.display.view import ChatView
from parley.nvim.sightings import SeenCalls
from tests.chats import TOOLS, answer, asked, chat, ran, view


def drawn(*arguments: str) -> ChatView:
    """A chat with a waiting call for each of these arguments."""
    calls = [asked(number, arguments=each) for number, each in enumerate(arguments, 1)]
    return ChatView(chat(answer(*calls)), TOOLS, view())


ONE, TWO, THREE = '{"query":"one"}', '{"query":"two"}', '{"query":"three"}'


def test_an_unchanged_call_keeps_its_number_and_a_changed_call_gets_another() -> None:
    seen = SeenCalls()
    assert seen.draw(drawn(ONE, TWO)) == [1, 2]
    assert seen.draw(drawn(ONE, THREE)) == [1, 3]
    assert seen.draw(drawn(ONE, TWO)) == [1, 4], "the earlier number was not seen with this drawing"


def test_a_call_that_no_longer_waits_has_no_number() -> None:
    seen = SeenCalls()
    seen.draw(drawn(ONE))
    ((_, (call,)),) = drawn(ONE).waiting()
    sighting = drawn(ONE).sighting(call)  # type: ignore[arg-type] # it can be read
    assert seen.number(sighting) == 1
    assert seen.draw(ChatView(chat(answer(ran())), TOOLS, view())) == []
    assert seen.number(sighting) == 0


def test_only_times_of_drawn_calls_count_and_they_become_seconds() -> None:
    seen = SeenCalls()
    seen.draw(drawn(ONE, TWO))
    seen.draw(drawn(ONE, THREE))
    times = seen.of([(1, 500.0), (2, 900.0), (9, 900.0)])
    assert [(seen.number(sighting), seconds) for sighting, seconds in times.items()] == [(1, 0.5)]
