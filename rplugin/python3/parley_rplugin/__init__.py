"""Parley as a remote plugin: what Neovim can tell it.

The same in a host of its own and in the shared one that `:UpdateRemotePlugins` sets up. Only pynvim is
imported here, so that a missing package is reported when Parley is used, and not in anybody's manifest.
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
    """Hands on what Neovim says. Commands, maps and autocommands are Lua's."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self.nvim = nvim
        self._plugin: Plugin | None = None

    @pynvim.function("_ParleyAttach", sync=True)
    def attach(self, _: list[Any]) -> int:
        """The channel to talk to; asking for it starts the shared host."""
        channel: int = self.nvim.channel_id
        return channel

    @pynvim.rpc_export("parley")
    def parley(self, method: str, arguments: dict[str, Any]) -> None:
        """The one notification: what is wanted, and a table."""
        if self._plugin is None:
            if _PYTHON not in sys.path:
                sys.path.insert(0, _PYTHON)
            from parley.nvim.plugin import Plugin

            self._plugin = Plugin(self.nvim)
        self._plugin.receive(method, arguments)
