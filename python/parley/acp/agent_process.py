"""An agent's process: how it starts, the connection to it, and how it ends.

Only this module uses `acp`, whose import takes half a second, so it is done in a thread. Passes
updates and requests on to sessions; refuses every method that was not declared.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from parley.acp.agent_pipe import AgentPipe
from parley.acp.client_request import INVALID_PARAMS, RefusedRequest
from parley.acp.permission_request import CANCELLED
from parley.errors import ModelError, SettingsError, reason_of
from parley.models.agent_sign_ins import SignInMethod, sign_in_methods
from parley.models.agent_status import AgentStatus
from parley.processes.reaper import Reaper
from parley.processes.stderr import StderrTail
from parley.programs import program, search_path, surroundings, working_folder
from parley.settings.values import ProviderSettings
from parley.text import last_words, one_line
from parley.tools.client_calls import CLIENT_TOOLS
from parley.tools.server_settings import expand

START_S = 60.0
"""The time limit for the start, and for each request that is not a prompt."""
_GRACE_S = 1.0
_CHUNK = 65_536
_MOST_SHOWN = 300
_USER = ("HOME", "LOGNAME", "SHELL", "USER", "TERM")
"""Variables about the user that agents need, for example to find their own login."""
_VERSION = 1
_AUTH_REQUIRED = -32000
_AUTH_WORDS = "Authentication required"


class AgentEvents(Protocol):
    """A session, as its process knows it."""

    def is_full(self) -> bool:
        """Whether the session cannot take more updates at the moment."""
        ...

    def update(self, update: Mapping[str, Any]) -> None:
        """Receive an update."""
        ...

    async def ask(self, params: Mapping[str, Any]) -> Any:
        """The result of a permission request."""
        ...

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request for a file or a command, or a RefusedRequest."""
        ...

    def lose(self) -> None:
        """React to the end of the process."""
        ...


