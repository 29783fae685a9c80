"""A process that changes or reverts files is killed between any two of its steps: each file then has
its old or its new content, none is lost, and a revert restores the first bytes.
"""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from parley.runtime.reverting import Reverter
from tests.laws.killed_changes import EDITED, FIRST, REPLACED, VERSIONS, project_in

ROOT = Path(__file__).resolve().parents[2]
POINTS = 100
_PLACES = {
    "a.txt": ({"a.txt"}, {FIRST["a.txt"][0], EDITED, REPLACED}),
    "old/name.txt": ({"old/name.txt", "sub/name.txt"}, {FIRST["old/name.txt"][0]}),
}
"""The files that always exist: their names and contents."""


def _run(folder: Path, *steps: int) -> str:
    command = [sys.executable, "-m", "tests.laws.killed_changes", str(folder), *map(str, steps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The folders of the killed processes, by the step at which they were killed."""
    folder = tmp_path_factory.mktemp("killed")
    count = int(_run(folder))
    assert count > 2 * POINTS
    chosen = sorted(random.Random(31).sample(range(1, count + 1), POINTS))
    _run(folder, *chosen)
    return {step: folder / str(step) for step in chosen}


def _files(root: Path) -> dict[str, tuple[bytes, int]]:
    """Content and mode of each file, except for unfinished ones, which have names of their own."""
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in root.rglob("*")
        if path.is_file() and not (path.name.startswith(".parley-") and path.suffix == ".new")
    }


async def test_no_file_is_half_written_or_lost_and_a_revert_restores_the_first_bytes(
    killed: dict[int, Path],
) -> None:
    are_changed = 0
    for step, folder in killed.items():
        left = _files(folder / "root")
        assert {content for content, _ in left.values()} <= VERSIONS, step
        for names, contents in _PLACES.values():
            kept = {left[name][0] for name in names & left.keys()}
            assert kept, step
            assert kept <= contents, step
        project = project_in(folder)
        with closing(project.ledger):
            reverter: Reverter = project.reverter()
            known = await reverter.histories()
            outcome = await reverter.revert([each for each in known if not each.is_reverted])
            assert (outcome.conflicts, outcome.problems) == ([], []), step
            assert _files(folder / "root") == FIRST, step
            assert all(each.is_reverted for each in await reverter.histories()), step
        are_changed += left != FIRST
    assert are_changed > POINTS // 3
