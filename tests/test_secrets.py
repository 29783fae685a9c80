"""Commands that print secrets, including commands that print endlessly."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from parley.secrets import MOST_BYTES, SecretError, command_secret

FLOOD = "import os, time\nif os.fork(): time.sleep(60)\nwhile True: os.write(1, b'x' * 1_000_000)"
"""A child that continues when the command is killed: its pipe is full and never ends."""


async def test_an_endlessly_printing_command_is_ended_however_full_its_pipe_is() -> None:
    for _ in range(10):
        async with asyncio.timeout(10):
            with pytest.raises(SecretError, match=f"printed more than {MOST_BYTES} bytes"):
                await command_secret((sys.executable, "-c", FLOOD), os.environ)
