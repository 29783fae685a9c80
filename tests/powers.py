"""Gives up root's capabilities for a while, because file permissions do not restrict root."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# capset(2) and linux/capability.h: version 3 takes two structs; the first has the low 32
# capabilities.
_VERSION = 0x20080522
_OVER_FILES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

Three = ctypes.c_uint32 * 3
"""Effective, permitted, inheritable."""


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """Run as an ordinary user. For root, drop the capabilities that bypass permissions, in this
    thread and the threads that it starts.
    """
    if os.geteuid() != 0:
        yield
        return
    assert sys.platform == "linux", "root elsewhere: run the tests as a user"
    libc = ctypes.CDLL(None, use_errno=True)
    header, powers = (ctypes.c_uint32 * 2)(_VERSION, 0), (Three * 2)()
    assert libc.capget(header, powers) == 0, os.strerror(ctypes.get_errno())
    before = powers[0][0]
    powers[0][0] &= ~_OVER_FILES
    assert libc.capset(header, powers) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        powers[0][0] = before
        assert libc.capset(header, powers) == 0, os.strerror(ctypes.get_errno())
