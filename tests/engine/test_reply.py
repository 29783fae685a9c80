"""Calls that the provider, or an agent by its own rules, ran while it wrote a reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from parley.chat.history import GO_ON, CallOutcome, ModelTurn, ProviderCall, UserTurn, history
from parley.chat.reader import parse
from parley.chat.transcript import Attachment, Result, Text, ToolCall
from parley.engine import CallEnded, End
from parley.engine.ports import NoAttachments
from parley.errors import ModelError
from parley.models.events import Cited, Event, Finished, Ran, RanResult, TextDelta, Withdrawn
from parley.tools.results import Outcome
from tests.chats import TOOLS, call
from tests.fakes import CrashError, LoggedTools, ScriptedModel, ScriptStep, Turns, calls, says

FIND = ToolCall("s1", "web_search", '{"query":"x"}')
EDIT = ToolCall("e1", "edit", "{}")
QUESTION = "💬: What is new?\n"
LINE = (
    '❓:[provider] `{"id":"s1","type":"function","function":'
    '{"name":"web_search","arguments":"{\\"query\\":\\"x\\"}"}}`\n'
)
FOUND = "\n🛠️: [web_search][s1]\n\n`a page`\n\n"
BEGINNING = f"{QUESTION}\n🤖:[Demo]\n\nI look.\n\n{LINE}"
ENDED = Finished("complete")


def search(text: str = "a page") -> list[ScriptStep]:
    return [Ran(FIND, "provider"), RanResult("s1", Outcome("ok", text))]


def turns(*replies: Sequence[ScriptStep], text: str = QUESTION) -> Turns:
    return Turns(text, ScriptedModel(*replies), LoggedTools(TOOLS))


async def test_a_call_that_the_provider_ran_is_written_where_it_came() -> None:
    done = turns([TextDelta("I look. "), *search(), TextDelta("\nNothing."), ENDED])
    assert await done.run() == End("complete")
    assert done.text == f"{BEGINNING}{FOUND}Nothing.\n\n💬: \n"
    assert (parse(done.text).problems, done.tools.log) == ((), [])


async def test_ids_are_unique_in_an_answer_and_results_find_their_calls() -> None:
    two = [*search("one"), *search("two"), TextDelta("Ok."), ENDED]
    done = turns(two)
    await done.run()
    (exchange, _) = parse(done.text).exchanges
    assert [(p.call.id, p.result and p.result.body) for p in exchange.answers[0].calls] == [
        ("s1", "one"),
        ("s1.2", "two"),
    ]


async def test_a_call_never_has_the_id_of_a_call_that_the_provider_ran() -> None:
    same = replace(call(1), id="s1")
    done = turns([*search(), *calls(same)])
    assert await done.run() == End("waiting")
    ran, waiting = parse(done.text).exchanges[0].answers[0].calls
    assert (ran.call.id, waiting.call.id, waiting.result) == ("s1", "s1.2", None)


async def test_a_result_in_the_next_reply_is_written_below_its_call() -> None:
    first: list[ScriptStep] = [TextDelta("I look."), Ran(FIND, "provider"), *calls(call(1))]
    second: list[ScriptStep] = [RanResult("s1", Outcome("ok", "a page")), *says("Nothing.")]
    done = turns(first, second)
    assert await done.run() == End("waiting")
    assert done.text.startswith(BEGINNING + "❓: `")
    await done.press("yA")
    assert await done.run() == End("complete")
    assert done.text.startswith(BEGINNING + FOUND + "❓:[yA] `")
    assert parse(done.text).problems == ()
    assert [p.ran_by for p in parse(done.text).exchanges[0].answers[0].calls] == ["provider", None]


async def test_such_a_call_has_no_choice_and_no_limit_counts_it() -> None:
    broken = turns([Ran(FIND, "agent"), ModelError("no route", reason="no route")], says("Done."))
    assert await broken.run() == End("interrupted", "no route")
    assert "❓:[agent] `" in broken.text
    assert (await broken.press("ya", "web_search")).message == (
        "this call was run by the agent: there is nothing to decide"
    )
    assert await broken.run() == End("complete")  # it never waits
    assert broken.tools.log == []


@pytest.mark.parametrize("text", ["", "Half a"])
async def test_a_reply_that_broke_off_after_such_a_call_is_continued(text: str) -> None:
    pieces: list[ScriptStep] = [TextDelta(text)] if text else []
    cut = [TextDelta("I look."), *search(), *pieces, ModelError("no route", reason="no route")]
    model = turns(cut, says("Nothing."))
    assert await model.run() == End("interrupted", "no route")
    assert await model.run() == End("complete")
    resumed = "🔒: [Resumed after: no route]\n\n🔒:\n\nNothing."
    assert resumed in model.text
    assert "Half a" not in model.text
    last = history(parse(model.text), 0, max_full_exchanges=None)
    assert last[-1] != UserTurn(GO_ON)  # the answer is complete now
    request = model.model.asks[-1]
    assert request.turns()[1:] == (
        ModelTurn((Text("I look."), ProviderCall(FIND, "ok"))),
        UserTurn(GO_ON),
    )


async def test_a_crash_between_the_call_and_its_result_leaves_a_readable_chat() -> None:
    crashed = turns([TextDelta("I look."), Ran(FIND, "provider"), CrashError()])
    with pytest.raises(CrashError):
        await crashed.run()
    assert crashed.text.startswith(BEGINNING)
    again = turns(says("Nothing."), text=crashed.text)
    assert await again.run() == End("complete")


async def test_a_withdrawn_reply_keeps_its_calls() -> None:
    done = turns([TextDelta("a"), *search(), TextDelta("b"), Withdrawn(), *search("c"), ENDED])
    assert await done.run() == End("complete")
    assert "\nb\n" not in done.text
    assert [p.call.id for p in parse(done.text).exchanges[0].answers[0].calls] == ["s1", "s1.2"]


async def test_an_agents_calls_are_sent_as_calls_and_a_providers_are_parts() -> None:
    events: list[Event] = [
        TextDelta("One."),
        Ran(EDIT, "agent"),
        RanResult("e1", Outcome("ok", "edited")),
    ]
    done = turns([*events, TextDelta("Two."), *search(), TextDelta("Three."), ENDED])
    await done.run()
    assert history(parse(done.text), 0, max_full_exchanges=None)[1:] == (
        ModelTurn((Text("One."),), (CallOutcome(EDIT, "e1", "ok", "edited"),)),
        ModelTurn((Text("Two."), ProviderCall(FIND, "ok"), Text("Three."))),
    )


async def test_sources_become_footnotes_below_the_text_and_before_its_calls() -> None:
    first: list[ScriptStep] = [
        TextDelta("It is out."),
        Cited("https://a.b", "News"),
        *calls(call(1)),
    ]
    again: list[ScriptStep] = [
        TextDelta("Yes."),
        Cited("https://a.b", "News"),
        Cited("no address", ""),
        ENDED,
    ]
    done = turns(first, again)
    await done.run()
    notes = "It is out.[^1]\n\n[^1]: [News](https://a.b)\n\n❓: `"
    assert notes in done.text
    await done.press("yA")
    assert await done.run() == End("complete")
    assert "Yes.[^2]\n\n[^2]: [News](https://a.b)\n\n💬:" in done.text
    texts = [event.text for event in done.observer.events if isinstance(event, TextDelta)]
    assert texts[:3] == ["It is out.", "[^1]", "\n\n[^1]: [News](https://a.b)"]


async def test_a_reply_that_breaks_off_keeps_its_footnotes() -> None:
    cut: list[ScriptStep] = [
        TextDelta("Out."),
        Cited("https://a.b", "News"),
        ModelError("x", reason="x"),
    ]
    done = turns(cut)
    await done.run()
    assert "Out.[^1]\n\n[^1]: [News](https://a.b)\n\n🔒: [Interrupted: x]" in done.text


async def test_a_withdrawn_reply_withdraws_its_footnotes() -> None:
    source = Cited("https://a.b", "News")
    done = turns([TextDelta("a"), source, Withdrawn(), TextDelta("b"), source, ENDED])
    await done.run()
    assert "🤖:[Demo]\n\nb[^1]\n\n[^1]: [News](https://a.b)\n" in done.text


class Kept(NoAttachments):
    """Keeps the parts of a result that only the provider understands."""

    async def result_of(self, outcome: Outcome) -> Result:
        kept = Attachment("4 kB", f"chat.assets/{'0' * 64}.txt")
        return Result(outcome.status, outcome.text, (kept,) if outcome.whole else ())


async def test_observers_get_no_parts_that_only_the_provider_understands() -> None:
    found = RanResult("s1", Outcome("ok", "a page", whole="{}"))
    done = turns([Ran(FIND, "provider"), found, TextDelta("Nothing."), ENDED])
    done.ports = replace(done.ports, attachments=Kept())
    await done.run()
    (ended,) = [what for what in done.observer.events if isinstance(what, CallEnded)]
    assert ended.result == Result("ok", "a page")
    assert "[web_search][s1] [4 kB](chat.assets/" in done.text
