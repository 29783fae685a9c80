"""Branch coverage by the tests that try the same each time: a plugin of pytest, for `make
branches`.

Only those run. Left out are laws and what goes through the same code as often, which would take
several times as long, what looks at the texts of the project, and what runs in processes of its
own: Neovim's half and the shell. Knows which tests are measured; how far they have to reach,
`pyproject.toml` says.
"""

from __future__ import annotations

import os

import coverage
import pytest

UNMEASURED = frozenset({"nvim", "e2e", "fuzz", "laws", "cli"})
"""Folders of tests that start processes, or go through millions of examples."""
OF_TEXTS = frozenset(
    f"test_{name}.py" for name in ("gate", "layers", "lock", "mirror", "names", "package")
)
"""Files of tests that read Parley, and do not run it."""


def is_measured(item: pytest.Item) -> bool:
    """Whether a test counts."""
    often = any(item.get_closest_marker(mark) for mark in ("hypothesis", "exhaustive"))
    return not (often or item.path.parent.name in UNMEASURED or item.path.name in OF_TEXTS)


class Branches:
    """The measurement of one process, from the imports of modules on."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_suffix=True)
        self._coverage.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the tests that do not count to `make test`."""
        items[:] = filter(is_measured, items)

    def pytest_sessionfinish(self) -> None:
        """Keep what was measured; `coverage combine` joins it with that of the other processes."""
        self._coverage.stop()
        self._coverage.save()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Measure where tests run, before anything of Parley is imported: in each worker, or the
    only process.
    """
    if "PYTEST_XDIST_WORKER" in os.environ or not early_config.known_args_namespace.numprocesses:
        early_config.pluginmanager.register(Branches())
