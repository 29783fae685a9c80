"""The gate: where it is run, and what it says of commits."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent


def test_the_workflow_only_calls_the_gate_on_both_systems_with_both_neovims() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert job["strategy"]["matrix"] == {
        "os": ["ubuntu-latest", "macos-latest"],
        "neovim": ["stable", "nightly"],
    }
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize(
    ("subject", "fits"),
    [("a" * 72, True), ("a" * 73, False), ("❓" * 72, True), ("❓" * 73, False), ("é" * 72, True)],
)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_subject_of_more_than_72_columns_is_refused(
    tmp_path: Path, subject: str, fits: bool, locale: str
) -> None:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "LC_ALL": locale, "GIT_CONFIG_GLOBAL": os.devnull}

    def ran(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    ran("git", "init", "-q")
    ran("git", "commit", "-q", "--allow-empty", "-m", subject, "-m", "b" * 100)
    checked = ran(str(ROOT / ".ci" / "subjects"))
    assert (checked.returncode == 0, subject in checked.stderr) == (fits, not fits)
