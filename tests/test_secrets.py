"""Commands that print secrets, including endless output."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from parley.secrets import OUTPUT_BYTES, SecretError, command_secret

FLOOD = "import os, time\nif os.fork(): time.sleep(60)\nwhile True: os.write(1, b'x' * 1_000_000)"
"""A child that continues after the command is killed: its pipe is full and never ends."""


async def test_an_endlessly_printing_command_is_killed_even_if_its_pipe_is_full() -> None:
    for _ in range(10):
        async with asyncio.timeout(10):
            with pytest.raises(SecretError, match=f"printed more than {OUTPUT_BYTES} bytes"):
                await command_secret((sys.executable, "-c", FLOOD), os.environ)
