"""A pytest plugin for `make fuzz`: writes each tried law into a file, as a line of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

FILE = "PARLEY_FUZZ_RECORD"


class Recorder:
    """Writes each law that was tried or could not be tried."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            law = {"name": report.nodeid, "seconds": report.duration, "failed": report.failed}
            with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(law) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that receives all reports, which is not a worker."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
