"""The gate: where it runs, and its messages about commits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent


def test_the_workflow_only_calls_the_gate_on_both_systems_with_both_neovims() -> None:
    workflow = yaml.safe_load(
        (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    )
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert job["strategy"]["matrix"] == {
        "os": ["ubuntu-latest", "macos-latest"],
        "neovim": ["v0.10.4", "stable", "nightly"],
        "exclude": [{"os": "ubuntu-latest", "neovim": "v0.10.4"}],
    }
    assert job["continue-on-error"] == "${{ matrix.neovim == 'nightly' }}"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize(
    ("subject", "fits"),
    [("a" * 72, True), ("a" * 73, False), ("❓" * 72, True), ("❓" * 73, False), ("é" * 72, True)],
)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_subject_of_more_than_72_columns_is_refused(
    tmp_path: Path, subject: str, fits: bool, locale: str
) -> None:
    who = {
        f"GIT_{role}_{what}": "a@b"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    env = {**os.environ, **who, "LC_ALL": locale, "GIT_CONFIG_GLOBAL": os.devnull}

    def ran(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    ran("git", "init", "-q")
    ran("git", "commit", "-q", "--allow-empty", "-m", subject, "-m", "b" * 100)
    checked = ran(str(ROOT / ".ci" / "subjects"))
    assert (checked.returncode == 0, subject in checked.stderr) == (fits, not fits)


def test_a_run_reports_its_skipped_parts_with_the_reason() -> None:
    targets = ["tests/e2e/test_conformance.py", "tests/fuzz/test_sessions.py"]
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", *targets]
    ran = subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )
    assert "\nnot run: 1 (need third-party programs; `make guests` runs them)\n" in ran.stdout
    assert "\nnot run: 1 (are slow laws; `make fuzz` tries them)\n" in ran.stdout


def test_the_gate_runs_everything_that_make_test_skips_except_laws() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert {"make test", "make guests", "make neovims"} <= set(lines)
    assert any(line.startswith("make slow ") for line in lines)
    assert any(line.startswith(".ci/wheels ") for line in lines)
    assert "PARLEY_BRANCHES=1 .ci/pythons 3.14" in lines


def test_the_files_that_only_one_neovim_runs_exist() -> None:
    names = re.findall(r"^ALIKE := (.+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    missing = [
        name
        for name in " ".join(names).split()
        if not (ROOT / "tests" / "nvim" / f"test_{name}.py").exists()
    ]
    assert names
    assert missing == []


def pythons(folder: Path, scripts: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`.ci/pythons`, copied into a folder, with only these scripts on the PATH."""
    own = {".venv/bin/python": "echo 3.11", ".ci/fast": 'exec "$1/bin/python"'}
    return alone("pythons", folder, {**own, **scripts})


def alone(
    script: str, folder: Path, scripts: dict[str, str], **env: str
) -> subprocess.CompletedProcess[str]:
    """A script from `.ci`, copied into a folder with `.ci/debian`, with only these scripts on the
    PATH.
    """
    for name in (".ci", "bin", ".venv/bin"):
        (folder / name).mkdir(parents=True)
    for name in (script, "debian"):
        shutil.copy(ROOT / ".ci" / name, folder / ".ci")
    for name in ("bash", "dirname", "mkdir", "chmod", "rm"):
        (folder / "bin" / name).symlink_to(str(shutil.which(name)))
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    environ = {"PATH": str(folder / "bin"), "HOME": str(folder), **env}
    command = [str(folder / ".ci" / script)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_a_python_that_does_not_run_is_named_and_skipped(tmp_path: Path) -> None:
    ran = pythons(tmp_path, {"bin/python3.12": "exit 127"})
    assert ran.returncode == 0, ran.stderr
    assert f"Python 3.12: {tmp_path}/bin/python3.12 is skipped" in ran.stdout
    assert (
        "python3.12 can be unpacked from Debian sid, but this system has no apt-get" in ran.stderr
    )
    assert ran.stdout.endswith("because neither installed nor unpacked: Python 3.12 3.13 3.14\n")


def test_a_python_without_its_packages_fails_the_gate_and_the_next_is_tested(
    tmp_path: Path,
) -> None:
    install = 'case "$PARLEY_VENV" in *3.13) exit 1 ;; esac; mkdir -p "$PARLEY_VENV/bin"; '
    install += 'echo "echo tested" > "$PARLEY_VENV/bin/python"; chmod +x "$PARLEY_VENV/bin/python"'
    good = {"bin/python3.13": "exit 0", "bin/python3.14": "exit 0", ".ci/environment": install}
    ran = pythons(tmp_path, good)
    assert ran.returncode == 1
    assert "tested\n" in ran.stdout
    assert "Python 3.13: its packages could not be installed" in ran.stderr
    assert ran.stderr.endswith("Failed: Python 3.13\n")


def test_a_system_without_apt_gets_a_message_about_naming_other_neovims(tmp_path: Path) -> None:
    ran = alone("neovims", tmp_path, {})
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "this system has no apt-get" in ran.stderr
    assert "PARLEY_NVIMS=" in ran.stderr


def test_other_neovims_can_be_named_and_must_run(tmp_path: Path) -> None:
    good, bad = {"bin/good": "exit 0"}, {"bin/old": "exit 1"}
    ran = alone("neovims", tmp_path / "a", good, PARLEY_NVIMS="good good")
    assert (ran.returncode, ran.stdout) == (0, "good\ngood\n")
    ran = alone("neovims", tmp_path / "b", good | bad, PARLEY_NVIMS="good old")
    assert ran.returncode == 1
    assert "old of PARLEY_NVIMS does not run, or is older than Neovim 0.10" in ran.stderr


def each(folder: Path, command: str, *names: str) -> subprocess.CompletedProcess[str]:
    """`.ci/each`, with scripts as Neovims that print their version."""
    paths = [folder / name for name in names]
    for path in paths:
        path.write_text(f"#!/bin/sh\necho NVIM {path.name}\necho more\n", encoding="utf-8")
        path.chmod(0o755)
    script = [str(ROOT / ".ci" / "each"), "sh", "-c", command]
    said = "".join(f"{path}\n" for path in paths)
    return subprocess.run(
        script, cwd=folder, input=said, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_neovims_are_tested_at_the_same_time_and_the_failed_one_is_named(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")  # each end waits for the other
    ran = each(
        tmp_path, 'case "$PARLEY_NVIM" in */a) cat pipe; exit 3;; esac; echo said >pipe', "a", "b"
    )
    assert ran.returncode == 1
    assert ran.stdout == f"NVIM a: {tmp_path}/a\nsaid\nNVIM b: {tmp_path}/b\n"
    assert ran.stderr == f"Failed with {tmp_path}/a\n"


def test_each_neovim_that_passes_is_named_and_having_none_is_an_error(tmp_path: Path) -> None:
    ran = each(tmp_path, "exit 0", "a", "b")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert each(tmp_path, "exit 0").returncode == 1
