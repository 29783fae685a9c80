"""Another project's agent in a shell: real commands, pipes and a terminal."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Proposal
from parley.tools.agent_calls import NOT_AWAITED
from tests.child_processes import until
from tests.cli.shell import PARLEY, Shell
from tests.e2e.guest_agents import (
    CODEX,
    GEMINI,
    LOUD,
    READS,
    TEXT,
    GuestAgent,
    GuestPlace,
    guest_place,
    processes_of,
)
from tests.forks import ForkServer

pytestmark = [pytest.mark.guests, pytest.mark.timeout(240)]


class GuestShell(Shell):
    """A shell in the project of an agent."""

    def __init__(self, folder: Path, forks: ForkServer, place: GuestPlace) -> None:
        super().__init__(folder, forks)
        self.folder = place.root
        self.place = place
        self.allow()

    def allow(self, *rules: str) -> None:
        """Set the rules that approve calls."""
        name, command = self.place.guest.name, list(self.place.guest.command)
        lines = [
            f"approval.auto = {json.dumps([*READS['auto'], *rules])}",
            "status.llm = false",
            f'agents = [{{ name = "Guest", provider = "{name}" }}]',
            f"[providers.{name}]",
            'kind = "acp"',
            f"command = {json.dumps(command)}",
            *(f"env.{key} = {json.dumps(value)}" for key, value in self.place.environ.items()),
        ]
        self.configure("\n".join(lines), 'agent = "Guest"')

    def json_of(self, code: int, *arguments: str) -> list[dict[str, Any]]:
        """The lines of a command that ends with this code."""
        done = self.run(*arguments, "--json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert (done.returncode, lines[-1]["code"]) == (code, code), done
        return lines

    def calls(self) -> Iterator[Proposal]:
        """The calls in the chat that the agent asked about, except for reading files."""
        for exchange in parse(self.text).exchanges:
            for answer in exchange.answers:
                yield from (each for each in answer.proposals if each.call.name != "read_file")

    def ask_in_terminal(self, keys: bytes, *arguments: str) -> tuple[int, str]:
        """The exit code and the output of a command, after these keys on the call that it shows."""
        with self.terminal(*arguments) as terminal:
            terminal.wait_for(lambda output: b"Please choose" in output)
            for key in (keys[:2], *(keys[at : at + 1] for at in range(2, len(keys)))):
                terminal.press(key)
                if key == b"yn":
                    terminal.wait_for(lambda output: b"reason (may be empty)" in output)
            return terminal.end(), terminal.text


def of_kind(kind: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]


@pytest.mark.parametrize("guest", [CODEX, GEMINI], ids=lambda guest: guest.name)
def test_a_real_agent_asks_waits_runs_and_is_reverted_in_a_shell(
    tmp_path: Path, forks: ForkServer, guest: GuestAgent
) -> None:
    with guest_place(tmp_path, guest) as place:
        shell = GuestShell(tmp_path / "shell", forks, place)
        lines = shell.json_of(3, "ask", "Make it loud.")
        shell.chat = Path(of_kind("chat", lines)[0]["file"])
        (waiting,) = of_kind("call_waiting", lines)
        assert [each["path"] for each in waiting["changes"]] == ["a.txt"]
        assert "+TWO" in waiting["changes"][0]["diff"]

        # The permission has ended with its command, so a choice on its call grants nothing.
        lines = shell.json_of(3, "respond", str(shell.chat), "--choose", "ya")
        first, second = shell.calls()
        assert first.result
        assert first.result.body.startswith(NOT_AWAITED)
        assert second.undecided
        assert place.file == TEXT

        # Nor does a mark that is written into the file; the agent asks again, and gets a no.
        shell.chat.write_text(shell.text.replace("❓: `", "❓:[ya] `"), encoding="utf-8")
        code, text = shell.ask_in_terminal(b"yn\r", "respond", str(shell.chat))
        assert code == 0, text
        assert "two" in text
        assert place.file == TEXT
        lost, last = list(shell.calls())[1:]
        assert (lost.choice, last.choice) == ("ya", "yn")
        assert lost.result
        assert lost.result.body.startswith(NOT_AWAITED)

        code, text = shell.ask_in_terminal(b"ya", "ask", "-c", str(shell.chat), "Do it loudly.")
        assert code == 0, text
        assert "It is done." in text
        assert place.file == LOUD
        (changed,) = of_kind("changed_file", shell.json_of(0, "changes", str(shell.chat)))
        assert (changed["path"], changed["added"], changed["removed"]) == ("a.txt", 1, 1)
        assert shell.run("revert", str(shell.chat)).returncode == 0
        assert place.file == TEXT

        shell.allow(f"{guest.name}/*")
        lines = shell.json_of(0, "ask", "-c", str(shell.chat), "Once more, loudly.")
        assert place.file == LOUD
        assert "Loud again." in "".join(each["text"] for each in of_kind("text_delta", lines))
        decided = of_kind("record", shell.json_of(0, "log", str(shell.chat)))
        assert {"key", "auto"} <= {each["rule"] for each in decided if each["kind"] == "decided"}

        done = shell.run("ask", "-c", str(shell.chat), "Say goodbye.")
        assert done.returncode == 0
        assert done.stdout.endswith(b"Goodbye.\n")  # Codex warns first
        assert not list(processes_of(place.home))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
def test_a_killed_command_leaves_no_agent_and_its_permission_is_not_granted(
    tmp_path: Path, forks: ForkServer
) -> None:
    with guest_place(tmp_path, CODEX) as place:
        shell, chance = GuestShell(tmp_path / "shell", forks, place), random.Random(3)
        shell.ask("Make it loud.")
        for _ in range(3):
            with subprocess.Popen(
                [*PARLEY, "respond", str(shell.chat)],
                cwd=place.root,
                env=shell.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                time.sleep(chance.uniform(0.3, 3))
                process.kill()
            asyncio.run(until(lambda: not list(processes_of(place.home)), 20))
            assert place.file == TEXT
            assert not [p for p in parse(shell.text).problems if p.severity == "error"]
        shell.json_of(3, "respond", str(shell.chat))  # the agent asks again
        assert place.file == TEXT
