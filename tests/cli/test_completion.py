"""The completion scripts in the installed shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from parley.cli import main
from parley.cli.arguments import SHELLS, parser
from parley.cli.completion import _about as about
from parley.cli.completion import bash
from tests.cli.shell import Shell, Terminal

AGENTS = (
    "* Demo         demo  demo  no key\n  Demo-OpenAI  demo  demo  no key\n  My Agent     "
    "demo  demo  a key\n"
)
BASH = shutil.which("bash") or "bash"
KNOWN = "/far/known chat.md"
PROMPT = "review  Reviews a file"
PARLEY = f"""parley() {{
    case $*/ in agents*) printf '%b' {AGENTS!r} ;; prompts*) echo {PROMPT!r} ;;
    *kn*/) echo {KNOWN!r} ;; esac
}}"""
"""A stand-in that knows agents, a prompt, and a chat in another folder."""
CASES = {
    "parley resp": ["respond"],
    "parley respond --ag": ["--agent", "--again"],
    "parley respond --agent D": ["Demo", "Demo-OpenAI"],
    "parley ask --prompt r": ["review"],
    "parley respond --agent=D": ["Demo", "Demo-OpenAI"],
    "parley respond --choose y": ["yA", "ya", "yo", "yO", "yn", "yN"],
    "parley check ": ["a.md", "my chat.md", "sub"],
    "parley check m": ["my chat.md"],
    "parley check kn": [KNOWN],
    "parley import kn": [],
    "parley import ": ["a.md", "b.txt", "my chat.md", "sub"],
    "parley import --from co": ["codecompanion"],
    "parley export --to=jsonl-o": ["jsonl-openai"],
    "parley completion ": list(SHELLS),
    "parley config loop.max_i": ["loop.max_iterations"],
    "parley config xm": ["xml", "xml.filter"],
    "parley --v": ["--version"],
    "parley he": ["help"],
    "parley help re": ["respond", "revert", "replay"],
}
ASK = """
while IFS= read -r typed; do
    typed=${typed//=/ = }
    read -r -a COMP_WORDS <<< "$typed"
    if [[ $typed == *' ' ]]; then COMP_WORDS+=(''); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _parley
    printf '%s\\n' "${COMPREPLY[@]}" ---
done
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with chats and other files."""
    for name in ("a.md", "my chat.md", "b.txt"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_contains_every_command_and_option(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script(shell, capsys)
    for name, command in parser().commands.items():
        assert name in text
        for action in command.arguments:
            for option in action.option_strings:
                assert (
                    f"-l {option[2:]}" if shell == "fish" and option[:2] == "--" else option
                ) in text
    assert "@" not in text.replace("COMP_WORDS[@]", "").replace('"$@"', "").replace(
        "COMPREPLY[@]", ""
    )


def test_bash_completes_commands_options_their_values_and_files(folder: Path) -> None:
    typed = "".join(f"{line}\n" for line in CASES)
    code = f"{PARLEY}\n{bash(parser())}\n{ASK}"
    done = subprocess.run(
        ["bash", "--norc", "-c", code], input=typed, capture_output=True, text=True, check=True
    )
    replies = [reply.strip("\n").split("\n") for reply in done.stdout.split("---\n")[:-1]]
    assert {
        line: list(filter(None, reply)) for line, reply in zip(CASES, replies, strict=True)
    } == CASES
    assert done.stderr == ""


def test_bash_at_a_terminal_completes_names_with_spaces(folder: Path) -> None:
    shell = Shell(folder)
    shell.environ |= {"INPUTRC": "/dev/null", "TERM": "dumb"}
    (folder / "parley.bash").write_text(f"PS1='$ '\n{PARLEY}\n{bash(parser())}", encoding="utf-8")
    with shell.terminal(
        "--noprofile", "--rcfile", "parley.bash", "-i", program=(BASH,)
    ) as terminal:
        assert completed(terminal, "parley respond --agent M", "My\\ Agent ")
        assert completed(terminal, "parley check m", "my\\ chat.md ")
        assert completed(terminal, "parley check kn", "/far/known\\ chat.md ")


def completed(terminal: Terminal, typed: str, ending: str) -> bool:
    """Whether Tab completes the line to this text."""
    terminal.wait_for(lambda output: output.endswith(b"$ "))
    terminal.press(f"{typed}\t".encode())
    terminal.wait_for(lambda output: ending.encode() in output)
    terminal.press(b"\x15\n")
    return True


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_accepts_its_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "_parley").write_text(script("zsh", capsys), encoding="utf-8")
    code = "autoload -U compinit; compinit -D -u; source ./_parley; print $_comps[parley]"
    done = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("_parley\n", "")


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes_as_bash_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "parley.fish").write_text(script("fish", capsys), encoding="utf-8")
    lines = "".join(f"complete -C {line!r}; echo ---\n" for line in CASES if "=" not in line)
    known = f"case agents; printf '%b' {AGENTS!r}; case prompts; echo {PROMPT!r}; case list; echo {KNOWN!r}"
    code = f"function parley; switch $argv[1]; {known}; end; end\nsource parley.fish\n{lines}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    replies = [reply.splitlines() for reply in done.stdout.split("---\n")[:-1]]
    names = [{line.partition("\t")[0].rstrip("/") for line in reply} for reply in replies]
    for line, reply in zip((line for line in CASES if "=" not in line), names, strict=True):
        assert set(CASES[line]) <= reply, line


def test_an_option_is_described_by_its_purpose_and_not_by_its_first_value() -> None:
    for name, command in parser().commands.items():
        for action in command.arguments:
            for value in action.choices or () if action.option_strings else ():
                assert not about(action).startswith(str(value)), (name, action.option_strings)
