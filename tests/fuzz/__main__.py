"""`make fuzz`: tries every law in rounds, with new seeds and more examples each time, until the
time is over.

Later rounds skip the laws that have already failed, so that one failure does not hide another.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.examples import VARIABLE
from tests.fuzz.recorder import FILE

ROOT = Path(__file__).parents[2]
MOST = 200
"""The highest multiple of the usual examples: a new seed finds more than a longer run with an old
seed.
"""
GROWTH = 4
LONGEST_S = 900.0
"""The seconds that a law may take in one round, including its shrinking, before it counts as
hanging.
"""


@dataclass(frozen=True)
class Law:
    """A law that a round tried."""

    name: str
    seconds: float
    failed: bool


@dataclass(frozen=True)
class Round:
    """Try all laws once, with a seed and this many times the usual examples."""

    seed: int
    factor: int

    def run(
        self, targets: Sequence[str], without: Sequence[str], workers: str
    ) -> tuple[int, list[Law]]:
        """Try the laws; return pytest's exit code and the tried laws."""
        options = [
            f"--hypothesis-seed={self.seed}",
            "-n",
            workers,
            f"--timeout={LONGEST_S}",
            "--tb=short",
        ]
        options += [
            "-p",
            "tests.fuzz.recorder",
            "-p",
            "no:cacheprovider",
            *(f"--deselect={name}" for name in without),
        ]
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder, "laws")
            record.touch()
            env = {VARIABLE: str(self.factor), FILE: str(record), "PYTHONPATH": str(ROOT)}
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-m",
                "hypothesis or fuzz",
                *options,
                *targets,
            ]
            code = subprocess.run(command, env=os.environ | env, check=False).returncode
            return code, [
                Law(**json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()
            ]

    def again(self, name: str) -> str:
        """The command that repeats a law's examples."""
        return f"make fuzz SEED={self.seed} FACTOR={self.factor} ONLY='{name}'"


def next_factor(factor: int, slowest_s: float, took_s: float, left_s: float) -> int:
    """How many times the usual examples the next round tries; 0 if the remaining time is too short
    for a round.
    """
    in_time = max(left_s, 0) / (took_s / factor)
    not_hanging = factor * LONGEST_S / 3 / max(slowest_s, 0.001)
    return int(min(factor * GROWTH, MOST, not_hanging, in_time))


def main() -> int:
    """Run rounds until the time is over; return 1 if a law failed."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, help="one round only, with this seed")
    parser.add_argument(
        "--factor", type=int, default=2, help="how many times the usual examples, at first"
    )
    parser.add_argument(
        "--workers", default="logical", help="how many processes, as pytest-xdist takes it"
    )
    parser.add_argument(
        "targets", nargs="*", help="tests, as pytest takes them; all if there are none"
    )
    args = parser.parse_args()
    end = time.monotonic() + args.minutes * 60
    finds, rounds, tries = dict[str, Round](), 0, 0
    factor: int = args.factor
    while factor:
        this = Round(secrets.randbelow(2**32) if args.seed is None else args.seed, factor)
        print(
            f"round {rounds + 1}: seed {this.seed}, {factor} times the usual examples", flush=True
        )
        began = time.monotonic()
        code, laws = this.run(args.targets, list(finds), args.workers)
        now = time.monotonic()
        rounds, tries = rounds + 1, tries + len(laws)
        finds |= {law.name: this for law in laws if law.failed}
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return code
        slowest_s = max((law.seconds for law in laws), default=0)
        factor = (
            0 if args.seed is not None else next_factor(factor, slowest_s, now - began, end - now)
        )
    for name, found in finds.items():
        print(f"FOUND {name}\n  again: {found.again(name)}")
    if finds:
        print(
            "The example of each stands above. Make it a case: `@example(...)` on the law, or a "
            "file of a\n"
            "corpus, as CONTRIBUTING.md says. See `make test` fail with it, then mend the code."
        )
    print(f"{rounds} rounds, {tries} laws tried, {len(finds)} finds")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
