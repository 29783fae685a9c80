"""The law of the end: however a process ends, a cut reply never counts as complete.

A process may end between any two of its steps, so each step records the text.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.engine import regenerating, run_turn
from parley.errors import ModelError
from parley.models.events import (
    Call,
    Finished,
    Ran,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Withdrawn,
)
from parley.policy import plan
from parley.policy.approval import LedgerView
from parley.policy.plan import Situation, next_step
from parley.storage.chat_file import FileDocument, TextDocument
from parley.tools.catalogue import Catalogue
from tests.chats import TOOLS, call
from tests.defaults import limits_with
from tests.examples import examples
from tests.fakes import CrashError, LoggedTools, ScriptedModel, ScriptStep, Turns
from tests.strategies import any_text
from tests.streams_corpus import DECODERS, STREAMS, events_of

CORPUS = [path for kind in DECODERS for path in sorted((STREAMS / kind).glob("*.sse"))]
CALLED = (
    '💬: q\n\n🤖:[A]\n\n❓:[yn] `{"id":"c","function":{"name":"f","arguments":"{}"}}`\n\n'
    "🛠️: [f][c][refused]\n\n`no`\n\nhalf\n\n🔒: [Stopped: by the user]\n"
)
CHATS = [
    "💬: q\n",
    "💬: q\n\n🤖:[A]\n",
    "💬: q\n\n🤖:[A]\n\nhalf\n\n🔒: [Interrupted: the answer was still being written]\n",
    "💬: q\n\n🤖:[A]\n\n🔒: mine\n\n💬: next\n\n🤖:[A]\n\ndone\n",
    CALLED,
]
REPLY: list[ScriptStep] = [TextDelta("one\n\ntw"), TextDelta("o"), Finished("complete")]


def cuttable(path: Path) -> tuple[str, list[ScriptStep]]:
    """The content of a stream in the corpus, by its format."""
    events, error = events_of(path, [path.read_bytes()])
    return path.parent.name, [*events, *([error] if error else [])]


pieces = st.one_of(any_text.map(TextDelta), st.just(Withdrawn()))
endings = st.sampled_from([Finished("complete"), Finished("length"), Call(call(1))])
own_replies = st.lists(st.one_of(pieces, endings), max_size=6).map(
    lambda events: ("own", list(events))
)
replies = st.one_of(st.sampled_from(CORPUS).map(cuttable), own_replies)


@contextmanager
def documents(kind: str, text: str) -> Iterator[tuple[TextDocument, Callable[[], str]]]:
    """A document, and what remains if its process ends now."""
    if kind == "text":
        document = TextDocument(text, 0)
        yield document, lambda: document.text
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chat.md")
        path.write_text(text, encoding="utf-8")
        yield FileDocument(path, 0), lambda: path.read_text(encoding="utf-8")


def watch(document: TextDocument, look: Callable[[], None]) -> None:
    """Record the document before and after each change."""
    for name in ("read", "change", "begin", "open_stream", "append", "settle"):
        method = getattr(document, name)

        async def watched(*arguments: Any, method: Any = method) -> Any:
            look()
            done = await method(*arguments)
            look()
            return done

        setattr(document, name, watched)


def ends_in(text: str) -> plan.Step:
    """The next step for a text that someone opens."""
    return next_step(Situation(parse(text), 0, Catalogue(), LedgerView(), limits_with()))


ENDS = {
    "our process": CrashError(),
    "the network": ModelError("the network", reason="the network"),
    "the turn": asyncio.CancelledError(),
}


@examples(120)
@given(st.sampled_from(["text", "file"]), st.sampled_from(CHATS), replies, st.data())
def test_a_reply_that_was_cut_is_never_complete(
    kind: str, chat: str, reply: tuple[str, list[ScriptStep]], data: st.DataObject
) -> None:
    _, steps = reply
    cut = data.draw(st.integers(0, len(steps)), label="events")
    end = data.draw(st.sampled_from(sorted(ENDS)), label="what ends")
    assert not lived(kind, chat, [*steps[:cut], ENDS[end]])


@pytest.mark.parametrize("kind", ["text", "file"])
@pytest.mark.parametrize("chat", CHATS)
def test_a_reply_is_complete_when_all_of_it_has_arrived(kind: str, chat: str) -> None:
    assert lived(kind, chat, REPLY)


OLD = [
    "💬: q\n\n🤖:[A]\n\nold\n",
    "💬: q\n\n🤖: old\nand older\n\n💬: next\n\n🤖:[A]\n\ndone\n",
    "💬: q\n\n🤖:[A]\n\n\n\n\nold\n\n💬: \n",
    CALLED,
    CALLED.replace("[yn]", "").partition("🛠️")[0],
]


@examples(120)
@given(st.sampled_from(["text", "file"]), st.sampled_from(OLD), replies, st.data())
def test_an_old_answer_stays_until_the_new_one_has_content(
    kind: str, chat: str, reply: tuple[str, list[ScriptStep]], data: st.DataObject
) -> None:
    _, steps = reply
    cut = data.draw(st.integers(0, len(steps)), label="events")
    end = data.draw(st.sampled_from(sorted(ENDS)), label="what ends")
    edits = data.draw(st.booleans(), label="whether the user edits")
    chats, left = [chat], ""

    with documents(kind, chat) as (document, text):

        def look() -> None:
            nonlocal left
            left = text()
            if left not in chats:  # replaced, as a whole and never half
                assert not isinstance(ends_in(left), plan.Complete), left
                assert ("old" in left) is ("old" in chat.partition("🤖")[0])

        def edit() -> None:
            if document.text in chats and edits:
                document.lines = document.text.replace("💬: q", "💬: q, edited").split("\n")[:-1]
                chats.append(document.text)

        model = ScriptedModel([edit, *steps[:cut], ENDS[end]])
        turns = Turns(chat, model, LoggedTools(TOOLS))
        watch(document, look)
        ports = regenerating(replace(turns.ports, document=document), "B")
        with suppress(CrashError, asyncio.CancelledError):
            asyncio.run(run_turn(ports, turns.resolve))
        look()
    assert "old" not in repr(model.asks[0].transcript.exchanges[0].answers)
    wrote = any(isinstance(step, TextDelta) and step.text.strip() for step in steps[:cut])
    is_withdrawn = any(isinstance(step, Withdrawn) for step in steps[:cut])
    if not wrote and not is_withdrawn and not any(map(_has_words, steps[:cut])):
        assert left in chats


def _has_words(step: ScriptStep) -> bool:
    return isinstance(step, ThinkingDelta | ThinkingEnd | Ran)


def lived(kind: str, chat: str, steps: list[ScriptStep]) -> bool:
    """Whether a turn is complete at its end; it must never be complete before the reply's end."""
    is_told = False

    def tell() -> None:
        nonlocal is_told
        is_told = True

    with documents(kind, chat) as (document, left):

        def look() -> None:
            if not is_told:
                assert not isinstance(ends_in(left()), plan.Complete), left()

        turns = Turns(chat, ScriptedModel([*steps, tell]), LoggedTools(TOOLS))
        watch(document, look)
        with suppress(CrashError, asyncio.CancelledError):
            asyncio.run(run_turn(replace(turns.ports, document=document), turns.resolve))
        look()
        return isinstance(ends_in(left()), plan.Complete)
