"""Branch coverage by the deterministic tests: a pytest plugin for `.ci/fast`, which selects the tests.

Laws and repetitive tests run without being measured, which would take several times as long.
`pyproject.toml` sets the required coverage.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import coverage
import pytest


def is_measured(item: pytest.Item) -> bool:
    """Whether a test counts."""
    return not any(item.get_closest_marker(mark) for mark in ("hypothesis", "exhaustive"))


class Branches:
    """The measurement of one process, started before modules are imported."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_suffix=True)
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Pause the measurement during a test that does not count."""
        if is_measured(item):
            return (yield)
        self._coverage.stop()
        try:
            return (yield)
        finally:
            self._coverage.start()

    def pytest_sessionfinish(self) -> None:
        """Save the measurement; `coverage combine` joins the measurements of all processes."""
        self._coverage.stop()
        self._coverage.save()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start measuring where tests run, before Parley is imported: in each worker, or in the only
    process.
    """
    if "PYTEST_XDIST_WORKER" in os.environ or not early_config.known_args_namespace.numprocesses:
        early_config.pluginmanager.register(Branches())
