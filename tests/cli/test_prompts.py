"""Prompts and skills in the shell: lists, `ask --prompt`, and a project's files."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from parley.chat.reader import parse
from parley.storage.ledger import LedgerFile, default_path
from parley.storage.text_trust import TextTrust
from tests.cli.shell import Shell
from tests.json_schema import types_of
from tests.nvim.hanging_model import hanging_model

PROMPT = "---\ndescription: Says it\narguments: [what]\n---\nsay: {{what}}\n"


def put(shell: Shell, name: str, text: str, *, is_own: bool = False) -> Path:
    base = Path(shell.environ["XDG_CONFIG_HOME"]) / "parley" if is_own else shell.folder
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def trust(shell: Shell, path: Path) -> None:
    """Agree to a text as the editor's dialog does."""
    with closing(LedgerFile(default_path(shell.environ))) as ledger:
        TextTrust(lambda: ledger).trust(path, path.read_bytes())


def question(shell: Shell) -> str:
    (chat,) = shell.chats
    return chat.read_text(encoding="utf-8").partition("💬: ")[2].partition("\n\n🤖:")[0]


def test_a_prompt_begins_the_question(shell: Shell) -> None:
    put(shell, "prompts/echo.md", PROMPT, is_own=True)
    listed = shell.run("prompts")
    assert (listed.returncode, listed.stdout) == (0, b"echo  Says it\n")
    missing = shell.run("ask", "--prompt", "echo")
    assert missing.returncode == 1
    assert b"the prompt echo needs what. Pass --argument what=VALUE" in missing.stderr
    assert not shell.chats
    done = shell.run("ask", "--prompt", "echo", "--argument", "what=one two", "three")
    assert done.stdout == b"one two\n\nthree\n"
    assert question(shell) == "say: one two\n\nthree"
    unknown = shell.run("ask", "--prompt", "ech")
    assert b"there is no prompt ech: choose one of echo" in unknown.stderr


def test_a_projects_prompt_is_used_only_when_trusted(shell: Shell) -> None:
    path = put(shell, ".parley/prompts/p.md", "---\nagent: Demo\ndescription: D\x1b\n---\nsay: x")
    listed = shell.run("prompts").stdout
    assert (
        listed
        == b"p  (not trusted) line 3: front matter is not valid YAML: special characters are not allowed\n"
    )
    path.write_text("---\nagent: Demo\n---\nsay: x", encoding="utf-8")
    refused = shell.run("ask", "--prompt", "p")
    assert (refused.returncode, shell.chats) == (1, [])
    assert f"run: parley trust {path}".encode() in refused.stderr
    trust(shell, path)
    asked = shell.run("ask", "--prompt", "p")
    assert b"asks for the agent Demo. To accept, pass --agent Demo" in asked.stderr
    assert not shell.chats
    assert shell.run("ask", "--prompt", "p", "--agent", "Demo").stdout == b"x\n"
    assert "agent: Demo\n" in shell.chats[0].read_text(encoding="utf-8")
    path.write_text("say: changed", encoding="utf-8")
    assert shell.run("ask", "--prompt", "p").returncode == 1
    (row,) = [json.loads(line) for line in shell.run("prompts", "--json").stdout.splitlines()[:1]]
    assert (row["name"], row["trusted"]) == ("p", False)


def test_the_agent_of_an_own_prompt_answers(shell: Shell) -> None:
    put(shell, "prompts/p.md", "---\nagent: Demo\n---\nsay: x", is_own=True)
    assert shell.run("ask", "--prompt", "p").stdout == b"x\n"
    assert "🤖:[Demo]" in shell.chats[0].read_text(encoding="utf-8")


def test_a_skill_is_read_in_a_chat(shell: Shell) -> None:
    put(shell, "skills/pdf/SKILL.md", "---\ndescription: Forms\n---\nFill it in.", is_own=True)
    assert shell.run("skills").stdout == b"pdf  Forms\n"
    done = shell.run("ask", 'call read_skill {"name": "pdf"}', "--agent", "Demo")
    assert done.returncode == 0, done.stderr
    text = shell.chats[0].read_text(encoding="utf-8")
    assert "\nFill it in.\n" in text
    assert "❓:[ya]" in text


def test_a_projects_skill_is_listed_until_it_is_trusted(shell: Shell) -> None:
    path = put(shell, ".agents/skills/pdf/SKILL.md", "---\ndescription: Forms\n---\nFill it in.")
    listed = shell.run("skills", "--json")
    assert types_of(listed.stdout.splitlines()) == {"skill", "end"}
    assert json.loads(listed.stdout.splitlines()[0])["trusted"] is False
    done = shell.run("ask", 'call read_skill {"name": "pdf"}', "--agent", "Demo")
    assert "Fill it in." not in shell.chats[0].read_text(encoding="utf-8")
    assert b"this project's skill pdf cannot be read by models" in done.stderr
    trust(shell, path)
    done = shell.run("ask", 'call read_skill {"name": "pdf"}', "--agent", "Demo")
    assert done.returncode == 0
    assert any("Fill it in." in chat.read_text(encoding="utf-8") for chat in shell.chats)


def test_requests_contain_the_files_text_once_and_stay_equal_when_the_chat_is_reopened(
    shell: Shell,
) -> None:
    put(shell, "prompts/echo.md", PROMPT + "See @@notes.md@@\n\n🤖: no\u200b marker", is_own=True)
    put(shell, "skills/pdf/SKILL.md", "---\ndescription: Forms\n---\nFill it in.", is_own=True)
    put(shell, "notes.md", "a note\n")
    with hanging_model() as model:
        model.go.set()
        provider = f'[providers.lab]\nkind = "openai"\nbase_url = "{model.url}/v1"\napi = "chat"\n'
        agent = '[[agents]]\nname = "Lab"\nprovider = "lab"\nmodel = "held"\n'
        shell.configure(f"status.llm = false\n{provider}{agent}", agent='agent = "Lab"')
        first = shell.run("ask", "--prompt", "echo", "--argument", "what=x")
        assert first.returncode == 0, first.stderr
        second = shell.run("ask", "--last", 'call read_skill {"name": "pdf"}')
        assert second.returncode == 0, second.stderr
    one, two, three = ([*body["messages"]] for body in model.asked)
    (chat,) = shell.chats
    asked = parse(chat.read_text(encoding="utf-8")).exchanges[0].question
    assert asked is not None
    assert one[1:] == [{"role": "user", "content": asked.text}]
    assert asked.text.startswith("say: x\nSee @@notes.md@@\n\n🤖: no\\u200b marker\n\n`notes.md`")
    assert one[0]["content"].count("- pdf: Forms") == 1
    for before, after in ((one, two), (two, three)):
        assert json.dumps(after[: len(before)]) == json.dumps(before)
    text = three[-1]["content"]
    assert text.startswith("---\ndescription: Forms\n---\nFill it in.\n")
    assert f"```\n{text}\n```" in chat.read_text(encoding="utf-8")
