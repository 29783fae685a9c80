"""Killed at any step of a turn, nothing is lost, and no yes has run two calls.

A call that may have run, and whose result is not in the file, runs again at the second new yes only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "crash_at_each_step.py"
STEPS = [
    ["0", "3", "7", "11", "15", "17"],
    ["18", "19", "20", "21", "22"],
    ["23", "24", "25", "26", "27"],
    ["28", "29", "33", "41", "1000"],
]
"""Before the reply, while it is written, around the yes, around the call, while its result is answered."""


@pytest.fixture(scope="module")
def program() -> Iterator[subprocess.Popen[str]]:
    """The program, which dies at many steps and imports only once."""
    command = [sys.executable, str(PROGRAM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yield program
    assert program.returncode == 0


def death(program: subprocess.Popen[str], folder: Path, step: str) -> dict[str, Any]:
    """What is found after a death at this step."""
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(json.dumps([str(folder / step), int(step)]) + "\n")
    program.stdin.flush()
    found: dict[str, Any] = json.loads(program.stdout.readline())
    return found


@pytest.mark.timeout(180)
@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: f"{steps[0]} to {steps[-1]}")
def test_killed_at_any_step_a_turn_can_go_on_and_no_call_runs_twice(
    program: subprocess.Popen[str], tmp_path: Path, steps: list[str]
) -> None:
    found = [death(program, tmp_path, step) for step in steps]
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
        elif each["started"]:  # it may have run, so the first yes says so and does nothing
            assert "may have run already" in said[0], each
            assert (said[1:], ran) == ([""], [0, 1]), each
        else:
            assert (said, ran) == ([""], [1]), each
        assert each["end"] in ("complete", "nothing"), each
