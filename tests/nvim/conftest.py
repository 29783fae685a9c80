"""Neovims for the tests; most tests share one, since a host takes seconds to import its SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child

PACE = "0.002"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with a host, for tests that leave it usable."""
    env = {"PARLEY_DEMO_PACE": PACE}
    init = "require('parley').setup({ safety = { rate_limit_per_minute = 100000 } })"
    with child(tmp_path_factory.mktemp("shared"), init=init, env=env) as one:
        yield one


@pytest.fixture
def nvim(shared: Child) -> Iterator[Child]:
    """The shared Neovim with no file open, and `vim.ui` reset after earlier tests."""
    shared.clear()
    shared.lua(
        "_G.ui = _G.ui or { select = vim.ui.select, input = vim.ui.input, open = vim.ui.open }"
    )
    shared.lua("for name, of_neovim in pairs(_G.ui) do vim.ui[name] = of_neovim end")
    yield shared
    assert not shared.blocked(), shared.screen()


@pytest.fixture(scope="module")
def hostless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim that starts no host, for tests of Lua alone."""
    home = tmp_path_factory.mktemp("plain")
    init = "vim.g.parley_python = '/nowhere/python'"
    with child(home, init=init) as one:
        one.lua("require('parley.host').start = function() return false end")
        yield one


@pytest.fixture
def plain(hostless: Child) -> Child:
    """The Neovim without a host, with no file open."""
    hostless.clear()
    return hostless


@pytest.fixture
def home(shared: Child) -> Path:
    """The shared Neovim's home folder."""
    return shared.home
