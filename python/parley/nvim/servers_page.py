"""The page with servers and tools while it is open: updates it as servers start, and handles its
keys.

Switching a tool changes the chat's front matter, because only the file determines which tools the
chat may use. Knows the chat from which the page was opened; `tools_page` knows what the page looks
like.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from parley import engine
from parley.chat.edits import Edit, apply_edits
from parley.chat.front_matter import read_front_matter
from parley.chat.head import put_value
from parley.chat.transcript import Transcript
from parley.display.summary import legible_line
from parley.errors import ParleyError
from parley.iterators import closing
from parley.nvim.chat import Chat
from parley.nvim.editor import Editor
from parley.nvim.tools_page import NEVER, NONE, ServerOffer, tools_page
from parley.nvim.trust_dialog import TrustDialog
from parley.runtime.app import App
from parley.storage.text_trust import OfferedText
from parley.tables import any_of
from parley.tools.catalogue import Catalogue
from parley.tools.mcp_files import PROJECT_FILES
from parley.tools.resources import ResourceList
from parley.tools.selection import switched, takes
from parley.tools.visits import Visit

KEY = "tools"


class ServersPage:
    """An editor's only page with servers."""

    def __init__(self, editor: Editor, app: Callable[[], App], trust: TrustDialog) -> None:
        self._editor = editor
        self._app = app
        self._trust = trust
        self._chat: Chat | None = None
        self._switching = asyncio.Lock()
        self._resources = dict[str, ResourceList]()

    async def open(self, chat: Chat | None) -> None:
        """Show the page, for a chat if given; update it as servers become ready or fail."""
        self._chat = chat
        await self._trust.settle(self._app())
        await self._draw(opening=True)
        await self._follow()

    async def switch(self, handle: int, server: str, tool: str) -> None:
        """Switch a tool or a server on or off in the chat at a handle. Raises ParleyError."""
        chat = self._chat
        if chat is None:
            raise ParleyError("this page does not belong to a chat. Run :ParleyTools in a chat")
        async with self._switching:  # a second key starts from the result of the first
            offer = self._offer(await chat.buffer.look())
            status = next(status for status in offer.servers if status.name == server)
            boxes = {"": offer.box(status), **{t.name: offer.tool_box(t) for t in status.tools}}
            if boxes.get(tool, NEVER) == NEVER:
                raise ParleyError(
                    f"{server}/{tool or '*'} is not offered here: it is excluded by the "
                    "settings or the agent"
                )
            await chat.change(
                handle, lambda shot: _switched(shot, server, tool, boxes[tool] == NONE)
            )
            await self._draw()

    async def restart(self, server: str) -> None:
        """Restart a server."""
        self._app().servers.restart(server)
        await self._follow()

    async def sign_in(self, server: str) -> None:
        """Let the user sign in to a server, or cancel a running sign-in. Raises ParleyError."""
        servers = self._app().servers
        try:
            is_done = await servers.sign_in(
                server, lambda page: self._editor.spawn(self._browse(server, page))
            )
        finally:
            await self._draw()
        if is_done:
            self._editor.message(f"signed in to {legible_line(server)}")
            await self._follow()

    async def _browse(self, server: str, page: Visit) -> None:
        self._editor.message(f"sign in to {legible_line(server)} at {page.host}, in your browser")
        await self._draw()
        if failure := await self._editor.ask("open_url", page.url):
            self._editor.message(
                f"no browser opened the page on {page.host}: {legible_line(failure)}. "
                ":ParleyTools shows the address",
                "warn",
            )

    async def sign_out(self, server: str) -> None:
        """Delete a server's login. Raises ParleyError."""
        if not self._app().servers.sign_out(server):
            raise ParleyError(f"you are not signed in to {legible_line(server)}")
        self._editor.message(
            f"signed out of {legible_line(server)}: the login stored here was deleted"
        )
        await self._follow()

    async def trust(self) -> None:
        """Ask about the project's server files and instructions, even if the user declined
        earlier.
        """
        if not (self._app().untrusted() or self._offered()):
            raise ParleyError(f"no untrusted {any_of(*PROJECT_FILES)} or instructions here")
        if self._chat:
            await self._trust.settle_for(self._chat.buffer, again=True)
        else:
            await self._trust.settle(self._app(), again=True)
        await self._follow()

    def _offered(self) -> Sequence[OfferedText]:
        """The project's instructions to which the user has not agreed, for the page's chat."""
        if self._chat is None:
            return ()
        buffer = self._chat.buffer
        return self._app().instructions(buffer.transcript, lambda: buffer.folder).offered

    async def _follow(self) -> None:
        """Draw servers as they become ready or fail, and later their resources."""
        await self._draw()
        listed = set[str]()
        async with closing(self._app().servers.settling()) as changes:
            async for _ in changes:
                await self._draw()
                states = self._app().servers.status()
                if ready := {s.name for s in states if s.state == "ready"} - listed:
                    listed |= ready
                    self._editor.spawn(self._list(ready))

    async def _list(self, servers: Collection[str]) -> None:
        """Ask these servers for their resources, and draw them."""
        before = {name: self._resources.get(name) for name in servers}
        self._resources |= await self._app().servers.resources(servers)
        if any(self._resources.get(name) != lists for name, lists in before.items()):
            await self._draw()

    async def _draw(self, *, opening: bool = False) -> None:
        transcript = await self._chat.buffer.look() if self._chat else Transcript()
        page = tools_page(self._offer(transcript))
        self._editor.tell(
            "tools_page", page.table(), self._chat.buffer.buf if self._chat else None, opening
        )

    def _offer(self, transcript: Transcript) -> ServerOffer:
        app, chosen = self._app(), self._chat.buffer.chosen if self._chat else None
        servers, resolve = app.servers.status(), app.resolve_to_draw(chosen)
        catalogue = Catalogue.of(tool for server in servers for tool in server.tools)
        globs = read_front_matter(transcript.front_matter).keys.get(KEY)
        out = [s.name for s in servers if globs is not None and not takes(globs, (f"{s.name}/*",))]
        untrusted = [
            f"{p} is not used because you have not trusted it (press t to review it)"
            for p in app.untrusted()
        ]
        untrusted += [
            f"{legible_line(text.name)} is not sent because you have not agreed to it (press t to "
            "review it)"
            for text in self._offered()
        ]
        settings = resolve(transcript)
        return ServerOffer(
            servers,
            _tool_keys(
                resolve(replace(transcript, front_matter=_without_tools(transcript))), catalogue
            ),
            _tool_keys(settings, catalogue),
            frozenset(out),
            settings.request.tool_room,
            Path(self._chat.buffer.name).name if self._chat else "",
            (*untrusted, *app.problems()),
            self._resources,
            app.agent_processes.status(),
            app.workspace.root.reason,
        )


def _tool_keys(settings: engine.ChatSettings, catalogue: Catalogue) -> frozenset[tuple[str, str]]:
    tools = settings.tools(catalogue).tools if settings.tools else ()
    return frozenset((tool.server, tool.name) for _, tool in tools)


def _switched(shot: engine.Snapshot, server: str, tool: str, on: bool) -> list[Edit]:
    globs = read_front_matter(shot.transcript.front_matter).keys.get(KEY)
    try:
        return put_value(
            shot.lines, shot.transcript, KEY, switched(globs, server, tool or None, on)
        )
    except ValueError as error:
        raise ParleyError(str(error)) from error


def _without_tools(transcript: Transcript) -> str | None:
    """A chat's front matter, without its selection of tools."""
    if transcript.front_matter is None:
        return None
    lines = ["---", *transcript.front_matter.split("\n"), "---"]
    try:
        return "\n".join(apply_edits(lines, put_value(lines, transcript, KEY, None))[1:-1])
    except ValueError:
        return None
