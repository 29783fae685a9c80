"""Handles Neovim's messages: reads the arguments, starts or stops work, and returns.

Knows the messages' names; `chat` knows what they mean for a chat.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pynvim

from parley.chat.transcript import CHOICES
from parley.display.summary import shown_line
from parley.errors import ParleyError
from parley.nvim.agent_choices import choice_of, pick_choice, write_choice
from parley.nvim.chat import Chat
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.code_queries import BufferCode
from parley.nvim.dialogs import Dialogs
from parley.nvim.editor import Editor
from parley.nvim.elicitation import Elicitation
from parley.nvim.garbage import collect_garbage
from parley.nvim.log import log_to
from parley.nvim.open_files import BufferFiles
from parley.nvim.prompt_insertion import PromptInsertion
from parley.nvim.trust_dialog import TrustDialog
from parley.settings.load import load_settings, settings_file
from parley.settings.readiness import no_such_agent

if TYPE_CHECKING:
    from parley.nvim.account_dialog import AccountDialog
    from parley.nvim.agent_login import AgentLogin
    from parley.nvim.file_reverts import FileReverts
    from parley.nvim.permission_dialog import PermissionDialog
    from parley.nvim.resource_names import ResourceNames
    from parley.nvim.servers_page import ServersPage
    from parley.runtime.app import App

_log = logging.getLogger("parley")


class Plugin:
    """All chats in one Neovim."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self.editor = Editor(nvim)
        self.chats = dict[int, Chat]()
        self.folder = Path.cwd()
        """The user's working directory, as Neovim last reported it; it may contain a project's
        server file.
        """
        self.dialogs = Dialogs(self.editor)
        self.trust = TrustDialog(self.editor, self.dialogs, self._waiting)
        self.prompts = PromptInsertion(self.editor, self.dialogs, lambda: self.app, self.trust)
        self.code = BufferCode(self.editor)
        self._elicitation = Elicitation(
            self.editor, self.dialogs, self._waiting, self._running_tools
        )
        self._app: App | None = None
        self._setup: tuple[dict[str, Any], str] = {}, ""
        """The arguments of `setup`, used to read the settings again."""
        self._ends = dict[str, asyncio.Event]()
        """For each file, the end of a closed buffer's turn; the next request in this file waits for
        that end.
        """
        self._chosen = dict[str, str]()
        """For each file, the agent that the user chose; the choice survives a reload of the file.
        """
        self._handlers = {
            name.removeprefix("_on_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("_on_")
        }

    def receive(self, method: str, arguments: dict[str, Any]) -> None:
        """Begin the work that a message requests. Never raises."""
        change = arguments.pop("change", None)
        try:
            if change is not None:
                chat = self._chat(arguments["buf"], arguments["name"])
                chat.buffer.mirror.take(change)
            self._handlers[method](**arguments)
        except ParleyError as error:
            self.editor.message(str(error), "warn")
        except Exception as error:  # noqa: BLE001 - report every error of a message
            _log.exception("%s failed", method)
            self.editor.message(f"{method} failed: {error!r}", "error")

    @property
    def app(self) -> App:
        """The app, which outlives chats."""
        assert self._app is not None, "call setup() first"
        return self._app

    def _chat(self, buf: int, name: str) -> Chat:
        chat = self.chats.get(buf)
        if chat is None:
            before = self._ends.pop(name, None) if name else None
            buffer = ChatBuffer(self.editor, self.app, buf, name)
            buffer.folder = self.folder
            buffer.chosen = self._chosen.get(name) if name else None
            chat = self.chats[buf] = Chat(buffer, self.trust, self.prompts, before)
        chat.buffer.name = name
        return chat

    def _in(self, cwd: str) -> Path:
        """Record that the user works in this directory now."""
        self.folder = Path(cwd)
        return self.folder

    @contextmanager
    def _waiting(self, question: str) -> Iterator[None]:
        """While the user decides, show the question in all chats whose turn waits."""
        waiting = [chat for chat in self.chats.values() if chat.turns.end is not None]
        for chat in waiting:
            chat.screen.waits_for(question)
        try:
            yield
        finally:
            for chat in waiting:
                chat.screen.waits_for("")

    def _running_tools(self, server: str) -> list[str]:
        """The names of a server's tools with a running call in any chat."""
        names = (name for chat in self.chats.values() for name in chat.turns.running_tools(server))
        return list(dict.fromkeys(names))

    async def _may_read(self, path: Path) -> bool:
        """Ask whether a question may include a file outside the working directory."""
        question = (
            f"Read {shown_line(str(path))} into the chat? It is outside the working directory."
        )
        with self._waiting(question):
            return await self.dialogs.select(question, ["No", "Yes, this once"]) == 1

    async def _may_read_hidden(self, path: Path) -> bool:
        """Ask whether the questions of a chat may include a hidden file."""
        question = f"Read the hidden file {shown_line(str(path))} into the chat?"
        with self._waiting(question):
            return await self.dialogs.select(question, ["No", "Yes, in this chat"]) == 1

    def _note_change(self, path: Path) -> None:
        """Note that a tool changes an open file: if it is a chat, the user has not typed its agent."""
        for chat in self.chats.values():
            if chat.buffer.path and os.path.realpath(chat.buffer.path) == str(path):
                chat.check.was_loaded = True

    # --- Pages and dialogs: imported when they are first used, so that the host starts quickly ---

    @cached_property
    def servers(self) -> ServersPage:
        """The page of servers and tools."""
        from parley.nvim.servers_page import ServersPage

        return ServersPage(self.editor, lambda: self.app, self.trust)

    @cached_property
    def accounts(self) -> AccountDialog:
        """The sign-ins to providers."""
        from parley.nvim.account_dialog import AccountDialog

        return AccountDialog(self.editor, self.dialogs, lambda: self.app)

    @cached_property
    def agent_login(self) -> AgentLogin:
        """The sign-ins of agents of other programs."""
        from parley.nvim.agent_login import AgentLogin

        return AgentLogin(self.editor, self.dialogs, lambda: self.app)

    @cached_property
    def _permissions(self) -> PermissionDialog:
        from parley.nvim.permission_dialog import PermissionDialog

        return PermissionDialog(self.editor, self.dialogs, lambda: self.app)

    @cached_property
    def _reverts(self) -> FileReverts:
        from parley.nvim.file_reverts import FileReverts

        return FileReverts(self.editor, lambda: self.app)

    @cached_property
    def _resource_names(self) -> ResourceNames:
        from parley.nvim.resource_names import ResourceNames

        return ResourceNames(self.editor, lambda: self.app.servers)

    # --- Messages: `_on_` and the message's name ---

    def _on_setup(self, settings: dict[str, Any], log: str, cwd: str) -> None:
        from parley.models.attempts import PATIENCE
        from parley.runtime.app import App, FrontEnd

        self._setup = settings, log
        log_to(Path(log), os.environ)
        self._in(cwd)
        file = settings_file(os.environ)
        read, problems = load_settings(os.environ, settings, file)
        before = self._app
        self._app = App(
            read,
            os.environ,
            folder=lambda: self.folder,
            front_end=FrontEnd(
                self._elicitation,
                self._may_read,
                PATIENCE,
                BufferFiles(self.editor, lambda: read.workspace.save, self._note_change),
                self.code,
                self._may_read_hidden,
            ),
            before=before,
            fault=file.fault,
        )
        for chat in self.chats.values():
            chat.buffer.app = self._app
        if before is not None:
            self.editor.spawn(self._retire(before))
        for problem in problems:
            self.editor.message(problem, "warn")
        shown = {"keys": asdict(read.keys), "highlight": asdict(read.highlight)}
        own = {
            name: getattr(read, name)
            for name in ("chat_dir", "save", "start_insert", "picker", "pictures")
        }
        for_lua = {**own, **shown, "accounts": self.app.accounts.names()}
        self.editor.tell("ready", self.app.agents(), for_lua)

    async def _retire(self, app: App) -> None:
        """Close an app with older settings once the turns that began with this app have ended."""
        turns = {chat.turns.task for chat in self.chats.values() if chat.turns.task is not None}
        if turns:
            await asyncio.wait(turns)
        await app.close()

    def _on_attach(self, buf: int, name: str) -> None:
        self.editor.spawn(self._attached(self._chat(buf, name)))

    async def _attached(self, chat: Chat) -> None:
        self.app.warm(self.editor.loop, chat.buffer.agent)
        await chat.turns.refresh()
        if self.app.settings.mcp.start == "chat":
            await self.app.servers.begin()

    def _on_detach(self, buf: int) -> None:
        chat = self.chats.pop(buf, None)
        if chat is not None:
            if chat.buffer.name and chat.turns.end is not None:
                self._ends[chat.buffer.name] = chat.turns.end
            self.editor.spawn(self._forget(chat))

    async def _forget(self, chat: Chat) -> None:
        """Empty a closed chat's queue and, when its turn has ended, forget its text."""
        await chat.turns.empty_queue()
        if chat.turns.task is not None:
            await asyncio.wait([chat.turns.task])
        chat.forget()
        collect_garbage()

    def _on_changed(self, buf: int, name: str) -> None:
        chat = self._chat(buf, name)
        self.app.warm(self.editor.loop, chat.buffer.agent)
        self.editor.spawn(chat.turns.refresh())

    def _on_gone(self, handle: int, why: str) -> None:
        for chat in self.chats.values():
            chat.turns.lose(handle, why)

    def _on_respond(
        self,
        buf: int,
        name: str,
        row: int,
        handle: int,
        cwd: str,
        regenerate: bool,
        agent: str = "",
    ) -> None:
        chat = self._chat(buf, name)
        chat.buffer.folder = self._in(cwd)
        if agent and (why := self._no_regeneration(agent, is_asked=regenerate)):
            self.editor.tell("close", handle)
            raise ParleyError(why)
        if regenerate:
            chat.regenerate(handle, row, agent)
        else:
            chat.respond(handle, row)

    def _no_regeneration(self, agent: str, *, is_asked: bool) -> str:
        """Why this agent cannot regenerate an answer; "" if it can."""
        if not is_asked:
            return (
                f":ParleyRespond! {agent} regenerates an answer; for a question, use :ParleyAgent"
            )
        return "" if agent in self.app.agents() else no_such_agent(agent, self.app.settings)

    def _on_compact(self, buf: int, name: str, row: int, handle: int, cwd: str, keep: str) -> None:
        from parley.policy.summaries import KEEP

        if keep and not keep.isdecimal():
            self.editor.tell("close", handle)
            raise ParleyError(f"expected a number of exchanges to keep unchanged, got {keep}")
        self._in(cwd)
        self._chat(buf, name).compact(handle, row, int(keep or KEEP))

    def _on_made(self, buf: int, name: str) -> None:
        from parley.nvim.agents import show_welcome
        from parley.storage.ledger import MADE_HERE

        chat = self._chat(buf, name)
        chat.check.was_loaded = False  # Parley created the file; the user typed the rest
        self.app.ledger(chat.buffer.path).confirm(MADE_HERE)

        self.editor.spawn(show_welcome(chat.buffer))

    def _on_loaded(self, buf: int, name: str) -> None:
        self._chat(buf, name).check.was_loaded = True

    def _on_confirm(self, buf: int, name: str, agent: str) -> None:
        self.app.ledger(self._chat(buf, name).buffer.path).confirm(agent)

    def _on_choose(
        self,
        buf: int,
        name: str,
        row: int,
        handle: int,
        cwd: str,
        key: Any,
        rule: Any,
        reason: str,
        seen: list[tuple[int, float]],
        again: float | None = None,
        edited: str | None = None,
    ) -> None:
        if key not in CHOICES:
            self.editor.tell("close", handle)
            raise ParleyError(f"unknown choice {key}: use one of {', '.join(CHOICES)}")
        chat = self._chat(buf, name)
        chat.buffer.folder = self._in(cwd)
        chat.choose(handle, row, key, rule, reason, seen, again=again, edited=edited)

    def _on_allow(
        self, cwd: str, buf: int | None = None, name: str = "", row: int = 0, handle: int = 0
    ) -> None:
        self._in(cwd)
        if buf is None:
            self._permissions.show()
            return
        chat = self._chat(buf, name)
        chat.buffer.folder = self.folder
        self._permissions.open(chat, handle, row)

    def _on_disallow(self, number: int) -> None:
        self._permissions.remove(number)

    def _on_answered(self, id: int, value: Any = None) -> None:  # noqa: A002 - the name it has in the message
        self.dialogs.answered(id, value)

    def _on_queried(self, id: int, value: Any) -> None:  # noqa: A002 - the name it has in the message
        self.code.answered(id, value)

    def _on_stop(self, buf: int, name: str) -> None:
        self._chat(buf, name).turns.stop()

    def _on_agent(self, buf: int, name: str, agent: str | None = None, stays: bool = False) -> None:
        from parley.nvim.agents import offer_agents

        chat = self._chat(buf, name)
        if agent is None and not stays:
            self.editor.spawn(offer_agents(chat.buffer))
            return
        if agent and self.app.settings.named_agent(agent) is None and (choice := choice_of(agent)):
            self.editor.spawn(write_choice(chat, *choice, lambda: self._forget_choice(name)))
            return
        agent = agent or chat.buffer.agent.name
        if self.app.settings.named_agent(agent) is None:
            raise ParleyError(no_such_agent(agent, self.app.settings))
        if name:
            self._chosen[name] = agent
        chat.choose_agent(agent, stays=stays)

    def _on_agent_option(self, buf: int, name: str, option: str) -> None:
        chat = self._chat(buf, name)
        self.editor.spawn(
            pick_choice(chat, self.dialogs, option, lambda: self._forget_choice(name))
        )

    def _forget_choice(self, name: str) -> None:
        """Forget the agent that the user chose for a file, because the file names it now."""
        self._chosen.pop(name, None)

    def _on_models(self, buf: int, name: str, refresh: bool = False) -> None:
        from parley.nvim.models_page import show_models

        self.editor.spawn(show_models(self._chat(buf, name).buffer, refresh=refresh))

    def _on_details(self, buf: int, name: str, row: int, handle: int, cwd: str) -> None:
        from parley.nvim.lookups import show_details

        show_details(self._chat(buf, name), handle, row)

    def _on_review(self, buf: int, name: str, row: int, handle: int, cwd: str) -> None:
        from parley.nvim.lookups import show_review

        show_review(self._chat(buf, name), handle, row)

    def _on_apply(self, buf: int, name: str, row: int, handle: int, cwd: str, whole: bool) -> None:
        chat = self._chat(buf, name)
        chat.buffer.folder = self._in(cwd)
        from parley.nvim.block_diff import show_block

        self.editor.spawn(show_block(chat.buffer, handle, row, is_whole=whole))

    def _on_request(self, buf: int, name: str, row: int, handle: int, cwd: str) -> None:
        from parley.nvim.lookups import show_request

        chat = self._chat(buf, name)
        chat.buffer.folder = self._in(cwd)
        show_request(chat, handle, row)

    def _on_log(self, buf: int, name: str) -> None:
        from parley.nvim.pages import log_page

        path = self._chat(buf, name).buffer.path
        ledger = self.app.ledger(path)
        entries, until = ledger.view().entries, ledger.deleted_until()
        lines = log_page(path, ledger.history(), entries, until)
        self.editor.tell("scratch", "log", lines, "parley")

    def _on_changes(self, buf: int, name: str) -> None:
        self.editor.spawn(self._reverts.open(self._chat(buf, name).buffer))

    def _on_change_diff(self, number: int) -> None:
        self.editor.spawn(self._reverts.show_diff(number))

    def _on_change_hunks(self) -> None:
        self.editor.spawn(self._reverts.list_hunks())

    def _on_change_revert(self, number: int) -> None:
        self.editor.spawn(self._reverts.revert_file(number))

    def _on_revert(
        self, buf: int, name: str, row: int, handle: int, cwd: str, repeats: bool
    ) -> None:
        self._in(cwd)
        buffer = self._chat(buf, name).buffer
        self.editor.spawn(self._reverts.revert_exchange(buffer, handle, row, repeats=repeats))

    def _on_export(self, buf: int, name: str, path: str, force: bool) -> None:
        from parley.nvim.copies import export_chat

        self.editor.spawn(export_chat(self._chat(buf, name), Path(path), force))

    def _on_fork(self, buf: int, name: str, row: int, handle: int, cwd: str, newline: str) -> None:
        from parley.nvim.copies import fork_chat

        self._in(cwd)
        self.editor.spawn(fork_chat(self._chat(buf, name), handle, row, newline))

    def _on_compare(
        self,
        buf: int,
        name: str,
        row: int,
        handle: int,
        cwd: str,
        newline: str,
        agents: list[str],
    ) -> None:
        from parley.nvim.comparison import ForkPlace, compare

        chat, place = self._chat(buf, name), ForkPlace(handle, row, newline)
        chat.buffer.folder = self._in(cwd)
        self.editor.spawn(compare(chat, place, agents, self._chosen.__setitem__))

    def _on_tools(self, cwd: str, buf: int | None = None, name: str = "") -> None:
        self._in(cwd)
        self.editor.spawn(self.servers.open(None if buf is None else self._chat(buf, name)))

    def _on_add_server(
        self, cwd: str, words: list[str], buf: int | None = None, name: str = ""
    ) -> None:
        from parley.settings.new_server import NewServer, add_server
        from parley.tools.known_servers import hint_for

        server = NewServer.of(words).settings()
        path = add_server(server, os.environ)
        self._on_setup(*self._setup, cwd)
        hint = hint_for(server)
        self.editor.message(f"added {server.name} to {path}{f'; {hint}' if hint else ''}")
        self._on_tools(cwd, buf, name)

    def _on_prompt(
        self, buf: int, name: str, row: int, handle: int, cwd: str, words: list[str]
    ) -> None:
        self._in(cwd)
        chat = self._chat(buf, name)

        async def insert() -> None:
            try:
                await self.trust.settle(self.app)
                await self.prompts.insert(chat, handle, words)
            finally:
                self.editor.tell("close", handle)

        chat.turns.insert(insert())

    def _on_image(self, buf: int, name: str, row: int, handle: int, cwd: str, path: str) -> None:
        from parley.nvim.images import insert_image

        async def insert() -> None:
            try:
                await insert_image(chat, handle, place, os.environ)
            finally:
                self.editor.tell("close", handle)

        chat, place = self._chat(buf, name), path and str(Path(cwd, path))
        chat.turns.insert(insert())

    def _on_pictures(self, buf: int, name: str, paths: list[str]) -> None:
        self.editor.spawn(self._chat(buf, name).screen.prove_pictures(paths))

    def _on_bring(
        self,
        buf: int,
        name: str,
        row: int,
        handle: int,
        cwd: str,
        question: str,
        first: bool,
        quote: dict[str, Any] | None = None,
        rewrite: int | None = None,
    ) -> None:
        from parley.nvim.lines import bring

        self._in(cwd)
        chat = self._chat(buf, name)
        chat.turns.asks_soon = chat.turns.asks_soon or bool(question)
        chat.turns.insert(bring(chat, handle, question, quote, is_first=first, rewrite=rewrite))

    def _on_rewritten(self, buf: int, name: str, row: int, rewrite: int, old: list[str]) -> None:
        from parley.nvim.rewriting import send_rewrite

        self.editor.spawn(send_rewrite(self._chat(buf, name).buffer, rewrite, row, old))

    def _on_prompts(self, cwd: str, starting: bool) -> None:
        self._in(cwd)
        self.editor.spawn(self.prompts.list(starting=starting))

    def _on_resources(self) -> None:
        self.editor.spawn(self._resource_names.resources())

    def _on_resource_values(self, base: str) -> None:
        self.editor.spawn(self._resource_names.values(base))

    def _on_switch(self, handle: int, server: str, tool: str) -> None:
        self.editor.spawn(self.servers.switch(handle, server, tool))

    def _on_restart(self, server: str) -> None:
        self.editor.spawn(self.servers.restart(server))

    def _on_sign_in(self, server: str, cwd: str) -> None:
        self._in(cwd)
        self.editor.spawn(self.servers.sign_in(server))

    def _on_sign_out(self, server: str) -> None:
        self.editor.spawn(self.servers.sign_out(server))

    def _on_login(self, account: str, cwd: str) -> None:
        self._in(cwd)
        name, _, address = account.rpartition(" ")
        if address.startswith("http://"):
            from parley.nvim.account_dialog import take_address

            take_address(self.app.accounts, name.strip(), address)
            return
        if agent := self.app.accounts.agent(account):
            self.agent_login.begin(agent)
            return
        page = self.accounts if self.app.accounts.provider(account) else self.servers
        self.editor.spawn(page.sign_in(account))

    def _on_logout(self, account: str, cwd: str) -> None:
        self._in(cwd)
        if agent := self.app.accounts.agent(account):
            self.editor.spawn(self.agent_login.sign_out(agent))
            return
        page = self.accounts if self.app.accounts.provider(account) else self.servers
        self.editor.spawn(page.sign_out(account))

    def _on_trust(self) -> None:
        self.editor.spawn(self.servers.trust())

    def _on_find(self, dir: str, words: str, cwd: str) -> None:  # noqa: A002 - the name it has in the message
        from parley.nvim.finder import offer_chats

        self.editor.spawn(offer_chats(self.editor, dir, words, self._in(cwd)))

    def _on_health(self, cwd: str) -> None:
        self._in(cwd)

        from parley.nvim.health import report

        async def show() -> None:
            self.editor.tell("healthy", await report(self.app))

        self.editor.spawn(show())
