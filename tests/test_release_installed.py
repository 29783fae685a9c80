"""A dry run of a release: its files are installed as a user installs them, and the Demo agent answers.

Installs Parley's packages from the package index. Everything else is in one fresh home.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import parley
from release.__main__ import main
from release.changelog import UNRELEASED
from tests.network import network_settings
from tests.nvim.harness import Child, nvim_path
from tests.test_docs import PACKAGES
from tests.test_package import ROOT, tracked

VERSION = parley.__version__
WHO = ("-c", "user.name=a", "-c", "user.email=a@b")
PROGRAMS = {
    "nvim": nvim_path(),
    "python3": sys.executable,
    "uv": str(Path(sys.executable).with_name("uv")),
}
QUESTION = "\U0001f4ac: say: hello there\n"
PLUGINS = (".local", "share", "nvim", "site", "pack", "parley", "start", "parley")
LUAROCKS = shutil.which("luarocks")
# A plugin manager for LuaRocks sets these two paths.
ROCK = """
vim.opt.rtp:prepend(vim.fn.expand('~/rock/lib/luarocks/rocks-*/parley-nvim/*'))
package.path = vim.fn.expand('~/rock/share/lua/*') .. '/?.lua;' .. package.path
package.path = vim.fn.expand('~/rock/share/lua/*') .. '/?/init.lua;' .. package.path
"""


@dataclass(frozen=True, slots=True)
class Home:
    """A user's home, and the repository with the release's files in `dist/`."""

    path: Path
    repository: Path

    @property
    def environ(self) -> dict[str, str]:
        """Only the variables that a new user has, and the network's."""
        return {
            **network_settings(),
            "HOME": str(self.path),
            "PATH": f"{self.path / 'bin'}:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm",
            "PARLEY_DEMO_PACE": "0",
            "PARLEY_LEAST_SEEN_S": "0",
        }

    def run(self, *command: str | Path) -> str:
        """A command's output."""
        ran = subprocess.run(
            command,
            cwd=self.path,
            env=self.environ,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=55,
        )
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def made(self, pattern: str) -> Path:
        """The release's file with this name."""
        (path,) = self.repository.glob(f"dist/{pattern}")
        return path

    @contextmanager
    def neovim(self) -> Iterator[Child]:
        """The user's Neovim, with the user's configuration."""
        inherited, own = dict(os.environ), self.environ
        os.environ.clear()
        try:
            one = Child(self.path, ["--cmd", "cd ~"], 100, 30, own)
        finally:
            os.environ.update(inherited)
        try:
            yield one
        finally:
            one.close()

    def asks(self) -> str:
        """The answer to a question in a new chat; also checks that the help has its tags."""
        with self.neovim() as nvim:
            nvim.edit("chat.md", QUESTION)
            nvim.command("ParleyRespond")
            nvim.until(lambda: nvim.text().rstrip().endswith("\U0001f4ac:"), "the answer")
            answer = nvim.text()
            nvim.command("help :ParleyRespond")
            assert nvim.name.endswith("doc/parley.txt")
        return answer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A release of the current files, as if its changelog had the version's section."""
    folder = tmp_path_factory.mktemp("release")
    repository, own = folder / "repository", folder / "home"
    for name in tracked():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, repository / name)
    changelog = repository / "CHANGELOG.md"
    heading = f"## {UNRELEASED}\n"
    text = changelog.read_text(encoding="utf-8")
    if not text.split(heading)[1].strip().startswith("## "):
        changelog.write_text(
            text.replace(heading, f"{heading}\n## {VERSION} - 2026-01-01\n"), "utf-8"
        )
    for command in (("init", "-q"), ("add", "-A"), (*WHO, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *command], cwd=repository, check=True)
    os.environ.setdefault("PARLEY_NVIM", nvim_path())
    assert main([VERSION, "--checkout", str(repository)]) == 0
    (own / "bin").mkdir(parents=True)
    for name, program in PROGRAMS.items():
        (own / "bin" / name).symlink_to(program)
    return Home(own, repository)


def test_the_wheel_answers_in_a_fresh_environment(home: Home) -> None:
    home.run("uv", "venv", "--quiet", "--python", sys.executable, "shell")
    install = ("uv", "pip", "install", "--quiet", "--only-binary", ":all:", "--python", "shell")
    home.run(*install, home.made("*.whl"))
    command = home.path / "shell" / "bin" / "parley"
    assert home.run(command, "--version") == f"parley {VERSION}\n"
    assert home.run(command, "ask", "say: hello there") == "hello there\n"
    assert (home.path / "shell" / "share" / "man" / "man1" / "parley.1").exists()


def test_the_plugin_answers_in_a_neovim_with_nothing_but_the_readmes_lines(home: Home) -> None:
    home.run("sh", "-ec", PACKAGES.replace("<this repository>", f"'{home.repository}'"))
    answer = home.asks()
    shutil.rmtree(home.path.joinpath(*PLUGINS))
    assert "\n\nhello there\n\n" in answer
    assert list(home.path.glob(".local/share/nvim/parley/venv-*/.ok")) != []


@pytest.mark.skipif(LUAROCKS is None, reason="luarocks is not installed")
def test_the_rock_answers_in_a_neovim_with_nothing_else(home: Home) -> None:
    """Without the repository's address, the rock is made from the plugin's archive."""
    (rockspec,) = home.repository.glob("dist/*.rockspec")
    command = [str(LUAROCKS), "install", "--tree", str(home.path / "rock"), rockspec.name]
    subprocess.run(command, cwd=rockspec.parent, capture_output=True, check=True, timeout=55)
    init = home.path / ".config" / "nvim" / "init.lua"
    init.parent.mkdir(parents=True)
    init.write_text(ROCK, encoding="utf-8")
    answer = home.asks()
    init.unlink()
    assert "\n\nhello there\n\n" in answer
