"""What holds for all tests."""

from collections.abc import Iterator

import pytest

import examples  # noqa: F401  the laws of all folders are tried as it says
import ledgers


@pytest.fixture(autouse=True)
def _closed_ledgers() -> Iterator[None]:
    yield
    ledgers.close_all()
