"""The folders with the snapshots of each root, and their end. Does not know git's formats."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from parley.paths import private_file, private_folder

KEPT_DAYS = 30
"""Snapshots are kept for this long."""
MOST_STORED = 500_000_000
"""The maximum number of bytes of all snapshots; the oldest are removed first."""

_DAY_S = 86_400.0


def store_folder(state: Path, root: Path) -> Path:
    """The folder for a root's snapshots. Removes old snapshots once a day. Raises OSError."""
    stores = private_folder(private_folder(state) / "snapshots")
    now = time.time()
    stamp = stores / "swept"
    if not stamp.exists() or now - stamp.stat().st_mtime > _DAY_S:
        private_file(stamp).touch()
        remove_old(stores, now)
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    return private_folder(stores / name)


def remove_old(stores: Path, now: float, most: int = MOST_STORED) -> None:
    """Remove objects older than `KEPT_DAYS`, and the oldest of the others if all are too large."""
    files = sorted(_objects(stores), reverse=True)
    total = 0
    for changed, size, path in files:
        total += size
        if now - changed > KEPT_DAYS * _DAY_S or total > most:
            with suppress(OSError):
                path.unlink()
                # The index says that unchanged files need not be stored again.
                (path.parents[2] / "index").unlink(missing_ok=True)
    for store in stores.iterdir():
        with suppress(OSError):
            if store.is_dir() and not any((store / "objects").glob("??/*")):
                used = (store / "lock").stat().st_mtime
                if now - used > KEPT_DAYS * _DAY_S:
                    shutil.rmtree(store)


def _objects(stores: Path) -> Iterator[tuple[float, int, Path]]:
    """Time, size and path of each object. Git sets the time when it stores an object again."""
    for path in stores.glob("*/objects/??/*"):
        with suppress(OSError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path
