"""The server of forks, for all commands of a worker."""

import pytest

from tests.forks import ForkServer
from tests.forks import forks as of_this_process


@pytest.fixture(scope="session")
def forks() -> ForkServer:
    return of_this_process()
