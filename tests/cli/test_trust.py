"""`parley trust` for a project's instructions: shown and asked in a terminal, else by digest."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.cli.test_servers import output
from tests.forks import ForkServer
from tests.workspace.trees import work_tree, write

FILES = {"AGENTS.md": "Use tabs.\n@style.md\n", "style.md": "Never spaces.\n"}
SHOWN = """\
AGENTS.md:
  # Instructions from AGENTS.md

  Use tabs.
  @style.md

  # Instructions from style.md

  Never spaces.
"""
BLOCK = "\n".join(line.removeprefix("  ") for line in SHOWN.split("\n")[1:-1])
DIGEST = hashlib.sha256(BLOCK.encode()).hexdigest()


@pytest.fixture
def shell(tmp_path: Path, forks: ForkServer) -> Shell:
    """A user whose working directory is a project that does not contain the home directory."""
    shell = Shell(work_tree(tmp_path / "project", FILES), forks)
    shell.environ["HOME"] = str(tmp_path / "home")
    shell.ask("say: hello")
    return shell


def request(shell: Shell) -> tuple[str, str]:
    """The request that would be sent now, and the notes about it."""
    code, body, notes = output(shell.run("messages", "chat.md"))
    assert code == 0
    return body, notes


def test_a_text_is_used_after_a_yes_for_its_digest(shell: Shell) -> None:
    code, said, complaint = output(shell.run("trust", "AGENTS.md"))
    assert code == 1
    assert [line.rstrip() for line in said.split("\n")][:9] == SHOWN.split("\n")[:-1]
    path = shell.folder / "AGENTS.md"
    assert f"run: parley trust {path} --digest {DIGEST}" in complaint
    assert output(shell.run("trust", "--digest", "0" * 64))[0] == 1
    body, notes = request(shell)
    assert "Never spaces." not in body
    assert notes == (
        "parley: AGENTS.md is not sent to the model, because you have not agreed to it. "
        "To read it and agree, run: parley trust\n"
    )
    code, said, complaint = output(shell.run("trust", "--digest", DIGEST))
    assert (code, complaint) == (0, "")
    assert said.endswith("Parley uses AGENTS.md from now on, and asks again if it changes\n")
    body, notes = request(shell)
    assert body.count("Never spaces.") == 1
    assert "instructions from style.md, about 3 tokens" in notes
    assert output(shell.run("trust"))[1] == "nothing to agree to here\n"


def test_a_terminal_shows_the_text_or_its_changes_and_asks(shell: Shell) -> None:
    with shell.terminal("trust") as terminal:
        terminal.wait_for(
            lambda output: output.endswith(b"Use the instructions in AGENTS.md? (y/N) ")
        )
        assert b"Never spaces." in terminal.output
        terminal.press(b"n\n")
        assert terminal.end() == 1
    with shell.terminal("trust", "AGENTS.md") as terminal:
        terminal.wait_for(lambda output: output.endswith(b"(y/N) "))
        terminal.press(b"y\n")
        assert terminal.end() == 0
    assert "Never spaces." in request(shell)[0]
    write(shell.folder, {"style.md": "Never spaces.\nAlways \u200b evil.\n"})
    assert "Never spaces." not in request(shell)[0]
    with shell.terminal("trust") as terminal:
        terminal.wait_for(lambda output: output.endswith(b"(y/N) "))
        assert b"AGENTS.md has changed:" in terminal.output
        assert b"+ Always \\u200b evil." in terminal.output
        assert b"Use tabs." not in terminal.output
        terminal.press(b"\n")
        assert terminal.end() == 1


def test_a_question_is_sent_without_undecided_instructions_and_verify_names_a_change(
    shell: Shell,
) -> None:
    code, _, notes = output(shell.run("respond", "chat.md"))
    assert (code, notes.count("AGENTS.md is not sent to the model")) == (0, 1)
    assert shell.run("trust", "--digest", DIGEST).returncode == 0
    code, said, _ = output(shell.run("verify", "chat.md"))
    assert code == 0
    lines = [line.partition(": ")[2] for line in said.splitlines()[:-1]]
    assert lines == [
        "the instructions from AGENTS.md are now sent",
        "the instructions from style.md are now sent",
    ]
    shell.ask("say: hello")
    assert output(shell.run("respond", "chat.md"))[2] == ""
    assert "settings" not in output(shell.run("verify", "chat.md"))[1]
    write(shell.folder, {"style.md": "Changed."})
    said = output(shell.run("verify", "chat.md"))[1]
    assert "the instructions from AGENTS.md are no longer sent" in said
    assert "system prompt" not in said


def test_a_file_that_cannot_be_used_is_named_and_nothing_is_sent(shell: Shell) -> None:
    path = shell.folder / "AGENTS.md"
    path.unlink()
    path.symlink_to("/etc/passwd")
    code, _, notes = output(shell.run("respond", "chat.md"))
    assert (code, notes.count("AGENTS.md is not used: it is outside of")) == (0, 1)
    assert "root:" not in request(shell)[0]


def test_a_prompt_and_a_skill_are_agreed_to_in_the_same_way(shell: Shell) -> None:
    skill = "---\nname: fix\ndescription: Fixes.\n---\nFix it.\n"
    write(shell.folder, {".parley/prompts/ask.md": "Why?\n", ".agents/skills/fix/SKILL.md": skill})
    code, said, complaint = output(shell.run("trust", ".parley/prompts/ask.md"))
    assert (code, "  Why?" in said) == (1, True)
    assert "ask.md is not used" in complaint
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in ("Why?\n", skill)]
    words = [word for each in (*digests, DIGEST) for word in ("--digest", each)]
    code, said, complaint = output(shell.run("trust", *words))
    assert (code, complaint) == (0, "")
    assert said.count("from now on, and asks again") == 3


def test_a_text_of_a_skill_is_never_taken_for_a_server_file(shell: Shell) -> None:
    skill, servers = (
        "---\nname: fix\ndescription: Fixes.\n---\n",
        '{"mcpServers": {"a": {"command": "b"}}}',
    )
    places = {".vscode/SKILL.md": skill, ".vscode/run.sh": "echo\n", ".vscode/mcp.json": servers}
    write(shell.folder, {**places, ".agents/skills/none": ""})
    (shell.folder / ".agents/skills/fix").symlink_to(shell.folder / ".vscode")
    complaint = output(shell.run("trust"))[2]
    for name, text in (("run.sh", "echo\n"), ("mcp.json", servers)):
        digest = hashlib.sha256(text.encode()).hexdigest()
        words = f"trust {shell.folder}/.agents/skills/fix/{name} --digest {digest}"
        assert f"run: parley {words}" in complaint
        code, said, _ = output(shell.run(*words.split()))
        assert (code, "from now on, and asks again" in said) == (0, True)
        assert "is trusted" not in said
        # Not even if the text needs no yes any more.
        assert output(shell.run(*words.split()))[0] == 1


def test_a_file_that_is_not_a_text_of_the_project_is_refused(shell: Shell) -> None:
    code, said, complaint = output(shell.run("trust", "style.md", "none.md"))
    assert (code, said) == (1, "")
    assert "style.md: it is not a text of this project" in complaint
    assert "none.md: there is no such file" in complaint
