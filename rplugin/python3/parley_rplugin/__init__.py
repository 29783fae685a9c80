"""Parley as a remote plugin: the calls that it accepts from Neovim.

Runs in its own host or in the shared host that `:UpdateRemotePlugins` sets up. Imports only pynvim,
so that a missing package does not break the user's manifest, but is reported when the user runs
Parley.
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
    """Forwards Neovim's messages. Commands, maps and autocommands are in Lua."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self.nvim = nvim
        self._plugin: Plugin | None = None

    @pynvim.function("_ParleyAttach", sync=True)
    def attach(self, _: list[Any]) -> int:
        """The channel for messages; this request starts the shared host."""
        channel: int = self.nvim.channel_id
        return channel

    @pynvim.rpc_export("parley")
    def parley(self, method: str, arguments: dict[str, Any]) -> None:
        """Handle the only notification: a method, and its arguments as a table."""
        if self._plugin is None:
            if _PYTHON not in sys.path:
                sys.path.insert(0, _PYTHON)
            from parley.nvim.plugin import Plugin

            self._plugin = Plugin(self.nvim)
        self._plugin.receive(method, arguments)
