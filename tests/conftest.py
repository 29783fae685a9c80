"""What holds for all tests."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

import examples  # noqa: F401  the laws of all folders are tried as it says
import ledgers

# Servers that tests start do so in the folder of the state: not in that of whoever runs them.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="parley-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def _closed_ledgers() -> Iterator[None]:
    yield
    ledgers.close_all()
