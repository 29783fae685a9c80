"""Folders that do not reply are left out after a moment, and do not keep others waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.storage.folder_visits import MOST_SILENT, visit_all


class Disk:
    """Folders with one file each; those in `hung` reply only after `release`."""

    def __init__(self, *hung: str) -> None:
        self.hung = hung
        self.visits = list[str]()
        self.release = threading.Event()

    def visit(self, folder: str) -> Iterator[str | None]:
        self.visits.append(folder)
        yield f"{folder}/1"
        yield None
        if folder in self.hung:
            self.release.wait(20)
        yield f"{folder}/2"


def test_all_folders_are_visited_once_and_in_order() -> None:
    disk = Disk()
    assert visit_all(["b", "a", "b"], disk.visit) == (["b/1", "b/2", "a/1", "a/2"], [])
    assert disk.visits == ["b", "a"]


def test_a_folder_that_does_not_reply_is_left_out_until_it_does() -> None:
    disk = Disk("hung")
    found, silent = visit_all(["a", "hung", "b"], disk.visit, 0.05)
    assert (found, silent) == (["a/1", "a/2", "hung/1", "b/1", "b/2"], [Path("hung")])
    assert visit_all(["hung", "a"], disk.visit, 0.05)[1] == [Path("hung")]
    assert disk.visits == ["a", "hung", "b", "a"]  # no second thread waits for the folder
    disk.release.set()
    for thread in threading.enumerate():
        if thread.name == "parley-visitor":
            thread.join()
    assert visit_all(["hung"], disk.visit)[1] == []


def test_after_some_silent_folders_the_rest_is_left_out() -> None:
    names = [f"hung-{number}" for number in range(MOST_SILENT + 2)]
    disk = Disk(*names)
    found, silent = visit_all(names, disk.visit, 0.05)
    disk.release.set()
    assert silent == [Path(name) for name in names]
    assert len(disk.visits) == MOST_SILENT
    assert found == [f"{name}/1" for name in names[:MOST_SILENT]]


def test_an_error_is_raised_where_the_list_is_awaited() -> None:
    def visit(folder: str) -> Iterator[str]:
        yield folder
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        visit_all(["a"], visit)
