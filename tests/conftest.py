"""Settings and hooks for all tests."""

import atexit
import gc
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import strategies

from tests import (
    examples,  # noqa: F401  the laws of all folders are tried as examples says
    ledgers,
    network,
    strict_server,
)
from tests.forks import forks

# In the hundreds of processes that tests start, the demo model refuses what the providers would
# refuse. The process that distributes the tests starts its server.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["PARLEY_DEMO_PORT"] = str(strict_server.serve())

# Test files are in memory if there is room, because a turn writes to the disk a dozen times. The
# process that distributes the tests decides.
MEMORY, ROOM = Path("/dev/shm"), 2 * 2**30
if (
    "PYTEST_XDIST_WORKER" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > ROOM
):
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="p", dir=MEMORY)
    Path(tempfile.tempdir).chmod(0o711)  # some tests run as another user
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)

# Test servers start in this state folder instead of the user's.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="parley-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# The few tests that install packages get back the variables that the next lines change.
network.keep(os.environ)

# No test needs the system's TLS authorities, and reading them takes longer than most tests.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))

# No test uses a proxy: all servers are on this machine. Tests of proxies set their own.
for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[name]

# Without bytecode, each of the hundreds of test processes would compile all of Parley, and pytest
# would compile every test. `make clean` removes the bytecode.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Thousands of tests and three SDKs live until the end: collecting them repeatedly frees nothing.
gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True)
def _closed_ledgers_and_forgotten_ways() -> Iterator[None]:
    yield
    ledgers.close_all()
    if session := sys.modules.get("parley.session"):
        session.REQUEST_TIMES.clear()
    (Path(os.environ["XDG_STATE_HOME"]) / "parley" / "ways.json").unlink(missing_ok=True)


NOTABLE_S = 0.005
"""`pytest --durations` lists longer setups and teardowns."""
SLOW = frozenset({"cli", "e2e", "nvim", "test_docs.py", "test_package.py"})
"""Folders and files with tests that start processes."""


TESTS = Path(__file__).parent
LONG = frozenset(
    {
        *("e2e/test_adversary.py", "e2e/test_crash.py", "e2e/test_dead_end.py"),
        *("e2e/test_demo.py", "e2e/test_hostile_folder.py", "e2e/test_workspace_task.py"),
        *("e2e/test_paused_search.py", "e2e/test_web_search.py", "nvim/test_place.py"),
        *("cli/test_compare.py", "cli/test_exits.py", "cli/test_screen.py"),
        *("cli/test_terminal_output.py", "providers/test_client_fault_matrix.py"),
        *("providers/test_client_faults.py", "test_website.py"),
        *("mcp/test_servers_floods.py", "mcp/test_task_requests.py", "processes/test_reaper.py"),
        *("test_release.py", "test_release_installed.py"),
        *("acp/test_agent_processes_killed.py", "nvim/test_agent_kill.py"),
        *("nvim/test_comparison.py", "nvim/test_cut_replies.py", "nvim/test_ends.py"),
        *("nvim/test_faults.py", "nvim/test_regeneration.py", "nvim/test_thinking.py"),
        *("nvim/test_in_view.py", "nvim/test_kill.py", "nvim/test_refusals.py"),
        *("nvim/test_site_scenes.py", "nvim/test_stops.py", "nvim/test_tip.py"),
        *("nvim/test_new_chat.py", "nvim/test_objects.py", "nvim/test_one_parser.py"),
        *("nvim/test_sinks.py", "nvim/test_ways_in.py"),
    }
)
"""The files that take longest. `make test` leaves them out, `make slow` runs them."""
MARKED = {
    "slow": "take long; `make slow` runs them",
    "guests": "need third-party programs; `make guests` runs them",
    "fuzz": "are slow laws; `make fuzz` tries them",
}
"""Why `make test` skips tests with each mark."""
LEFT_OUT = pytest.StashKey[dict[str, int]]()
"""The number of tests with each mark that this run skips."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", metavar="SEED", help="take files, and tests of a file, in a random order"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a selected test: each worker would import them all."""
    mark = config.option.markexpr.partition(" ")[0]
    if mark not in ("slow", "guests") or collection_path.suffix != ".py":
        return None
    is_marked = mark == "slow" and _is_long(collection_path)
    return None if is_marked or f"mark.{mark}" in collection_path.read_text("utf-8") else True


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests in the files that take longest."""
    if _is_long(item.path):
        item.add_marker("slow")


def _is_long(path: Path) -> bool:
    """Whether a file is one of those that take longest."""
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).as_posix() in LONG


def pytest_xdist_setupnodes() -> None:
    """Start the workers' common server for forks, which imports while they collect the tests."""
    forks()


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start four workers for three cores, since a worker waits for other processes a quarter of the
    time.
    """
    cores = yield
    return cores + -(-cores // 3)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep each file's tests together, because they share fixtures."""
    if seed := config.getoption("--shuffle"):
        chance = random.Random(seed)
        files = dict.fromkeys(item.path for item in items)
        places = {path: chance.random() for path in files}
        chance.shuffle(items)
        items.sort(key=lambda item: places[item.path])
    else:
        items[:] = _dealt(items, getattr(config, "workerinput", {}).get("workercount", 1))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test. A worker sends no reports of quick and successful setups and teardowns: writing and
    reading two more reports takes as long as many a test.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed or report.duration > NOTABLE_S:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_collection_finish() -> None:
    """Keep what was collected out of all garbage collections: it lives until the end. Hypothesis
    registers its random numbers before, because on Python 3.14 it no longer finds who owns them after.
    """
    hypothesis.find(strategies.none(), lambda _: True)
    gc.collect()
    gc.freeze()


def _dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The tests in as many equal parts as there are workers. Files with slow tests come first in
    each part, so that no slow test is left at the end. With `--dist worksteal`, each worker begins
    with one part.
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
    """Count the skipped tests."""
    counts = {
        mark: sum(item.get_closest_marker(mark) is not None for item in items) for mark in MARKED
    }
    items[0].config.stash[LEFT_OUT] = counts


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts to the process that started this worker; a worker cannot print them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, {})


def pytest_testnodedown(node: Any) -> None:
    """Record a worker's counts; every worker skips the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Report the skipped tests."""
    for mark, count in config.stash.get(LEFT_OUT, {}).items():
        if count:
            terminalreporter.write_line(f"not run: {count} ({MARKED[mark]})")
