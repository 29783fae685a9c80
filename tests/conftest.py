"""What holds for all tests."""

import atexit
import gc
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest

from tests import examples, ledgers  # noqa: F401  the laws of all folders are tried as examples says

# The demo model, in the hundreds of processes that tests start, refuses what the providers would
# refuse.
os.environ["PARLEY_DEMO_STRICT"] = "1"

# The tests' files are in memory if it has room, because a turn writes to the disk a dozen times.
# The process that distributes the tests decides.
MEMORY, ROOM = Path("/dev/shm"), 2 * 2**30
if (
    "PYTEST_XDIST_WORKER" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > ROOM
):
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="p", dir=MEMORY)
    Path(tempfile.tempdir).chmod(0o711)  # some tests are another user
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)

# Servers of tests start in this state folder, and not in the user's.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="parley-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# No test needs the system's TLS authorities, and reading them takes longer than most tests.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))

# Nor through a proxy: all servers are on this machine. Tests of proxies name their own.
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]

# Without bytecode, each of the hundreds of test processes would compile all of Parley, and pytest
# every test. `make clean` removes the bytecode.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Thousands of tests and three SDKs stay to the end: looking through them again and again finds
# nothing.
gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True)
def _closed_ledgers_and_forgotten_ways() -> Iterator[None]:
    yield
    ledgers.close_all()
    if session := sys.modules.get("parley.session"):
        session.REQUEST_TIMES.clear()
    (Path(os.environ["XDG_STATE_HOME"]) / "parley" / "ways.json").unlink(missing_ok=True)


SLOW = frozenset({"cli", "e2e", "nvim", "test_docs.py", "test_package.py"})
"""Folders and files of tests that start processes."""


MARKED = {
    "guests": "with programs of others, which `make guests` runs",
    "fuzz": "of laws that take long, which `make fuzz` tries",
}
"""Why `make test` leaves out what is marked so."""
LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""How many tests of each mark this run leaves out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", metavar="SEED", help="take files, and tests of a file, in a random order"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A file stays together, for what its tests share."""
    if seed := config.getoption("--shuffle"):
        chance = random.Random(seed)
        files = dict.fromkeys(item.path for item in items)
        places = {path: chance.random() for path in files}
        chance.shuffle(items)
        items.sort(key=lambda item: places[item.path])
    else:
        items[:] = _dealt(items, getattr(config, "workerinput", {}).get("workercount", 1))


def _dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests in as many equal parts as there are workers, files of slow ones first in each:
    none is left to wait for at the end. `--dist worksteal` gives each worker such a part to
    begin with.
    """
    slow: list[list[pytest.Item]] = [[] for _ in range(workers)]
    quick: list[pytest.Item] = []
    places: dict[Path, int] = {}
    for item in items:
        if SLOW & {item.path.parent.name, item.path.name}:
            slow[places.setdefault(item.path, len(places) % workers)].append(item)
        else:
            quick.append(item)
    size, rest = -(-len(items) // workers), iter(quick)
    parts = [[*part, *islice(rest, max(size - len(part), 0))] for part in slow]
    return [*chain.from_iterable(parts), *rest]


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count what is left out."""
    counts = {
        mark: sum(item.get_closest_marker(mark) is not None for item in items) for mark in MARKED
    }
    items[0].config.stash[LEFT_OUT] = counts


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker has nobody to tell but the process that started it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, {})


def pytest_testnodedown(node: Any) -> None:
    """Each worker leaves out the same."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """No test is left out in silence."""
    for mark, count in config.stash.get(LEFT_OUT, {}).items():
        if count:
            terminalreporter.write_line(f"not run: {count} {MARKED[mark]}")
