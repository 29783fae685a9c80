"""On machines that are too old for Parley, one line says so, without a Lua or Python error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import ROOT, Child, child

# The differences in a Neovim before 0.10, as far as a newer one can imitate them.
PRETENCE = """
local has = vim.fn.has
vim.fn.has = function(what)
  return what:match('^nvim%-0%.1') and 0 or has(what)
end
vim.fn.execute = function()
  return 'NVIM v0.9.5\\nBuild type: Release'
end
told = {}
vim.health.report_error = function(text)
  table.insert(told, text)
end
require('parley').setup({ agent = 'Demo' })
"""
OLD_NEOVIM = "Parley needs Neovim 0.10 or newer; this is 0.9.5"
COMMANDS = [
    "ParleyRespond",
    "ParleyRespond!",
    "ParleyApprove yn not now",
    "ParleyChatNew one",
    "ParleyInstall!",
]


@pytest.fixture(scope="module")
def old_neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    home = tmp_path_factory.mktemp("old")
    with child(home, init=PRETENCE, width=60) as nvim:
        yield nvim


@pytest.mark.parametrize("command", [*COMMANDS, "lua require('parley').respond()"])
def test_a_command_in_an_old_neovim_says_so_in_one_line_of_60_columns(
    old_neovim: Child, command: str
) -> None:
    old_neovim.command("messages clear")
    old_neovim.keys(f":{command}<CR>")
    old_neovim.until(lambda: old_neovim.messages() != "", "a message")
    assert not old_neovim.blocked()
    assert old_neovim.messages() == OLD_NEOVIM


def test_a_configuration_and_a_chat_open_silently_in_an_old_neovim(old_neovim: Child) -> None:
    old_neovim.command("messages clear")
    old_neovim.edit("chat.md", "💬: hello\n")
    assert old_neovim.lua("return require('parley').status()") == ""
    assert old_neovim.messages() == ""


def test_the_health_check_in_an_old_neovim_says_only_that(old_neovim: Child) -> None:
    old_neovim.lua("require('parley.health').check()")
    assert old_neovim.lua("return told") == [OLD_NEOVIM]
    # All other Parley files are for newer versions; Neovim must not even read them.
    loaded = old_neovim.lua("return vim.tbl_keys(package.loaded)")
    assert {name for name in loaded if name.startswith("parley")} == {
        "parley",
        "parley.health",
        "parley.version",
    }


def test_an_installation_into_an_old_neovim_fails_with_that_line(old_neovim: Child) -> None:
    ran = old_neovim.lua("return { pcall(dofile, ...) }", str(ROOT / "build.lua"))
    assert ran == [False, OLD_NEOVIM]


# --- Python ---------------------------------------------------------------------------------------


OLD = "#!/bin/sh\necho 3.9.2\necho 'too old' >&2\nexit 1\n"
WITHOUT_VENV = (
    '#!/bin/sh\necho 3.12.1\necho "ModuleNotFoundError: No module named '
    "'ensurepip'\" >&2\nexit 1\n"
)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Child]:
    """A machine without uv, Python and Parley's environment."""
    root, programs = tmp_path / "plugin", tmp_path / "bin"
    for name in ("lua", "plugin"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    programs.mkdir()
    with child(tmp_path, root=root, width=200, env={"PATH": str(programs)}) as nvim:
        yield nvim


@pytest.mark.parametrize(
    ("script", "what"),
    [
        (None, "no Python was found"),
        (OLD, "{}/python3 is Python 3.9.2: too old"),
        (
            WITHOUT_VENV,
            "{}/python3 is Python 3.12.1: ModuleNotFoundError: No module named 'ensurepip'",
        ),
    ],
)
def test_the_command_and_the_health_check_name_a_missing_or_old_python(
    fresh: Child, script: str | None, what: str
) -> None:
    programs = fresh.home / "bin"
    if script:
        (programs / "python3").write_text(script, encoding="utf-8")
        (programs / "python3").chmod(0o755)
    wanted = (
        f"Parley needs Python 3.11 or newer; {what.format(programs)}. Install Python (Debian: apt "
        "install"
    )
    fresh.edit("chat.md", "💬: hello\n")
    fresh.command("ParleyRespond")
    fresh.until(lambda: wanted in fresh.messages(), "the message")
    assert fresh.messages().count("\n") == 0
    fresh.command("checkhealth parley")
    fresh.until(lambda: wanted in " ".join(fresh.text().split()), "the report")
    assert "Run :ParleyInstall" in fresh.text()


def test_a_users_python_that_is_too_old_is_named(fresh: Child) -> None:
    own = fresh.home / "own-python"
    own.write_text(OLD, encoding="utf-8")
    own.chmod(0o755)
    fresh.lua("vim.g.parley_python = ...", str(own))
    fresh.command("checkhealth parley")
    fresh.until(lambda: f"{own} is Python 3.9.2: too old" in fresh.text(), "the report")
    assert "vim.g.parley_python is set to this Python" in fresh.text()
