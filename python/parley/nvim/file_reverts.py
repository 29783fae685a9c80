"""The files that a chat's calls changed: their page, and reverts in the editor.

Knows the chat whose page is open; `changes_page` knows what the page looks like.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.chat.transcript import Transcript
from parley.display.file_changes_text import shown_path
from parley.display.summary import legible_line, page_line
from parley.errors import GoneError, ParleyError
from parley.nvim.changes_page import ChangedTexts, changes_page, quickfix_items
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.document import BufferDocument
from parley.nvim.editor import Editor
from parley.policy.file_changes import CallPlace, FileChanges, by_file, of_exchange, places
from parley.policy.reverts import ChangeHistory
from parley.runtime.app import App
from parley.text import counted
from parley.tools.file_text import FileTextError, decoded

if TYPE_CHECKING:
    from parley.runtime.reverting import Reverter, RevertOutcome

_MOST_NAMES = 5
"""The maximum number of files that a message names."""
_MOST_TABS = 3
"""The most three-way diffs that open at once."""


class FileReverts:
    """An editor's only page with changed files."""

    def __init__(self, editor: Editor, app: Callable[[], App]) -> None:
        self._editor = editor
        self._app = app
        self._path = ""
        """The path of the chat whose page is open."""
        self._transcript = Transcript()
        self._buffer: ChatBuffer | None = None
        self._reverting = asyncio.Lock()

    async def open(self, buffer: ChatBuffer) -> None:
        """Show the page for a chat."""
        self._buffer, self._path = buffer, buffer.path
        await self._draw(opening=True)

    async def _draw(self, *, opening: bool = False) -> None:
        if self._buffer:
            try:
                self._transcript = await self._buffer.look()
            except GoneError:  # the page of a closed chat still shows and reverts its changes
                self._buffer = None
        reverter = self._app().reverter(self._path)
        histories = await reverter.histories()
        where = _places(reverter, self._transcript, histories)
        files = [await _texts(reverter, file) for file in by_file(histories)]
        page = changes_page(Path(self._path).name, files, where)
        self._editor.tell("changes_page", page, opening)

    async def show_diff(self, number: int) -> None:
        """Show a file before and after its changes. Raises ParleyError."""
        reverter = self._app().reverter(self._path)
        file = _file(await reverter.histories(), number)
        if not file.standing:
            raise ParleyError(f"the changes to {_name(file)} are reverted: u repeats them")
        before, after = await reverter.texts(file)
        diff = {"path": _name(file), "after": after or ""}
        self._editor.tell("changes_diff", diff if before is None else {**diff, "before": before})

    async def list_hunks(self) -> None:
        """Put all hunks into the quickfix list. Raises ParleyError."""
        reverter = self._app().reverter(self._path)
        files = [await _texts(reverter, file) for file in by_file(await reverter.histories())]
        if not (items := quickfix_items(files)):
            raise ParleyError("there are no hunks to list, because all changes are reverted")
        title = f"Changes by {page_line(Path(self._path).name)}"
        self._editor.tell("changes_hunks", items, title)

    async def revert_file(self, number: int) -> None:
        """Revert a file's changes or, if all are reverted, repeat them. Raises ParleyError."""
        app = self._app()
        reverter = app.reverter(self._path)
        async with self._reverting:
            file = _file(await reverter.histories(), number)
            await self._revert(app, self._path, reverter, file.standing or file.reverted)
        await self._draw()

    async def revert_exchange(
        self, buffer: ChatBuffer, handle: int, row: int, *, repeats: bool
    ) -> None:
        """Revert the changes of the exchange at a handle in this row, or repeat reverted ones.
        Raises ParleyError.
        """

        async def work(document: BufferDocument) -> None:
            shot = await document.read()
            reverter = buffer.app.reverter(buffer.path)
            async with self._reverting:
                histories = await reverter.histories()
                where = _places(reverter, shot.transcript, histories)
                number = _answered(shot.transcript, shot.at) + 1
                chosen = of_exchange(histories, where, number)
                fitting = [each for each in chosen if each.is_reverted == repeats]
                if not fitting:
                    raise ParleyError(_nothing(chosen))
                await self._revert(buffer.app, buffer.path, reverter, fitting)

        await buffer.at(handle, row, work)
        if self._path == buffer.path:
            await self._draw()

    async def _revert(
        self, app: App, path: str, reverter: Reverter, histories: Sequence[ChangeHistory]
    ) -> None:
        """Revert or repeat changes while no turn runs in the chat, and show the outcome."""
        with app.ledger(path).lease():
            outcome = await reverter.revert(histories)
        self._editor.tell("reload")
        for conflict in outcome.conflicts[:_MOST_TABS]:
            try:
                sides = [_text(each) for each in (conflict.left, conflict.restored)]
            except FileTextError:  # the message names the file
                continue
            self._editor.tell("three_way", str(conflict.path), *sides)
        word = "repeated" if histories[0].is_reverted else "reverted"
        text = _report(outcome, histories[0].change.root, word)
        self._editor.message(text, _level(outcome))


def _answered(transcript: Transcript, at: int) -> int:
    """The exchange with this index; the one before, if it is only the empty question at the end."""
    if not 0 < at == len(transcript.exchanges) - 1:
        return at
    last = transcript.exchanges[at]
    return at if last.answers or (last.question and last.question.parts) else at - 1


def _places(
    reverter: Reverter, transcript: Transcript, histories: Sequence[ChangeHistory]
) -> Mapping[int, CallPlace]:
    return places(transcript, [each.change for each in histories], reverter.changes.calls())


async def _texts(reverter: Reverter, file: FileChanges) -> ChangedTexts:
    """A file's texts; its present text as far as it is known."""
    try:
        before, after = await reverter.texts(file)
        return ChangedTexts(file, before, after, await reverter.text_now(file))
    except ParleyError as error:
        return ChangedTexts(file, problem=str(error))


def _file(histories: Sequence[ChangeHistory], number: int) -> FileChanges:
    file = next((each for each in by_file(histories) if each.number == number), None)
    if file is None:
        raise ParleyError("this page is out of date. Run :ParleyChanges again in the chat")
    return file


def _nothing(chosen: Sequence[ChangeHistory]) -> str:
    if not chosen:
        return "no call in this exchange changed a file"
    if chosen[0].is_reverted:
        return "already reverted. :ParleyRevert! repeats the changes"
    return "nothing to repeat. :ParleyRevert reverts the changes"


def _report(outcome: RevertOutcome, root: Path, word: str) -> str:
    parts = [f"{word} {_names(outcome.reverted, root)}"] if outcome.reverted else []
    if outcome.conflicts:
        paths = [conflict.path for conflict in outcome.conflicts]
        parts.append(f"not {word}, because of later changes: {_names(paths, root)}")
    texts = map(legible_line, (*outcome.remarks, *outcome.problems))
    return "; ".join([*parts, *texts]) or f"nothing to do: no file was {word}"


def _names(paths: Sequence[Path], root: Path) -> str:
    names = [
        path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        for path in paths[:_MOST_NAMES]
    ]
    more = len(paths) - len(names)
    rest = f" and {counted(more, 'more file')}" if more else ""
    return ", ".join(map(legible_line, names)) + rest


def _level(outcome: RevertOutcome) -> Any:
    return "warn" if outcome.conflicts or outcome.problems else "info"


def _name(file: FileChanges) -> str:
    return page_line(shown_path(file))


def _text(content: bytes | None) -> str:
    """A side of a three-way diff; a file that is not there is empty. Raises FileTextError."""
    return "" if content is None else decoded(content).text