class AgentProcess:
    """One process of an agent, for all chats with the same root."""

    def __init__(
        self,
        provider: ProviderSettings,
        root: Path,
        environ: Mapping[str, str],
        reaper: Reaper,
        client_tools: frozenset[str] = frozenset(),
    ) -> None:
        """`client_tools` are the workspace's tools that the agent may ask for."""
        self.provider = provider
        self.root = root
        self.client_tools = client_tools
        self.name = ""
        """The agent's own name."""
        self.capabilities: Mapping[str, Any] = {}
        self.sign_ins: tuple[SignInMethod, ...] = ()
        """The agent's sign-in methods."""
        self.sessions: dict[str, AgentEvents] = {}
        """The sessions that receive updates, by id."""
        self.rested = object()
        """Replaced each time the process becomes idle."""
        self.stderr = StderrTail()
        self._problem = ""
        """The last error."""
        self._environ = environ
        self._reaper = reaper
        self._process: Process | None = None
        self._connection: Any = None
        self._pipe: AgentPipe | None = None
        self._starting: asyncio.Task[None] | None = None
        self._is_over = False
        self._requests = 0
        """How many requests with a time limit have no response yet."""
        self._ending: asyncio.Future[None] | None = None
        self._tasks = set[asyncio.Task[None]]()

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, or is about to."""
        return self._is_over or bool(self._process and self._process.returncode is not None)

    @property
    def is_busy(self) -> bool:
        """Whether the agent has to answer a request that is not a prompt."""
        return self._requests > 0

    async def started(self) -> None:
        """Start the process, or wait for its start. Raises ModelError."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        try:
            await self._launch()
            response = await self.request(
                "initialize",
                {
                    "protocolVersion": _VERSION,
                    "clientCapabilities": self._declared(),
                    "clientInfo": {"name": "parley", "version": "1"},
                },
            )
            self._note(response)
        except BaseException:
            self.end()
            raise

    def _declared(self) -> dict[str, Any]:
        return {
            "fs": {
                "readTextFile": "read_file" in self.client_tools,
                "writeTextFile": "write_file" in self.client_tools,
            },
            "terminal": "run_command" in self.client_tools,
            "auth": {"terminal": True},
            "_meta": {"terminal-auth": True},  # for agents without `auth`
        }

    def _note(self, response: Any) -> None:
        match response:
            case {"protocolVersion": int(version), **rest} if version == _VERSION:
                pass
            case _:
                raise self._error(
                    "speaks another version of the protocol. Update it or Parley",
                    "another protocol",
                )
        info, capabilities = rest.get("agentInfo"), rest.get("agentCapabilities")
        if isinstance(info, dict):
            self.name = one_line(f"{info.get('name', '')} {info.get('title', '')}"[:200])
        self.name = self.name.strip() or Path(self.provider.command[0]).name
        self.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self.sign_ins = sign_in_methods(rest)

    async def _launch(self) -> None:
        connection = await asyncio.to_thread(import_module, "acp.connection")
        command, environ = self.command()
        name, arguments = self._reaper.launch(command[0], command[1:])
        try:
            self._process = await asyncio.create_subprocess_exec(
                name,
                *arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=self.stderr.open(),
                env=environ,
                cwd=working_folder(self._environ),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = f"cannot be started: {reason_of(error)}"
            raise self._error(why, "the agent did not start") from error
        finally:
            self.stderr.detach()
        reader, writer = self._process.stdout, self._process.stdin
        assert reader is not None
        assert writer is not None
        self._pipe = AgentPipe(reader, writer, self._is_full, self._note_end, self._complain)
        self._connection = connection.Connection(self._handle, self._pipe)
        if self._is_over:  # it was ended before there was a process to end
            await self._close()
            raise self.lost()

    def command(self) -> tuple[list[str], dict[str, str]]:
        """The command with its program's path, and the variables. Raises ModelError."""
        provider, where = self.provider, f"providers.{self.provider.name}"
        if not provider.command:
            raise self._error(f"has no command. Set {where}.command", "no command")
        try:
            words = [expand(word, self._environ, f"{where}.command") for word in provider.command]
            own = {k: expand(v, self._environ, f"{where}.env.{k}") for k, v in provider.env.items()}
        except SettingsError as error:
            raise ModelError(str(error), reason="a variable is not set") from error
        path = own.get("PATH", self._environ.get("PATH"))
        found = program(words[0], path)
        if found is None:
            raise self._error(
                f"cannot be started: {one_line(words[0], 60)} was not found. Install it"
                f"{f' ({provider.install})' if provider.install else ''}, or set {where}.command",
                "the agent is not installed",
            )
        user = {name: self._environ[name] for name in _USER if name in self._environ}
        return [found, *words[1:]], {
            **surroundings(self._environ),
            **user,
            "PATH": search_path(path),
            **own,
        }

    async def request(
        self, method: str, params: Mapping[str, Any], limit_s: float | None = START_S
    ) -> Any:
        """The response to a request; without a limit, it is a prompt. Raises ModelError."""
        self._requests += limit_s is not None
        try:
            async with asyncio.timeout(limit_s):
                return await self._connection.send_request(method, params)
        except TimeoutError as error:
            why = f"did not answer {method} within {limit_s:g} s"
            raise self._error(f"{why}{self._last_words()}", "the agent did not answer") from error
        except self._errors as error:
            raise self._refused(method, error) from error
        except (OSError, ConnectionError) as error:
            raise self.lost() from error
        finally:
            self._requests -= limit_s is not None

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification soon; nothing happens if the agent is dead."""
        if not self.is_over and self._connection is not None:
            self._tasks.add(task := asyncio.ensure_future(self._notify(method, params)))
            task.add_done_callback(self._tasks.discard)

    async def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        with suppress(OSError, ConnectionError):
            await self._connection.send_notification(method, params)

    def resume(self) -> None:
        """Continue reading, because a session has taken updates."""
        if self._pipe is not None:
            self._pipe.resume()

    def lost(self) -> ModelError:
        """The error for an agent that has ended."""
        when = "during its turn" if self.sessions else "when it started"
        return self._error(f"ended {when}{self._last_words()}", "the agent ended")

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """Handle a message from the agent. Until the first wait, messages are handled in order."""
        fields = params if isinstance(params, dict) else {}
        known = fields.get("sessionId")
        session = self.sessions.get(known) if isinstance(known, str) else None
        if method == "session/update" and is_notification:
            update = fields.get("update")
            if session is not None and isinstance(update, dict):
                session.update(update)
            return None
        if method == "session/request_permission" and not is_notification:
            return await session.ask(fields) if session is not None else CANCELLED
        if is_notification:
            return None
        if CLIENT_TOOLS.get(method) in self.client_tools:
            return await self._client_result(session, method, fields)
        raise self._errors.method_not_found(one_line(method, 60))

    async def _client_result(
        self, session: AgentEvents | None, method: str, params: Mapping[str, Any]
    ) -> Any:
        if session is None:
            raise self._errors(INVALID_PARAMS, "there is no such session")
        result = await session.request(method, params)
        if isinstance(result, RefusedRequest):
            raise self._errors(result.code, result.message)
        return result

    @property
    def _errors(self) -> Any:
        return import_module("acp.exceptions").RequestError

    def _is_full(self) -> bool:
        return any(session.is_full() for session in self.sessions.values())

    def _note_end(self) -> None:
        """React to the end of the agent's output; if the agent still runs, end it."""
        if self._is_over:
            return
        self._is_over = True
        for session in list(self.sessions.values()):
            session.lose()
        self._tasks.add(task := asyncio.ensure_future(self.close()))
        task.add_done_callback(self._tasks.discard)

    def _complain(self, text: str) -> None:
        self.stderr.lines.append(text)

    def _refused(self, method: str, error: Any) -> ModelError:
        words = one_line(str(error), _MOST_SHOWN)
        if error.code == _AUTH_REQUIRED:
            ways = ", ".join(method.name for method in self.sign_ins)
            said = "" if words == _AUTH_WORDS else f": {words}"
            command = f":ParleyLogin {self.provider.name}" if ways else "its own program"
            return self._error(
                f"requires a sign-in{f' ({ways})' if ways else ''}{said}. Sign in with {command}, "
                "then ask again",
                "the agent requires a sign-in",
            )
        detail = error.data.get("details") if isinstance(error.data, dict) else None
        more = f": {one_line(detail, _MOST_SHOWN)}" if isinstance(detail, str) else ""
        return self._error(f"refused {method}: {words}{more}{self._last_words()}", words[:100])

    def status(self) -> AgentStatus:
        """What is known about the process now."""
        self.stderr.drain()
        return AgentStatus(
            self.provider.name,
            str(self.root),
            not self.is_over,
            self._problem,
            tuple(self.stderr.lines),
        )

    def _error(self, what: str, reason: str) -> ModelError:
        self._problem = f"the agent of {self.provider.name} {what}"
        return ModelError(self._problem, reason=reason)

    def _last_words(self) -> str:
        self.stderr.drain()
        said = last_words(self.stderr.lines)
        return f"; its last output: {one_line(said[0], _MOST_SHOWN)}" if said else ""

    def end(self) -> None:
        """Begin to end the process."""
        self._note_end()

    async def close(self) -> None:
        """End the process and its children, politely at first."""
        self._note_end()
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._close())
        await asyncio.shield(self._ending)

    async def _close(self) -> None:
        process = self._process
        if process is None:
            return
        try:
            if self._pipe is not None:
                await self._pipe.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await process.wait()
        finally:
            if os.name == "posix":
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            elif process.returncode is None:
                process.kill()
            self._reaper.sweep(process.pid)
            self.stderr.close()
        if self._connection is not None:
            await self._connection.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                # A pipe that was not read to its end stays open.
                while process.stdout is not None and await process.stdout.read(_CHUNK):
                    pass
