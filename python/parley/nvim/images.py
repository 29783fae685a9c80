"""Attaches pictures from files or the clipboard to a question.

Knows which programs read a picture from the clipboard; `storage/attachment_files` knows where
pictures are saved.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from parley.bounded_files import whole
from parley.chat.edits import put_question
from parley.errors import ParleyError, reason_of
from parley.media import PICTURE_BYTES, kind_of
from parley.nvim.chat import Chat
from parley.programs import program, working_folder
from parley.text import size_text

# Each program prints the picture's bytes, or fails if the clipboard has no picture. macOS includes
# no such program, so pngpaste must be installed.
_CLIPBOARDS = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
_SECONDS = 10.0


async def insert_image(chat: Chat, handle: int, path: str, environ: Mapping[str, str]) -> None:
    """Attach a picture to the question at a handle: a file or, without a path, the clipboard.

    Raises ParleyError.
    """
    content = await _from_file(Path(path)) if path else await _from_clipboard(environ)
    kind = kind_of(content)
    if kind is None:
        where = path or "the content of the clipboard"
        raise ParleyError(
            f"{where} is not a picture that a model can see: use PNG, JPEG, GIF, WebP or PDF"
        )
    attachment = await chat.buffer.app.attachments(chat.buffer.path).save(content, kind)
    await chat.change(handle, lambda s: [put_question(s.lines, s.transcript, s.at, attachment)])


async def _from_file(path: Path) -> bytes:
    try:
        return await asyncio.to_thread(whole, path, PICTURE_BYTES)
    except (OSError, ValueError) as error:
        raise ParleyError(f"cannot read {path}: {reason_of(error)}") from error


async def _from_clipboard(environ: Mapping[str, str]) -> bytes:
    commands = list(_commands(environ))
    for command in commands:
        if content := await _output(command, environ):
            return content
    if commands:
        raise ParleyError("the clipboard contains no picture")
    raise ParleyError(
        "no program found to read pictures from the clipboard. Install wl-clipboard, xclip "
        "or pngpaste"
    )


def _commands(environ: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The installed commands that print the clipboard's picture."""
    for variable, (name, *arguments) in _CLIPBOARDS:
        if (not variable or environ.get(variable)) and (path := program(name, environ.get("PATH"))):
            yield (path, *arguments)


async def _output(command: tuple[str, ...], environ: Mapping[str, str]) -> bytes:
    """A program's output; empty on failure. Raises ParleyError if the output is too long."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        env=dict(environ),
        cwd=working_folder(environ),
    )
    assert process.stdout is not None, "it has a pipe"
    content = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            while piece := await process.stdout.read(1_000_000):
                content += piece
                if len(content) > PICTURE_BYTES:
                    raise ParleyError(
                        f"the clipboard contains more than {size_text(PICTURE_BYTES)}"
                    )
            return bytes(content) if await process.wait() == 0 else b""
    except TimeoutError as error:
        raise ParleyError(f"{os.path.basename(command[0])} returned no picture") from error  # noqa: PTH119
    finally:
        with suppress(ProcessLookupError):
            process.kill()
