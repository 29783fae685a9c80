"""The messages to and from an agent's process, a line of JSON each, within bounds.

If an agent sends more than Parley can process, Parley stops reading, so the agent has to wait.
Knows the form of messages, but not what they mean.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any

from parley.processes.line_codec import LONG_LINE, LineDecoder

MOST_A_SECOND = 2_000
"""The maximum number of messages that are read in a second."""
MOST_OPEN = 100
"""How many of an agent's requests may be unanswered before Parley stops reading."""
MESSAGE_BYTES = 32_000_000
_CHUNK = 65_536
_SEND_S = 30.0
"""If an agent does not read for this many seconds, Parley gives up."""


class AgentPipe:
    """Implements the transport of `acp` over a process's pipes. `is_full` says when to stop reading
    for a while; then `resume` continues."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        is_full: Callable[[], bool],
        on_end: Callable[[], None],
        complain: Callable[[str], None],
    ) -> None:
        """`complain` receives the remarks that the page shows with the agent's stderr."""
        self._reader = reader
        self._writer = writer
        self._is_full = is_full
        self._on_end = on_end
        self._complain = complain
        self._decoder = LineDecoder("replace", MESSAGE_BYTES)
        self._messages: deque[dict[str, Any]] = deque()
        self._open = 0
        self._may_continue = asyncio.Event()
        self._second, self._count = 0, 0

    def resume(self) -> None:
        """Continue reading, because a reply took updates, or Parley answered a request."""
        self._may_continue.set()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises OSError if the agent is gone or does not read."""
        is_response = "method" not in message
        if is_response:
            self._open -= 1
            self.resume()
        # JSON may contain characters that end a line elsewhere, so all of them are escaped.
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        try:
            async with asyncio.timeout(_SEND_S):
                await self._writer.drain()
        except OSError as error:  # with TimeoutError
            self._on_end()
            if not is_response:  # a dead agent needs no response
                raise OSError("the agent does not read its input") from error

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        while True:
            await self._pace()
            if self._messages:
                message = self._messages.popleft()
                self._open += "method" in message and "id" in message
                return message
            try:
                chunk = await self._reader.read(_CHUNK)
            except (OSError, ValueError):
                chunk = b""
            for line in self._decoder.decode(chunk, not chunk).split("\n"):
                if not self._take(line):
                    chunk = b""
                    break
            if not chunk and not self._messages:
                self._on_end()
                return None

    def _take(self, line: str) -> bool:
        """Keep a line's message; False if Parley must stop reading from the agent."""
        if not line or line.isspace():
            return True
        if line == LONG_LINE:
            self._complain(
                f"(the agent was stopped: it sent a message of over {MESSAGE_BYTES} bytes)"
            )
            self._messages.clear()
            return False
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._complain("(a line on stdout that is not a message was skipped)")
            return True
        if _is_message(message):
            self._messages.append(message)
        else:
            self._complain("(an invalid message was skipped)")
        return True

    async def _pace(self) -> None:
        """Wait while there are too many updates that no reply takes, unanswered requests, or
        messages in a second."""
        while self._is_full() or self._open >= MOST_OPEN:
            self._may_continue.clear()
            await self._may_continue.wait()
        now = asyncio.get_running_loop().time()
        if int(now) != self._second:
            self._second, self._count = int(now), 0
        self._count += 1
        if self._count > MOST_A_SECOND:
            await asyncio.sleep(self._second + 1 - now)

    async def close(self) -> None:
        """Close the agent's stdin."""
        self._writer.close()


def _is_message(message: Any) -> bool:
    """Whether a value has the form of a message that can be processed."""
    if not isinstance(message, dict):
        return False
    method, number = message.get("method"), message.get("id")
    if "method" in message:
        is_known = isinstance(method, str) and ("id" not in message or _is_id(number))
        return is_known and isinstance(message.get("params", {}), dict | list | None)
    error = message.get("error")
    is_error = error is None or (
        isinstance(error, dict)
        and isinstance(error.get("code", 0), int)
        and isinstance(error.get("message", ""), str)
    )
    return isinstance(number, int) and is_error


def _is_id(number: Any) -> bool:
    return number is None or (isinstance(number, int | str) and not isinstance(number, bool))
