"""Branch coverage by the deterministic tests: a pytest plugin for `make branches`.

It skips laws and repetitive tests, which would take several times as long. It also skips tests of
the project's texts, and code in other processes: the Neovim side and the shell. This module knows
which tests are measured. `pyproject.toml` sets the required coverage.
"""

from __future__ import annotations

import os

import coverage
import pytest

UNMEASURED = frozenset({"nvim", "e2e", "fuzz", "laws", "cli"})
"""Test folders that start processes or go through millions of examples."""
OF_TEXTS = frozenset(
    f"test_{name}.py"
    for name in (
        *("gate", "layers", "lock", "mirror", "names", "package"),
        *("release", "release_installed", "website"),
    )
)
"""Test files that read Parley's source, or run it in other processes."""


def is_measured(item: pytest.Item) -> bool:
    """Whether a test counts."""
    often = any(item.get_closest_marker(mark) for mark in ("hypothesis", "exhaustive"))
    return not (often or item.path.parent.name in UNMEASURED or item.path.name in OF_TEXTS)


class Branches:
    """The measurement of one process, started before modules are imported."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_suffix=True)
        self._coverage.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect the tests that do not count; `make test` runs them."""
        items[:] = filter(is_measured, items)

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
