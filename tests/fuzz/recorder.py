"""A pytest plugin for `make fuzz`: writes each law that was tried into a file, as a line of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

FILE = "PARLEY_FUZZ_RECORD"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A law that was tried, or could not be; workers leave the writing to the process that they tell."""
    if "PYTEST_XDIST_WORKER" in os.environ or not (report.when == "call" or report.failed):
        return
    law = {"name": report.nodeid, "seconds": report.duration, "failed": report.failed}
    with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(law) + "\n")
