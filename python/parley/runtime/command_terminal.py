"""A command of the workspace as a terminal of an agent: its output while it runs, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from parley.errors import ParleyError
from parley.tools.results import Outcome
from parley.workspace.command_runs import CommandWatch

ENDED_EARLY = "(the command was stopped early: by the agent, or because the turn ended)"
_STOPPED = {"exitCode": None, "signal": "SIGTERM"}


class CommandTerminal:
    """Implements a terminal; `watch` sees the command that `run` runs."""

    def __init__(self, watch: CommandWatch, limit: int | None) -> None:
        """`limit` is the maximum number of bytes of output that the agent receives."""
        self._watch = watch
        self._limit = limit
        self._run: asyncio.Task[Outcome] | None = None

    async def begin(
        self,
        run: Coroutine[Any, Any, tuple[str, str]],
        outcome_of: Callable[[str], Outcome],
    ) -> None:
        """Begin the command. `outcome_of` makes the outcome from its text. Raises ParleyError if the
        command cannot start.
        """
        self._run = asyncio.ensure_future(self._finished(run, outcome_of))
        begun = asyncio.ensure_future(self._watch.begun.wait())
        try:
            await asyncio.wait({self._run, begun}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.end()
            raise
        finally:
            begun.cancel()
        if not self._watch.begun.is_set():
            raise ParleyError((await self._run).text)

    async def _finished(
        self,
        run: Coroutine[Any, Any, tuple[str, str]],
        outcome_of: Callable[[str], Outcome],
    ) -> Outcome:
        try:
            text, _ = await run
        except ParleyError as error:
            return Outcome("error", str(error))
        return outcome_of(f"{text}\n{ENDED_EARLY}" if self._watch.stop.is_set() else text)

    def output(self) -> Mapping[str, Any]:
        """The output so far: its end, if the agent wants less."""
        buffer = self._watch.output
        text = buffer.text()
        whole = text.encode()
        cut = whole if self._limit is None else whole[max(len(whole) - self._limit, 0) :]
        shown = text if cut == whole else cut.decode(errors="ignore")
        result = {"output": shown, "truncated": shown != text or buffer.is_cut}
        return result | ({"exitStatus": self._status()} if self._watch.ended.is_set() else {})

    async def wait(self) -> Mapping[str, Any]:
        """How the command ended, when it has."""
        await self._watch.ended.wait()
        return self._status()

    def _status(self) -> Mapping[str, Any]:
        result = self._watch.result
        if result is None or result.exit_code is None:
            return _STOPPED
        return {"exitCode": result.exit_code, "signal": None}

    def end(self) -> None:
        """Begin to end the command with its processes."""
        if not self._watch.ended.is_set():
            self._watch.stop.set()

    async def outcome(self) -> Outcome:
        """The outcome for the chat, when the command's changes are recorded, too."""
        assert self._run, "the command has begun"
        return await asyncio.shield(self._run)
