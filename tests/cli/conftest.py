"""Fixtures of the shell tests: a home with a chat, the fork server, and a visible terminal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.forks import ForkServer
from tests.forks import forks as of_this_process
from tests.nvim.harness import Child, child


@pytest.fixture(scope="session")
def forks() -> ForkServer:
    return of_this_process()


@pytest.fixture
def shell(tmp_path: Path, forks: ForkServer) -> Shell:
    return Shell(tmp_path, forks)


@pytest.fixture(scope="session")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """The terminal in which a `Glass` shows a command's output."""
    with child(tmp_path_factory.mktemp("glass"), clean=True) as neovim:
        yield neovim
