"""`parley chat`: a conversation in a terminal, and its file."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from parley.chat.grammar import fit
from parley.chat.reader import parse
from parley.cli.chat import _HELP, _prepare_line, _typed
from tests.cli.glass import Glass
from tests.cli.shell import PARLEY, Shell, raw
from tests.nvim.harness import Child

STOCKS = "can you find the latest stock price of google?"
CALL = 'web_search(query: "google stock price") · mock'
Chat = Callable[..., AbstractContextManager[Glass]]


@pytest.fixture
def chat(shell: Shell, neovim: Child) -> Chat:
    @contextmanager
    def start(*arguments: str, columns: int = 80, **environ: str) -> Iterator[Glass]:
        with shell.terminal(
            "chat", *arguments, columns=columns, rows=24, program=PARLEY, **environ
        ) as terminal:
            yield Glass(neovim, terminal, columns, 24)

    return start


def until_prompt(glass: Glass, number: int) -> list[str]:
    """All rows, as soon as the n-th question can be typed."""

    def is_there(text: str) -> bool:
        prompts = [row for row in text.split("\n") if row.startswith("💬:")]
        return len(prompts) == number and prompts[-1] == "💬:" and text.endswith("💬:")

    return glass.until(is_there, f"prompt {number}")


def end(glass: Glass) -> None:
    glass.press("\x04")
    assert glass.end() == 0


def questions(path: Path) -> list[str]:
    transcript = parse(path.read_text(encoding="utf-8"))
    assert transcript.problems == ()
    return [e.question.text for e in transcript.exchanges if e.question and e.question.parts]


@pytest.mark.parametrize("columns", [80, 60])
def test_a_conversation_is_kept_in_a_file(shell: Shell, chat: Chat, columns: int) -> None:
    with chat(columns=columns) as glass:
        head = until_prompt(glass, 1)[:-1]
        (path,) = shell.chats
        assert " ".join(head).startswith("parley: Demo-OpenAI answers; the chat is ")
        assert str(path) in "".join(head)
        assert " ".join(head).endswith("Ctrl-D ends the conversation")
        glass.press("say: one\r")
        until_prompt(glass, 2)
        glass.press('"""say: two\r')
        glass.until(lambda text: text.endswith("..."), "the next line")
        glass.press('  three"""\r')
        rows = until_prompt(glass, 3)
        end(glass)
        assert glass.terminal.is_by_lines()
    talk = [
        "💬: say: one",
        "one",
        "",
        '💬: """say: two',
        '...   three"""',
        "two",
        "three",
        "",
        "💬:",
    ]
    assert rows == [*head, *talk]
    assert questions(path) == ["say: one", "say: two\n  three"]


def test_pasted_text_is_one_question(shell: Shell, chat: Chat) -> None:
    with chat() as glass:
        until_prompt(glass, 1)
        glass.press("\x1b[200~say: a\rb\r\rc\x1b[201~")
        glass.until(lambda text: text.endswith("\nc"), "what was pasted")
        glass.press("\r")
        assert until_prompt(glass, 2)[-6:] == ["a", "b", "", "c", "", "💬:"]
        end(glass)
    assert questions(shell.chats[0]) == ["say: a\nb\n\nc"]


def test_a_foreign_question_in_the_line_history_cannot_control_the_terminal(
    shell: Shell, chat: Chat
) -> None:
    hostile = "say: \x9d52;c;aGk=\x9c \x1b[2J \u202eevil"
    shell.chat.write_text(
        f"💬: say: one\n\n🤖:\n\none\n\n💬: {hostile}\n\n🤖:\n\nx\n", encoding="utf-8"
    )
    with chat("chat.md") as glass:
        until_prompt(glass, 1)
        glass.press("\x1b[A")
        glass.until(
            lambda text: text.endswith("💬: say: one"),
            "the last question that shows for what it is",
        )
        assert not raw(glass.terminal.text)
        glass.press("\x15")
        end(glass)


def test_the_user_is_asked_about_calls_and_can_leave_them_waiting(shell: Shell, chat: Chat) -> None:
    shell.ask(STOCKS)
    with chat("chat.md") as glass:
        assert (
            until_prompt(glass, 1)[-2]
            == "parley: the last question has no answer. /go continues the chat"
        )
        glass.press("/go\r")
        glass.until_row("Please choose")
        glass.press("q")
        assert "parley: these calls are waiting. /go asks about them again" in until_prompt(
            glass, 2
        )
        glass.press("and?\r")
        refusal = "parley: tool calls are waiting in chat.md. Decide on them first: /go"
        assert refusal in until_prompt(glass, 3)
        glass.press("/go\r")
        glass.until_row("Please choose")
        glass.press("ya")
        rows = until_prompt(glass, 4)
        glass.press("/quit\r")
        assert glass.end() == 0
    assert f"🛠 {CALL} → 61 B, ok" in rows
    assert "Google (GOOGL) is at $911" in shell.text
    assert questions(shell.chat) == [STOCKS]


