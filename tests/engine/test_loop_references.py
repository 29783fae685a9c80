"""A question whose references cannot be included: the first attempt stops, the second asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parley.chat.references import Reference, ReferenceText, name_of
from parley.engine import End
from tests.chats import TOOLS
from tests.fakes import LoggedTools, ScriptedModel, Turns, says


class Table:
    """References by name; all others are missing."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.why = "no such file"

    async def bring(self, references: Sequence[Reference]) -> Sequence[ReferenceText]:
        return [
            ReferenceText(name, self.texts[name]) if name in self.texts else self._missing(name)
            for name in map(name_of, references)
        ]

    def _missing(self, name: str) -> ReferenceText:
        return ReferenceText(name, self.why, "partial" if name.startswith("*") else "missing")


class Chat(Turns):
    """A chat with one question, and a table of references."""

    def __init__(self, question: str, **texts: str) -> None:
        self.scripted = ScriptedModel(says("Hello."), says("Hello."))
        super().__init__(f"💬: {question}\n", self.scripted, LoggedTools(TOOLS))
        self.table = Table(**texts)
        self.ports = replace(self.ports, references=self.table)

    @property
    def requests(self) -> int:
        return len(self.scripted.asks)


def stopped(name: str, more: str = "", why: str = "no such file") -> End:
    return End("nothing", f"not asked: @@{name}@@: {why}{more}; ask again to continue without it")


async def test_nothing_is_asked_or_written_while_a_reference_cannot_be_included() -> None:
    chat = Chat("see @@a@@ and @@b@@", a="text")
    assert await chat.run() == stopped("b")
    assert (chat.text, chat.requests) == ("💬: see @@a@@ and @@b@@\n", 0)


async def test_a_second_attempt_asks_the_question() -> None:
    chat = Chat("see @@a@@ and @@b@@", a="text")
    await chat.run()
    assert (await chat.run()).kind == "complete"
    assert chat.text.startswith(
        "💬: see @@a@@ and @@b@@\n\n`a` (1 line)\n\n```\ntext\n```\n\n`b`: no such "
        "file\n\n🤖:[Demo]\n"
    )
    assert chat.requests == 1


async def test_several_missing_references_are_counted() -> None:
    assert await Chat("@@a@@ @@b@@ @@c@@").run() == stopped("a", " (2 more)")


async def test_another_text_is_another_question() -> None:
    chat = Chat("see @@b@@")
    await chat.run()
    chat.edit(lambda text: text.replace("see", "look at"))
    assert await chat.run() == stopped("b")
    assert (await chat.run()).kind == "complete"


async def test_another_reason_is_reported_first() -> None:
    chat = Chat("see @@b@@")
    await chat.run()
    chat.table.why = "too large"
    assert await chat.run() == stopped("b", why="too large")
    assert chat.requests == 0


async def test_a_reference_that_now_exists_is_included() -> None:
    chat = Chat("see @@b@@")
    await chat.run()
    chat.table.texts["b"] = "now"
    assert (await chat.run()).kind == "complete"
    assert "```\nnow\n```" in chat.text


async def test_the_same_question_stops_again_another_time() -> None:
    chat = Chat("see @@b@@")
    await chat.run()
    await chat.run()
    chat.ask("see @@b@@")
    before = chat.text
    assert await chat.run() == stopped("b")
    assert chat.text == before


async def test_files_excluded_by_a_pattern_do_not_stop_the_question() -> None:
    chat = Chat("see @@*.py@@")
    assert (await chat.run()).kind == "complete"
    assert "`*.py`: no such file\n" in chat.text


async def test_the_message_is_one_line_without_hidden_characters() -> None:
    chat = Chat("see @@b@@")
    chat.table.why = "gone\n💬: \x1b[2Jask"
    assert await chat.run() == stopped("b", why="gone 💬: \\x1b[2Jask")
