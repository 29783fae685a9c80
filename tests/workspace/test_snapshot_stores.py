"""The age and size of stored snapshots."""

from __future__ import annotations

import os
from pathlib import Path

from parley.workspace.snapshot_stores import KEPT_DAYS, remove_old, store_folder

DAY = 86_400


def stored(store: Path, name: str, day: int, size: int = 10) -> Path:
    """An object of this day, in a store that has an index."""
    path = store / "objects" / "ab" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (day * DAY, day * DAY))
    (store / "index").touch()
    (store / "lock").touch()
    os.utime(store / "lock", (day * DAY, day * DAY))
    return path


def test_old_objects_and_unused_stores_are_removed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    old, new, unused = stored(one, "old", 1), stored(one, "new", 20), stored(two, "old", 1)
    remove_old(tmp_path, now=(KEPT_DAYS + 2) * DAY)
    assert [path.exists() for path in (old, new, unused)] == [False, True, False]
    assert not (one / "index").exists(), "files must be stored again"
    assert not two.exists()
    assert one.exists()


def test_the_oldest_objects_are_removed_if_all_are_too_large(tmp_path: Path) -> None:
    paths = [stored(tmp_path / name, name, day) for name, day in (("a", 3), ("b", 1), ("c", 2))]
    remove_old(tmp_path, now=4 * DAY, most=20)
    assert [path.exists() for path in paths] == [True, False, True]
    assert (tmp_path / "a" / "index").exists()
    assert (tmp_path / "b").exists(), "it was used lately"


def test_old_snapshots_are_looked_for_once_a_day(tmp_path: Path) -> None:
    store = store_folder(tmp_path, Path("/root"))
    assert store == store_folder(tmp_path, Path("/root")) != store_folder(tmp_path, Path("/other"))
    old = stored(store, "old", 1)
    store_folder(tmp_path, Path("/root"))
    assert old.exists()
    os.utime(tmp_path / "snapshots" / "swept", (1, 1))
    assert store_folder(tmp_path, Path("/root")).is_dir()
    assert not old.exists()
