"""The server of forks, for all commands of a worker."""

from collections.abc import Iterator

import pytest

from tests.cli.fork_server import ForkServer


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    with ForkServer() as forks:
        yield forks
