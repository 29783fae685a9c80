"""What holds for all tests."""

import atexit
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest

import examples  # noqa: F401  the laws of all folders are tried as it says
import ledgers

# Servers that tests start do so in the folder of the state: not in that of whoever runs them.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="parley-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# Where bytecode is not to be written, each of the hundreds of processes that tests start would compile all of
# Parley anew, and pytest every test. `make clean` takes it away.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True)
def _closed_ledgers() -> Iterator[None]:
    yield
    ledgers.close_all()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="take files, and tests of a file, in a random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A file stays together, for what its tests share."""
    if seed := config.getoption("--shuffle"):
        chance = random.Random(seed)
        files = dict.fromkeys(item.path for item in items)
        places = {path: chance.random() for path in files}
        chance.shuffle(items)
        items.sort(key=lambda item: places[item.path])
