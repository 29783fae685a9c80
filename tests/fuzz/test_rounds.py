"""Tests `make fuzz` itself on invented laws."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz.__main__ import GROWTH, LONGEST_S, MOST, next_factor

LAWS = """
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

@examples(20)
@given(st.integers(0, 10**9))
def test_small(number):
    assert number < 10**6

@given(st.none())
def test_true(nothing):
    assert nothing is None

@pytest.mark.fuzz
def test_slow():
    assert False

def test_no_law():
    assert False
"""


def fuzz(folder: Path, *args: str) -> tuple[int, str]:
    """The exit code and output of `make fuzz` in a folder with these laws."""
    (folder / "test_laws.py").write_text(LAWS, encoding="utf-8")
    options = ["--workers", "0", "--minutes", "0", *args]
    command = [sys.executable, str(Path(__file__).parent), *options, "test_laws.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def example(output: str) -> str:
    """The number that breaks the first law."""
    (number,) = set(re.findall(r"number=(\d+)", output))
    return str(number)


def test_a_failure_is_reported_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    code, output = fuzz(tmp_path)
    assert code == 1
    assert re.findall(r"^FOUND .*::(.*)", output, re.MULTILINE) == ["test_small", "test_slow"]
    seed, factor, name = re.findall(
        r"again: make fuzz SEED=(\d+) FACTOR=(\d+) ONLY='(.*_small)'", output
    )[0]
    assert name.endswith("test_laws.py::test_small")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    again = fuzz(elsewhere, "--seed", seed, "--factor", factor)[1]
    assert f"seed {seed}" in again
    assert example(again) == example(output)


def test_rounds_grow_as_far_as_the_time_allows() -> None:
    assert next_factor(2, slowest_s=1, took_s=10, left_s=1000) == 2 * GROWTH
    assert next_factor(MOST, slowest_s=1, took_s=10, left_s=1000) == MOST
    assert next_factor(2, slowest_s=1, took_s=10, left_s=15) == 3
    assert next_factor(2, slowest_s=1, took_s=10, left_s=4) == 0
    assert next_factor(2, slowest_s=1, took_s=10, left_s=-100) == 0
    assert next_factor(2, slowest_s=LONGEST_S / 3, took_s=LONGEST_S, left_s=9 * LONGEST_S) == 2
