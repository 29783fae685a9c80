"""Frozen garbage is collected, but not each time."""

from __future__ import annotations

import gc
import weakref

import pytest

from parley.nvim import garbage


class Node:
    """An object in a cycle."""

    def __init__(self) -> None:
        self.own = self


def test_frozen_garbage_is_collected_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "_EVERY", 3)
    frozen = weakref.ref(node := Node())
    garbage.freeze()
    try:
        new = weakref.ref(Node())
        del node
        lives = list[bool]()
        for _ in range(4):
            garbage.collect_garbage()
            lives.append(frozen() is not None)
        assert new() is None
        assert lives[0] or lives[1]
        assert not lives[-1]
    finally:
        gc.unfreeze()
