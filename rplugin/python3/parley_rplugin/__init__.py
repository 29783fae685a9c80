"""Parley as a remote plugin: the calls that it accepts from Neovim.

Runs in its own host and in the shared host that `:UpdateRemotePlugins` sets up. Imports only
pynvim, so a missing package is reported when Parley is used, and does not break the user's
manifest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pynvim

if TYPE_CHECKING:
    from parley.nvim.plugin import Plugin

_PYTHON = str(Path(__file__).resolve().parents[3] / "python")


@pynvim.plugin
class ParleyRemote:
    """Passes on Neovim's messages. Lua has the commands, maps and autocommands."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self.nvim = nvim
        self._plugin: Plugin | None = None

    @pynvim.function("_ParleyAttach", sync=True)
    def attach(self, _: list[Any]) -> int:
        """The channel for messages; requesting it starts the shared host."""
        channel: int = self.nvim.channel_id
        return channel

    @pynvim.rpc_export("parley")
    def parley(self, method: str, arguments: dict[str, Any]) -> None:
        """The only notification: a method, and its arguments as a table."""
        if self._plugin is None:
            if _PYTHON not in sys.path:
                sys.path.insert(0, _PYTHON)
            from parley.nvim.plugin import Plugin

            self._plugin = Plugin(self.nvim)
        self._plugin.receive(method, arguments)
