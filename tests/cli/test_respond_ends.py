"""A turn that ends early, in any way, leaves the answer so far in the file, marked as incomplete."""

from __future__ import annotations

import os
import random
import signal
import subprocess

import pytest

from parley.chat.reader import parse
from parley.chat.rounds import last_notice
from parley.chat.transcript import Text
from tests.cli.shell import PATIENCE_S, Shell

PACE_S = 0.02
MOST_LOST = 75
"""Words; at this pace, at most 50 per second."""
GENTLE = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def speaking(shell: Shell, count: int = 150) -> subprocess.Popen[bytes]:
    shell.ask(f"write {count} words")
    return shell.start("respond", "chat.md", PARLEY_DEMO_PACE=str(PACE_S))


def read_some(process: subprocess.Popen[bytes], count: int) -> str:
    """The model's answer, up to this many bytes."""
    assert process.stdout is not None
    pieces = b""
    while len(pieces) < count and (piece := os.read(process.stdout.fileno(), 4_096)):
        pieces += piece
    return pieces.decode(errors="ignore")


def check_end(shell: Shell, output: str, reason: str) -> None:
    """Check that at most the last second of the answer is missing, and that the answer says that it
    is incomplete.
    """
    transcript = parse(shell.text)
    assert not transcript.problems
    answers = transcript.exchanges[0].answers
    notice = last_notice(answers[-1]) if answers else None
    texts = (
        [segment.text for segment in answers[-1].segments if isinstance(segment, Text)]
        if answers
        else []
    )
    words, spoken = " ".join(texts).split(), output.split()
    assert words[:-1] == spoken[: len(words[:-1])]
    assert len(spoken) - len(words) <= MOST_LOST
    assert (notice.reason if notice else "") == (reason if words else "")


SIGNALS = [
    *[(signal.SIGKILL, number) for number in range(2)],
    *[(number, 1) for number in sorted(GENTLE)],
]


@pytest.mark.parametrize(("number", "seed"), SIGNALS)
def test_a_turn_loses_at_most_the_last_second_whenever_it_ends(
    shell: Shell, number: signal.Signals, seed: int
) -> None:
    process = speaking(shell)
    output = read_some(process, random.Random(seed).randint(1, 300))
    process.send_signal(number)
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (130 if number in GENTLE else -number)
    said = output + rest.decode(errors="ignore")
    check_end(
        shell, said, "by the user" if number in GENTLE else "the answer was still being written"
    )
    done = shell.run("respond", "chat.md")
    assert done.returncode == 0
    assert "🔒" not in shell.text
    assert len(shell.text.split()) > 150


def test_nothing_is_lost_if_the_reader_stops_in_the_middle(shell: Shell) -> None:
    process = speaking(shell, 30)
    read_some(process, 60)
    assert process.stdout is not None
    with process:
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
    assert len(shell.text.split()) > 30
    assert "🔒" not in shell.text


def test_a_read_only_file_is_refused_before_anything_is_sent(shell: Shell) -> None:
    shell.ask("hello")
    shell.chat.chmod(0o444)
    before = shell.chat.stat()
    done = shell.run("respond", "chat.md")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"parley: cannot write {shell.chat}: it is read-only\n"
    assert shell.chat.stat().st_ino == before.st_ino
    assert shell.text == "💬: hello\n"


def test_the_attributes_that_a_file_cannot_keep_are_reported_once(shell: Shell) -> None:
    shell.ask("say: hello")
    other = shell.folder / "other.md"
    other.hardlink_to(shell.chat)
    done = shell.run("respond", "chat.md")
    assert (done.returncode, done.stdout) == (0, b"hello\n")
    note = "it had 2 hard links; any other link still has the old content"
    assert done.stderr.decode() == f"parley: {shell.chat}: {note}\n"
    assert other.read_text(encoding="utf-8") == "💬: say: hello\n"
