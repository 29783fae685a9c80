"""The lock file for the plugin's environment: all requirements, each file with its hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
MACHINES = [
    {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "sys_platform": system,
        "platform_machine": cpu,
    }
    for python in ("3.11", "3.12", "3.13", "3.14")
    for system, cpu in (
        *(("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"), ("darwin", "arm64")),
        ("win32", "AMD64"),
    )
]


def entries() -> list[Requirement]:
    """The pins, each with at least one hash."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.search(r" --hash=sha256:[0-9a-f]{64}\b", line) for line in lines)
    return [Requirement(line.partition(" --hash")[0]) for line in lines]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: " ".join(m.values()))
def test_each_requirement_is_pinned_once_for_each_platform(machine: dict[str, str]) -> None:
    here = [pin for pin in entries() if pin.marker is None or pin.marker.evaluate(machine)]
    pins = {pin.name.lower(): next(iter(pin.specifier)) for pin in here}
    assert len(pins) == len(here)
    assert {pin.operator for pin in pins.values()} == {"=="}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for wanted in map(Requirement, project["dependencies"]):
        assert wanted.specifier.contains(Version(pins[wanted.name.lower()].version)), wanted
