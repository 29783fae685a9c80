"""The workspace of the app: its root, its server, the previews of its calls, and its records.

Everything is lazy: finding the root costs a few looks at the file system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.frozen import frozen
from parley.paths import config_path, state_folder
from parley.processes.reaper import Reaper
from parley.settings.values import WorkspaceSettings
from parley.storage.checkpoints import Checkpoints
from parley.tools.builtin_tools import NO_COMMAND, builtin_tools
from parley.tools.server_settings import WORKSPACE, ServerSettings
from parley.workspace.editor_files import EditorFiles, NoEditor
from parley.workspace.root import WorkspaceRoot, find_root

if TYPE_CHECKING:
    from parley.chat.transcript import Proposal
    from parley.policy.previews import Previews
    from parley.runtime.call_previews import CallPreviews
    from parley.runtime.recording import CallRecorder
    from parley.storage.ledger import LedgerFile
    from parley.tools.catalogue import Tool
    from parley.workspace.boundary import Boundary
    from parley.workspace.change_tools import CallOrigin
    from parley.workspace.command_tool import RunningCommands
    from parley.workspace.editor_code import EditorCode
    from parley.workspace.sandbox import Sandbox
    from parley.workspace.toolbox import Workspace


@frozen
class LatePreviews:
    """Implements the engine's source of previews, which is imported with the first waiting call."""

    source: Callable[[], CallPreviews]

    async def of(self, calls: Sequence[tuple[Proposal, Tool]]) -> Previews:
        """The previews of these waiting calls."""
        return await self.source().of(calls)


class AppWorkspace:
    """The workspace that an app offers. An app that takes over the servers takes it over, too."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.root = WorkspaceRoot(None)
        """The folder that the tools work in, or why they are not offered."""
        self.files: EditorFiles = NoEditor()
        self.code: EditorCode | None = None
        """The editor's language servers; None without an editor."""
        self.checkpoints = Checkpoints(state_folder(environ) / "checkpoints")
        self._environ = environ
        self._ledger: Callable[[], LedgerFile] | None = None
        self._settings = WorkspaceSettings()
        self._reaper = Reaper()
        self._sandbox: Sandbox | None = None
        self._running: RunningCommands | None = None

    def use(
        self, files: EditorFiles, code: EditorCode | None, ledger: Callable[[], LedgerFile]
    ) -> None:
        """Work for this app: with its editor's open files and language servers, and its ledger."""
        self.files, self.code, self._ledger = files, code, ledger

    def look(self, settings: WorkspaceSettings, folder: Path) -> ServerSettings | None:
        """Find the root for these settings and this working directory; returns the server to offer,
        if any.
        """
        self._settings = settings
        self.root = find_root(settings.enabled, settings.root, folder, self._environ)
        if self.root.path is None:
            return None
        args = () if settings.command else (NO_COMMAND,)
        return ServerSettings(WORKSPACE, cwd=str(self.root.path), args=args, builtin=True)

    def known_tools(self, settings: ServerSettings) -> tuple[Tool, ...] | None:
        """The tools of a server that is part of Parley; None if only the server knows them."""
        return builtin_tools(settings, has_code=self.code is not None)

    def server(self, settings: ServerSettings) -> Any:
        """The MCP server with these settings. It imports the SDK."""
        from parley.workspace.tool_server import create_workspace_server

        root = Path(settings.cwd or ".")
        return create_workspace_server(
            lambda: self._workspace(root),
            has_command=NO_COMMAND not in settings.args,
            has_code=self.code is not None,
        )

    def previews(self, folder: Path) -> LatePreviews:
        """The previews of calls, always in the current root; `folder` is the user's working
        directory.
        """

        def source() -> CallPreviews:
            from parley.runtime.call_previews import CallPreviews

            return CallPreviews(self._boundary, self.files, folder, self._sandbox_note)

        return LatePreviews(source)

    def tools(self) -> Workspace | None:
        """The workspace in the current root; None if its tools are not offered."""
        return self._workspace(self.root.path) if self.root.path else None

    def client_tools(self, folder: Path) -> frozenset[str]:
        """The tools that an agent of another program in this folder may ask for."""
        if self.root.path is None or not folder.is_relative_to(self.root.path):
            return frozenset()
        from parley.tools.client_calls import CLIENT_TOOLS

        off = frozenset() if self._settings.command else frozenset({"run_command"})
        return frozenset(CLIENT_TOOLS.values()) - off

    def _boundary(self) -> Boundary | None:
        return self._around(self.root.path) if self.root.path else None

    def _around(self, root: Path) -> Boundary:
        from parley.workspace.boundary import Boundary

        own, settings = state_folder(self._environ), config_path(self._environ).parent
        return Boundary(root, [own], [settings])

    def _workspace(self, root: Path) -> Workspace:
        from parley.workspace.command_tool import CommandTool, RunningCommands
        from parley.workspace.toolbox import Workspace

        self._running = self._running or RunningCommands()
        command = CommandTool(self._commands(root), self._environ, self._running)
        return Workspace(
            self._around(root),
            self.files,
            self._recorder,
            command if self._settings.command else None,
            self.code,
        )

    def _commands(self, root: Path) -> Any:
        from parley.workspace.command_runs import Commands
        from parley.workspace.sandbox import Sandbox

        self._sandbox = self._sandbox or Sandbox(self._environ)
        settings = self._settings
        return Commands(
            *(root, self._environ, self._reaper, self._sandbox, settings.sandbox),
            has_network=settings.network,
        )

    async def _sandbox_note(self) -> str:
        """Whether a command would run in a sandbox. Raises ParleyError if it may not run."""
        command = self._workspace(self.root.path or Path()).command
        return await command.sandbox_note() if command else ""

    def _recorder(self, origin: CallOrigin) -> CallRecorder:
        from parley.runtime.recording import CallRecorder
        from parley.storage.changed_files import ChangedFiles

        assert self._ledger, "the app has called `use`"
        changes = ChangedFiles(self._ledger(), origin.chat)
        return CallRecorder(changes, self.checkpoints, origin.call)

    async def close(self) -> None:
        """End the commands that still run, and record their changes."""
        if self._running:
            await self._running.close()
        await self._reaper.close()
