"""If killed at any step, a turn loses at most the last second, and no approval runs two calls.

A call that may have run, and whose result is not in the file, runs again only at the second new
approval.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.rounds import last_notice
from parley.chat.transcript import Question, Text

HERE = Path(__file__).parent
STEPS = [
    ["0", "3", "7", "11", "15", "17"],
    ["18", "19", "20", "21", "22"],
    ["23", "24", "25", "26", "27"],
    ["28", "29", "33", "41", "1000"],
]
"""Before the reply, during it, around the approval, around the call, during the next reply."""


class Mortal:
    """A program that can die at many points and imports everything only once."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, str(HERE / name)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def death(self, folder: Path, point: int | None) -> dict[str, Any]:
        """The state in a new folder after a death at this point."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(folder / str(point)), point]) + "\n")
        self.process.stdin.flush()
        facts: dict[str, Any] = json.loads(self.process.stdout.readline())
        return facts


def program(name: str) -> Iterator[Mortal]:
    mortal = Mortal(name)
    with mortal.process:
        yield mortal
    assert mortal.process.returncode == 0


@pytest.fixture(scope="module")
def each_step() -> Iterator[Mortal]:
    yield from program("crash_at_each_step.py")


@pytest.fixture(scope="module")
def any_point() -> Iterator[Mortal]:
    yield from program("crash_at_any_point.py")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: f"{steps[0]} to {steps[-1]}")
def test_killed_at_any_step_a_turn_can_continue_and_no_call_runs_twice(
    each_step: Mortal, tmp_path: Path, steps: list[str]
) -> None:
    found = [each_step.death(tmp_path, int(step)) for step in steps]
    assert [str(each["step"]) for each in found] == steps
    for each in found:
        assert each["killed"] == (each["step"] < 1000), each
        assert not each["errors"], each
        assert each["kept"], each
        assert each["answered"], each
        assert each["ran_before"] + each["ran_without_a_new_yes"] <= 1, each
        assert each["ran_before"] == 0 or not each["waits"] or each["started"] == 1, each
        said = [message for message, _ in each["yeses"]]
        ran = [count for _, count in each["yeses"]]
        if not each["waits"]:
            assert ran == [], each
        elif each["started"]:  # it may have run, so the first approval only warns
            assert "may have run: no result in the file" in said[0], each
            assert (said[1:], ran) == ([""], [0, 1]), each
        else:
            assert (said, ran) == ([""], [1]), each
        assert each["end"] in ("complete", "nothing"), each


SECOND_S = 1.0
POINTS = 100
PARTS = 4
NOTICE = "the answer was still being written"


def answer(text: str) -> tuple[list[str], str, list[str]]:
    """The words in a chat's only answer, its notice's reason, and its calls' statuses."""
    transcript = parse(text)
    assert not [problem for problem in transcript.problems if problem.severity == "error"], text
    assert transcript.exchanges[0].question == Question((Text("say words"),)), text
    answers = transcript.exchanges[0].answers
    segments = answers[0].segments if answers else ()
    words = [
        word for segment in segments if isinstance(segment, Text) for word in segment.text.split()
    ]
    notice = last_notice(answers[0]) if answers else None
    results = [proposal.result for proposal in answers[0].proposals] if answers else []
    return (
        words,
        notice.reason if notice else "",
        [result.status if result else "" for result in results],
    )


def check(death: dict[str, Any], whole: list[str]) -> None:
    """Check that only the last second's words are missing, and that the call ran at most once."""
    words, notice, results = answer(death["text"])
    assert words == whole[: len(words)]
    assert all(at >= death["death"] - SECOND_S for at, _ in death["spoken"][len(words) :])
    is_whole = not words or words == whole or (words == whole[:30] and results)
    assert notice == NOTICE or (notice == "" and is_whole)
    words, notice, results = answer(death["text_after"])
    if death["code"] == 3:  # the call may have run, so the user decides
        assert (words, notice, results) == (whole[:30], "", [""])
    else:
        assert death["code"] == 0 or death["text_after"] == death["text"], (
            "nothing was left to be done"
        )
        assert (words, notice, results) == (whole, "", ["ok"])
    assert death["calls"] <= death["calls_after"] <= 1


@pytest.mark.timeout(180)
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_any_point_at_most_the_last_second_is_lost_and_the_next_run_continues(
    any_point: Mortal, tmp_path: Path, part: int
) -> None:
    complete = any_point.death(tmp_path, None)
    whole = [word for _, word in complete["spoken"]]
    assert (complete["killed"], complete["code"], complete["calls"], len(whole)) == (
        False,
        0,
        1,
        60,
    )
    points = sorted(random.Random(part).sample(range(1, complete["points"]), POINTS // PARTS))
    for point in points:
        death = any_point.death(tmp_path, point)
        assert death["killed"], point
        check(death, whole)
