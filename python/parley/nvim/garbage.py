"""Collects garbage when no caller waits.

Chats and packages are frozen, so that most collections are short. A frozen object in a cycle is
never collected, so once in a while a collection examines all objects.
"""

from __future__ import annotations

import gc
from itertools import count

_EVERY = 100
_NUMBERS = count(1)


def collect_garbage() -> None:
    """Collect garbage after a turn or a closed chat."""
    if next(_NUMBERS) % _EVERY:
        gc.collect()
        return
    gc.unfreeze()
    freeze()


def freeze() -> None:
    """Collect garbage, and leave all other objects out of later collections."""
    gc.collect()
    gc.freeze()
