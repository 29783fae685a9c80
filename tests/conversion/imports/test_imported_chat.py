"""Another program's messages become a chat file; every loss is reported."""

from __future__ import annotations

from parley.chat.front_matter import read_front_matter
from parley.chat.reader import parse
from parley.conversion.imports.imported_chat import Conversation
from tests.pictures import png


def test_notes_stay_in_their_place() -> None:
    said = Conversation()
    said.note(" \n above")
    said.note(" \n ")
    said.question("a?")
    said.note("in the question")
    said.reply("A")
    said.text("a")
    said.note("in the answer")
    assert said.chat().text == (
        "🔒: above\n\n💬: a?\n\n🔒: in the question\n\n🤖:[A]\n\na\n\n🔒: in the answer\n\n💬: \n"
    )


def test_a_system_prompt_that_front_matter_cannot_hold_is_reported() -> None:
    said = Conversation()
    said.title("a title")
    said.system("x" * 70_000)
    said.question("a?")
    chat = said.chat()
    assert chat.text == "---\ntopic: a title\n---\n\n💬: a?\n"
    assert chat.losses == ("its system_prompt, which front matter cannot contain",)


def test_tags_are_a_list_without_duplicates() -> None:
    said = Conversation()
    said.tags(["lua", "two words", "lua", " ", 'a: "b"', "\0"])
    said.question("a?")
    keys = read_front_matter(parse(said.chat().text).front_matter).keys
    assert keys == {"tags": ("lua", "two words", 'a: "b"', "␀")}
    assert said.chat().losses == ()


def test_results_match_calls_with_the_same_id_in_order() -> None:
    said = Conversation()
    said.reply()
    for arguments in ("1", "2"):
        said.call("c", "x", arguments)
    said.question("meanwhile")
    for body in ("one", "two", "three"):
        said.result("c", body)
    (first, second), (orphan,) = (
        parse(said.chat().text).exchanges[0].answers[0].proposals,
        said.chat().losses,
    )
    assert [call.result and call.result.body for call in (first, second)] == ["one", "two"]
    assert orphan == "the call for a result, which is therefore never sent: c"
    assert "`three`" in said.chat().text


def test_a_picture_needs_a_folder_that_a_link_can_name() -> None:
    assert Conversation().picture(png()) is None
    assert Conversation("a/b.assets").picture(png()) is None
    assert Conversation("b.assets").picture(b"text") is None
    attachment = Conversation("b.assets").picture(png())
    assert attachment is not None
    assert attachment.path.startswith("b.assets/")


def test_other_agents_have_their_own_answers() -> None:
    said = Conversation()
    said.question("a?")
    for agent, words in (("A]\n", "one"), ("A", "two"), ("B", "three")):
        said.reply(agent)
        said.text(words)
    answers = parse(said.chat().text).exchanges[0].answers
    assert [answer.agent for answer in answers] == ["A", "B"]