def test_ctrl_c_drops_a_line_and_stops_an_answer_and_a_signal_ends_it(
    shell: Shell, chat: Chat
) -> None:
    with chat(PARLEY_DEMO_PACE="0.01") as glass:
        until_prompt(glass, 1)
        glass.press("not this")
        glass.until_row("not this")
        glass.press("\x03")
        until_prompt(glass, 2)
        glass.press("write 2000 words\r")
        glass.until_row("the file is the")
        glass.press("\x03")
        rows = until_prompt(glass, 3)
        assert rows[-3:] == ["parley: stopped. /go continues the answer", "", "💬:"]
        (path,) = shell.chats
        assert "🔒: [Stopped: by the user]" in path.read_text(encoding="utf-8")
        assert questions(path) == ["write 2000 words"]
        glass.press("/go\r")
        glass.until(
            lambda text: "the file" in text.rpartition("/go")[2].rpartition("/go")[2], "more"
        )
        os.kill(glass.terminal.process.pid, signal.SIGTERM)
        assert glass.end() == 130
    assert "🔒: [Stopped: by the user]" in path.read_text(encoding="utf-8")


def test_the_conversation_continues_from_an_editors_changes(shell: Shell, chat: Chat) -> None:
    code = "import sys; open(sys.argv[1], 'w', encoding='utf-8').write('\\U0001f4ac: say: mine\\n')"
    with chat(EDITOR=shlex.join([sys.executable, "-c", code])) as glass:
        until_prompt(glass, 1)
        glass.press("say: one\r")
        until_prompt(glass, 2)
        (path,) = shell.chats
        path.write_text(path.read_text(encoding="utf-8").replace("one", "other"), encoding="utf-8")
        glass.press("say: two\r")
        until_prompt(glass, 3)
        assert questions(path) == ["say: other", "say: two"]
        glass.press("/edit\r")
        assert until_prompt(glass, 4)[-4:] == ["💬: /edit", "mine", "", "💬:"]
        end(glass)
    assert path.read_text(encoding="utf-8") == "💬: say: mine\n\n🤖:[Demo-OpenAI]\n\nmine\n\n💬: \n"


def test_no_question_is_sent_after_a_signal_while_the_editor_is_open(
    shell: Shell, chat: Chat
) -> None:
    code = (
        "import os, signal, sys; open(sys.argv[1], 'w', "
        "encoding='utf-8').write('\\U0001f4ac: mine\\n')"
    )
    code += "; os.kill(os.getppid(), signal.SIGTERM)"
    shell.ask("other")
    with chat("chat.md", EDITOR=shlex.join([sys.executable, "-c", code])) as glass:
        until_prompt(glass, 1)
        glass.press("/edit\r")
        assert glass.end() == 130
    assert shell.text == "💬: mine\n"


def test_a_byte_that_is_not_text_does_not_end_the_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = io.BytesIO(b'caf\xe9\n"""a\n\xff"""\n')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content, encoding="utf-8"))
    _prepare_line([])
    assert [fit(_typed()[0]) for _ in range(2)] == ["caf\ufffd", "a\n\ufffd"]


def test_commands_are_listed_and_unknown_ones_reported(shell: Shell, chat: Chat) -> None:
    lines = (
        "/help",
        "/agent",
        "/agent Nobody",
        "/agent Demo-Text",
        "/file",
        "/fiel x",
        " /say",
        "",
    )
    with chat() as glass:
        for number, line in enumerate(lines, 1):
            until_prompt(glass, number)
            glass.press(f"{line}\r")
        rows = until_prompt(glass, len(lines) + 1)
        end(glass)
    (path,) = shell.chats
    text = "\n".join(rows)
    assert "/edit           edit the chat in your editor, then ask its new question" in rows
    assert 'Put a multi-line question between """ and """, or paste it.' in rows
    assert "To ask a question that starts with /, put a space before it." in rows
    assert rows[rows.index("  Demo") :][:3] == ["  Demo", "* Demo-OpenAI", "  Demo-Text"]
    assert "there is no agent 'Nobody'" in text
    assert "--agent" not in text
    assert max(map(len, _HELP.split("\n"))) <= 79
    assert f"💬: /file{path}💬:" in text.replace("\n", "")
    assert "parley: unknown command /fiel x: /help lists the commands. " in text
    assert questions(path) == ["/say"]
    assert "🤖:[Demo-Text]" in path.read_text(encoding="utf-8")


def test_a_new_chat_without_a_question_is_removed(shell: Shell, chat: Chat) -> None:
    with chat() as glass:
        until_prompt(glass, 1)
        assert len(shell.chats) == 1
        end(glass)
    assert shell.chats == []


def test_a_conversation_needs_a_terminal_and_an_existing_chat(shell: Shell, chat: Chat) -> None:
    done = shell.feed(b"hello\n", "chat")
    assert done.returncode == 2
    assert "chat needs a terminal. Without one, use `parley ask`" in done.stderr.decode()
    with chat("none.md") as glass:
        assert glass.end() == 1
        assert glass.rows() == ["parley: cannot read none.md: No such file or directory"]
    assert shell.chats == []


def test_a_prompt_is_asked_by_its_name_and_its_missing_arguments_are_asked_for(
    shell: Shell, chat: Chat
) -> None:
    path = Path(shell.environ["XDG_CONFIG_HOME"]) / "parley/prompts/echo.md"
    path.parent.mkdir()
    path.write_text("---\narguments: [what]\n---\nsay: {{what}}", encoding="utf-8")
    with chat() as glass:
        until_prompt(glass, 1)
        glass.press("/echo and more\r")
        glass.until(lambda text: text.endswith("what:"), "the argument")
        glass.press("one two\r")
        assert until_prompt(glass, 2)[-5:] == ["one two", "", "and more", "", "💬:"]
        end(glass)
    assert questions(shell.chats[0]) == ["say: one two\n\nand more"]
