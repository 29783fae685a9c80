"""An agent, or Parley with it, is killed at any step of its turns: no call runs that was not approved,
no approval is invented, no process is left, and the chat continues.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
POINTS = 15
"""The deaths of each of the two."""


def _run(folder: Path, who: str, *steps: int) -> str:
    command = [sys.executable, "-m", "tests.acp.killed_turns", str(folder), who, *map(str, steps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("who", ["host", "agent"])
def test_a_death_at_any_step_grants_nothing_and_the_chat_continues(
    tmp_path: Path, who: str
) -> None:
    count = int(_run(tmp_path, who))
    _run(tmp_path, who, *sorted(random.Random(7).sample(range(1, count + 1), POINTS)))
