"""`parley export` and `import`: the forms, the destinations, and the messages."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Attachment
from parley.cli import main
from tests.pictures import PDF, png

TWO = (
    '{"messages": [{"role": "user", "content": "one"}]}\n{"messages": [{"role": "user", '
    '"content": "two"}]}\n'
)


def test_chats_are_printed_in_each_form_and_a_missing_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.md").write_text("---\ntopic: T\n---\n\n💬: one\n\n🤖:\n\nyes\n", encoding="utf-8")
    Path("b.md").write_text("💬: two\n", encoding="utf-8")
    Path("empty.md").write_text("💬: \n", encoding="utf-8")
    assert main(["export", "a.md"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main(["export", "a.md", "--to", "md"]) == 0
    assert capsys.readouterr().out == "# T\n\n## Question\n\none\n\n## Answer\n\nyes\n"
    assert main(["export", "a.md", "none.md", "b.md", "empty.md", "--to", "jsonl-openai"]) == 1
    printed = capsys.readouterr()
    assert [len(json.loads(line)["messages"]) for line in printed.out.splitlines()] == [2, 1]
    assert printed.err.splitlines() == [
        "parley: cannot read none.md: No such file or directory",
        "parley: b.md: it ends with a question, but training data must end with an answer",
        "parley: empty.md is left out because it has no question",
    ]
    assert main(["export", "a.md", "b.md", "--to", "md"]) == 2
    assert capsys.readouterr().err == "parley: --to md prints a single chat: give one file\n"


def test_an_import_is_printed_or_written_to_a_new_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.json").write_text(
        '{"seed": 1, "messages": [{"role": "user", "content": "one"}]}', encoding="utf-8"
    )
    assert main(["import", "one.json"]) == 0
    lost = "not carried over: keys other than the messages: seed\n"
    assert capsys.readouterr() == ("💬: one\n", f"parley: one.json: {lost}")
    assert main(["import", "one.json", "--to", "chat.md"]) == 0
    assert capsys.readouterr() == ("", f"parley: chat.md: {lost}")
    Path("chat.md").write_text("mine", encoding="utf-8")
    assert main(["import", "one.json", "--to", "chat.md"]) == 1
    assert "chat.md already exists" in capsys.readouterr().err
    assert Path("chat.md").read_text(encoding="utf-8") == "mine"
    assert main(["import", "one.json", "--from", "gp"]) == 1
    assert capsys.readouterr().err == "parley: one.json: it contains no messages\n"
    assert main(["import", "one.json", "--to", "none/chat.md"]) == 1
    assert "cannot write chat.md" in capsys.readouterr().err
    assert main(["import", "one.json", "--to", "x" * 300]) == 1
    assert "File name too long" in capsys.readouterr().err


def test_several_chats_from_one_file_are_written_into_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.jsonl").write_text(TWO, encoding="utf-8")
    Path("chats").mkdir()
    assert main(["import", "two.jsonl"]) == 1
    assert "contains 2 chats: --to FOLDER" in capsys.readouterr().err
    assert main(["import", "two.jsonl", "--to", "chats"]) == 0
    texts = {path.name: path.read_text(encoding="utf-8") for path in Path("chats").iterdir()}
    assert {name: parse(text).exchanges[0].question for name, text in texts.items()} == {
        name: parse(f"💬: {word}\n").exchanges[0].question
        for name, word in (("two-1.md", "one"), ("two-2.md", "two"))
    }


def test_pictures_are_written_next_to_their_chat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = (b64encode(png(number)).decode() for number in range(2))
    pdf = f"data:application/pdf;base64,{b64encode(PDF).decode()}"
    odd = [
        {"type": "image", "source": {"data": data}}
        for data in ("no base64", b64encode(b"no picture").decode(), 1)
    ]
    asked = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{one}"}},
        {"type": "text", "text": "?"},
    ]
    result = {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": [{"type": "image", "source": {"data": two}}],
    }
    messages = [
        {"role": "user", "content": [*asked, {"type": "file", "file": {"file_data": pdf}}, *odd]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
        },
        {"role": "user", "content": [result]},
    ]
    Path("chat.json").write_text(json.dumps(messages), encoding="utf-8")
    assert main(["import", "chat.json", "--to", "new.md"]) == 0
    assert (
        capsys.readouterr().err
        == "parley: new.md: not carried over: parts of type image, which were replaced with text\n"
    )
    transcript = parse(Path("new.md").read_text(encoding="utf-8"))
    assert transcript.exchanges[0].question is not None
    links = [
        part for part in transcript.exchanges[0].question.parts if isinstance(part, Attachment)
    ]
    (call,) = transcript.exchanges[0].answers[0].proposals
    links += call.result.attachments if call.result else ()
    assert [Path(link.path).read_bytes() for link in links] == [png(0), PDF, png(1)]
    assert main(["check", "new.md"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["import", "chat.json"]) == 0
    assert "[image url]\n\n?\n\n[file]\n\n[image]" in capsys.readouterr().out


def test_a_file_without_a_question_is_reported_and_loses_no_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    Path("t.md").write_text("hello\n🔒: mine\n", encoding="utf-8")
    assert main(["check", "t.md"]) == 0
    assert capsys.readouterr().out == "t.md:1:1: warning: no question: no line begins with 💬:\n"
    for command in ("verify", "replay"):
        assert main([command, "t.md"]) == 1
        assert capsys.readouterr() == ("", "parley: t.md: no question\n")
    assert main(["export", "--to", "md", "t.md"]) == 0
    assert capsys.readouterr().out == "# t\n\nhello\n"
    assert main(["export", "--to", "html", "t.md"]) == 0
    page = capsys.readouterr().out
    assert "<p>hello</p>" in page
    assert "mine" not in page
