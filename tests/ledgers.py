"""Ledgers for tests, closed at the end of the test that opened them."""

from __future__ import annotations

from pathlib import Path

from parley.storage.ledger import LedgerFile

_opened = list[LedgerFile]()


def open_ledger(path: Path | None = None) -> LedgerFile:
    """A ledger, in memory unless it has a path."""
    _opened.append(LedgerFile(path))
    return _opened[-1]


def close_all() -> None:
    """Close the ledgers opened since the last call."""
    while _opened:
        _opened.pop().close()
