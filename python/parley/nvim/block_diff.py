"""Shows the difference between a code block of an answer and the file that it names.

Knows where a block's path may lead; `chat.code_blocks` knows which paths a block names, and
`tools.block_places` where the block belongs in the file. Lua shows the diff, and writes nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from parley import engine
from parley.chat.code_blocks import CodeBlock, block_at, named_paths
from parley.chat.transcript import Text
from parley.errors import ParleyError
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.document import BufferDocument
from parley.text import visible
from parley.tools.block_places import block_place
from parley.tools.text_edits import EditError
from parley.workspace.boundary import Boundary
from parley.workspace.opening import BoundaryError
from parley.workspace.root import find_root

_MOST_BYTES = 2_000_000
"""The largest file to compare: the editor reads the file while the user waits."""


async def show_block(buffer: ChatBuffer, handle: int, row: int, *, is_whole: bool) -> None:
    """Show the code block at a handle in this row as a diff. Raises ParleyError.

    With `is_whole`, the block is the file's whole new text.
    """

    async def work(document: BufferDocument) -> None:
        block = _block(await document.look())
        path = await asyncio.to_thread(file_of, block, buffer)
        file = await buffer.editor.ask("apply_file", handle, str(path or ""), _MOST_BYTES)
        if problem := file.get("problem"):
            raise ParleyError(problem)
        name = visible(file["name"])
        try:
            place = await asyncio.to_thread(
                block_place, file["lines"], block.lines, is_whole=is_whole
            )
        except EditError as error:
            hint = "" if is_whole else ". :ParleyApply! compares the whole file"
            raise ParleyError(f"{name}: {error}{hint}") from None
        replacement = {"start": place.start, "end": place.end, "lines": place.lines}
        title = "code block" if is_whole else f"block, {place.title}"
        await buffer.editor.ask("apply_show", handle, file["buf"], file["tick"], replacement, title)

    await buffer.at(handle, row, work)


def _block(shot: engine.Snapshot) -> CodeBlock:
    """The code block of an answer at the snapshot's anchor. Raises ParleyError."""
    answers = shot.exchange.answers
    texts = (s.span for a in answers for s in a.segments if isinstance(s, Text))
    for span in texts:
        if span.start <= shot.anchor < span.end:
            block = block_at(shot.lines[span.start : span.end], shot.anchor - span.start)
            if block:
                return block
    raise ParleyError("the cursor is not on a code block in an answer")


def file_of(block: CodeBlock, buffer: ChatBuffer) -> Path | None:
    """The file that a block names, which need not exist; None if it names none.

    A path is relative to the working directory, or else to the workspace's root. Raises
    BoundaryError if the path leads out of both.
    """
    app, folder = buffer.app, buffer.folder
    root = find_root(True, app.settings.workspace.root, folder, app.environ).path
    paths = named_paths(block)
    here = Boundary(root if root and Boundary(folder).root.is_relative_to(root) else folder)
    files = [_file(here, str(folder / path)) for path in paths]
    if root is not None:
        there = Boundary(root)
        for path in paths:
            with suppress(BoundaryError):
                files.append(_file(there, path))
    files = [file for file in files if not file.is_dir()]
    return next((file for file in files if file.is_file()), files[0] if files else None)


def _file(boundary: Boundary, path: str) -> Path:
    return boundary.path(boundary.place_to_write(path))
