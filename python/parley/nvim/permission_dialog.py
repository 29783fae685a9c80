"""Lets the user keep a yes beyond one call, and shows the page that lists and removes permissions.

A permission only widens a yes that the ledger has for the call under the cursor. Knows the dialog
and the page; `policy.permissions` knows what a permission covers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from parley import engine
from parley.chat.transcript import Proposal
from parley.display.summary import legible_line
from parley.errors import ParleyError
from parley.nvim.chat import UNSAVED, Chat
from parley.nvim.chat_ports import chat_ports
from parley.nvim.dialogs import Dialogs
from parley.nvim.document import BufferDocument
from parley.nvim.editor import Editor
from parley.policy.choice import RUN_BY_OTHERS
from parley.policy.permissions import Offer, Permission, listing, offers
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.tools.catalogue import Tool

_NO = "No"
_KEYS = "x or d: remove the permission under the cursor  q: close"
_NONE = "No permissions. To give one, use :ParleyAllow on a call that you have approved."
_LONGEST_ARGUMENTS = 60


class PermissionDialog:
    """The dialog, and an editor's only page with permissions."""

    def __init__(self, editor: Editor, dialogs: Dialogs, app: Callable[[], App]) -> None:
        self._editor = editor
        self._dialogs = dialogs
        self._app = app

    def open(self, chat: Chat, handle: int, row: int) -> None:
        """Offer permissions for the call at a handle in this row; without a call, show the page."""

        async def work(document: BufferDocument) -> None:
            shot = await document.read()
            answers = shot.exchange.answers if shot.transcript.exchanges else ()
            calls = (p for answer in answers for p in answer.calls)
            call = next((p for p in calls if shot.anchor in _rows(p)), None)
            if call is None:
                self.show()
            elif call.ran_by:
                raise ParleyError(RUN_BY_OTHERS.format(call.ran_by))
            else:
                await self._offer(chat, document, call)

        self._editor.spawn(chat.buffer.at(handle, row, work))

    def show(self, *, opening: bool = True) -> None:
        """Show the page; unless `opening`, only if it is open."""
        permissions = [permission for permission, _ in self._app().permissions()]
        lines = permissions_page(permissions)
        first = len(lines) - len(permissions)
        marks = [
            {"row": row, "number": permission.number}
            for row, permission in enumerate(permissions, first)
        ]
        self._editor.tell("permissions_page", lines, marks, opening)

    def remove(self, number: int) -> None:
        """Remove a permission from the ledger and from the page."""
        self._app().disallow(number)
        self.show(opening=False)

    async def _offer(self, chat: Chat, document: BufferDocument, call: Proposal) -> None:
        """Ask which permission to give. Raises ParleyError if none can be given."""
        buffer = chat.buffer
        if not buffer.name or not Path(buffer.path).is_file():  # noqa: ASYNC240 - one look at one file
            raise ParleyError(UNSAVED)
        ports = chat_ports(buffer, chat.screen, document, Callbacks())
        observation = await engine.observe(ports, buffer.resolve)
        tool = observation.catalogue.get(call.call.name)
        if tool is None:
            name = legible_line(call.call.name)
            raise ParleyError(f"{name} is not offered now, so you cannot allow it")
        _check(observation, call, tool)
        root = buffer.app.project(lambda: buffer.folder)
        chat_path = buffer.app.ledger(buffer.path).chat
        choices = offers(tool, call.call.arguments, chat_path, root)
        name = legible_line(f"{tool.server}/{tool.name}")
        if not choices:
            raise ParleyError(f"Parley always asks about {name}")
        titles = [_NO, *map(_title, choices)]
        number = await self._dialogs.select(f"Run {name} without asking from now on?", titles)
        if not number:
            return
        given = buffer.app.allow(choices[number - 1].permission, tool)
        more = ". :ParleyRespond continues the answer" if observation.undecided() else ""
        self._editor.message(f"permission {legible_line(listing(given))}{more}")
        self.show(opening=False)


def permissions_page(permissions: Iterable[Permission]) -> list[str]:
    """The page's lines; the last lines are the permissions."""
    lines = [legible_line(listing(permission)) for permission in permissions]
    return ["# Permissions", *([_KEYS, ""] if lines else ["", _NONE]), *lines]


def _rows(call: Proposal) -> range:
    """The rows of a call and its result."""
    return range(call.span.start, (call.result or call).span.end)


def _check(observation: engine.Observation, call: Proposal, tool: Tool) -> None:
    """Raises ParleyError unless the user, or a rule of the user, approved this call as it is."""
    pattern = observation.settings.rules.ask_pattern(tool, call.call.arguments)
    if pattern:
        raise ParleyError(f"approval.ask has {pattern}, so Parley always asks about this call")
    if not observation.situation.approvals.was_approved(call, tool):
        raise ParleyError(
            "approve this call first, with its tool's current definition. :ParleyAllow only extends "
            "an approval that you gave here"
        )


def _title(offer: Offer) -> str:
    """An offer, with its folder and arguments."""
    permission = offer.permission
    values = legible_line(permission.arguments)
    shown = values if len(values) <= _LONGEST_ARGUMENTS else f"{values[:_LONGEST_ARGUMENTS]}…"
    facts = [
        *([shown] if shown else []),
        *([legible_line(permission.root)] * bool(permission.root)),
    ]
    return f"{offer.title} ({' in '.join(facts)})" if facts else offer.title
