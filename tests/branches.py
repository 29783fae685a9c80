"""Branch coverage of Parley by the tests that try the same each time: a plugin of pytest, for `make test`.

Left out are laws and what goes through the same code as often, which would take several times as long, what
looks at the texts of the project, and what runs in processes of its own: Neovim's
half and the shell. Knows which tests are measured; how far they have to reach, `pyproject.toml` says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import coverage
import pytest

UNMEASURED = frozenset({"nvim", "e2e", "fuzz", "laws", "cli"})
"""Folders of tests that start processes, or go through millions of examples."""
OF_TEXTS = frozenset(f"test_{name}.py" for name in ("gate", "layers", "lock", "mirror", "names", "package"))
"""Files of tests that read Parley, and do not run it."""


class Branches:
    """The measurement of one process: modules while they are imported, then each test that counts."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_suffix=True)
        self._coverage.start()

    def pytest_collection_finish(self) -> None:
        """The modules are imported."""
        self._coverage.stop()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test, if it counts."""
        often = any(item.get_closest_marker(mark) for mark in ("hypothesis", "exhaustive"))
        if often or item.path.parent.name in UNMEASURED or item.path.name in OF_TEXTS:
            return (yield)
        self._coverage.start()
        try:
            return (yield)
        finally:
            self._coverage.stop()

    def pytest_sessionfinish(self) -> None:
        """Keep what was measured; `coverage combine` joins it with that of the other processes."""
        self._coverage.save()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Measure where tests run, before anything of Parley is imported: in each worker, or the only process."""
    if "PYTEST_XDIST_WORKER" in os.environ or not early_config.known_args_namespace.numprocesses:
        early_config.pluginmanager.register(Branches())
