"""The tool read_file: a file's lines with their numbers, or a picture."""

from __future__ import annotations

import asyncio
import mimetypes

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.media import PICTURE_BYTES, TYPES, kind_of
from parley.text import size_text
from parley.tools.file_text import FileTextError, decoded
from parley.workspace.boundary import Boundary
from parley.workspace.editor_files import EditorFiles, OpenText
from parley.workspace.listing import name_of
from parley.workspace.opening import legible_path

TEXT_FILE_BYTES = 4_194_304
"""The size limit of a text file, as for the references to some lines of a file."""
LINES_SHOWN = 2_000
_MOST_TEXT = 64_000
"""The maximum number of characters in one result."""
_LONGEST_LINE = 2_000


@frozen
class FileView:
    """A file as a model sees it: a text, and perhaps a picture of this kind (`png`)."""

    text: str
    picture: bytes = b""
    kind: str = ""


async def read_file(
    boundary: Boundary, editor: EditorFiles, path: str, first_line: int = 1, last_line: int = 0
) -> FileView:
    """A file's lines from `first_line` to `last_line` (0: to the end), or its picture.

    Raises ParleyError.
    """
    place = await asyncio.to_thread(boundary.place, path)
    buffer = await editor.text(boundary.path(place))
    if buffer:
        unsaved = buffer.text.replace("\r\n", "\n")
        return FileView(_numbered(place, unsaved, first_line, last_line, _origin(buffer)))
    content = await asyncio.to_thread(_content, boundary, place)
    kind = kind_of(content) or ""
    if TYPES.get(kind, "").startswith("image/"):
        return FileView(f"{name_of(place)}: picture, {size_text(len(content))}", content, kind)
    text = text_of(content)
    if text is None:
        return FileView(
            f"{name_of(place)}: {_type_of(place, kind)}, {size_text(len(content))}: not text"
        )
    return FileView(_numbered(place, text, first_line, last_line))


async def read_lines(
    boundary: Boundary, editor: EditorFiles, path: str, first_line: int = 1, last_line: int = 0
) -> tuple[str, str]:
    """A text file's lines as they are, and as `read_file` shows them. Raises ParleyError."""
    place = await asyncio.to_thread(boundary.place, path)
    if buffer := await editor.text(boundary.path(place)):
        text, origin = buffer.text, _origin(buffer)
    else:
        content, origin = await asyncio.to_thread(_content, boundary, place), ""
        try:
            text = decoded(content).text
        except FileTextError as error:
            raise ParleyError(f"{name_of(place)}: {error}") from error
    shown = _numbered(place, text.replace("\r\n", "\n"), first_line, last_line, origin)
    lines = text.split("\n")
    end = len(lines) if last_line <= 0 else last_line
    ending = "\n" if end < len(lines) else ""
    return "\n".join(lines[first_line - 1 : end]) + ending, shown


def _origin(buffer: OpenText) -> str:
    return "from the editor's buffer" + (", with unsaved changes" if buffer.is_modified else "")


def _content(boundary: Boundary, place: str) -> bytes:
    try:
        content = boundary.content(place, PICTURE_BYTES)
    except IsADirectoryError as error:
        raise ParleyError(
            f"{legible_path(place) or 'the root'} is a folder; list_files lists it"
        ) from error
    except OSError as error:
        raise ParleyError(
            f"{legible_path(place) or 'the root'}: {error.strerror or 'cannot be read'}"
        ) from error
    if len(content) > TEXT_FILE_BYTES and not kind_of(content):
        raise ParleyError(
            f"{legible_path(place)} has {size_text(len(content))}, more than the "
            f"{size_text(TEXT_FILE_BYTES)} of the largest file that is read"
        )
    return content


def text_of(content: bytes) -> str | None:
    """The text of a file, with `\n` as line ends; None if the bytes are not text."""
    try:
        return decoded(content).text.replace("\r\n", "\n")
    except FileTextError:
        return None


def lines_of(text: str) -> list[str]:
    """The lines of a text; a line end at its end begins no further line."""
    return text.removesuffix("\n").split("\n") if text else []


def _type_of(place: str, kind: str) -> str:
    """The type of a file that is not text."""
    return kind.upper() or mimetypes.guess_type(place)[0] or "binary file"


def _numbered(place: str, text: str, first: int, last: int, origin: str = "") -> str:
    """Lines with their numbers, below a line that names the file."""
    lines, name = lines_of(text), name_of(place)
    origin = f", {origin}" if origin else ""
    if not lines:
        return f"{name} is empty{origin}"
    first = max(first, 1)
    last = min(last, len(lines)) if last > 0 else len(lines)
    if first > len(lines):
        raise ParleyError(f"{name} has only {len(lines)} lines")
    if last < first:
        raise ParleyError("last_line is before first_line")
    rows, room = list[str](), _MOST_TEXT
    for number in range(first, min(last, first + LINES_SHOWN - 1) + 1):
        row = f"{number}\t{_cut(lines[number - 1])}"
        room -= len(row)
        if room < 0 and rows:
            break
        rows.append(row)
    end = first + len(rows) - 1
    part = "" if (first, end) == (1, len(lines)) else f"lines {first} to {end} of "
    head = f"{name}, {part}{len(lines)} {'line' if len(lines) == 1 else 'lines'}{origin}"
    rest = [f"(continue with first_line={end + 1})"] if end < last else []
    return "\n".join([head, *rows, *rest])


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE} more characters in this line)"
