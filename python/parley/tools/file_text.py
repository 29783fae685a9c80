"""A file's bytes as text, and text as the bytes that this file would have.

Knows encodings and byte order marks; knows neither paths nor edits. Line endings stay in the text
as they are in the file.
"""

from __future__ import annotations

import codecs
from typing import Literal

from parley.errors import ParleyError
from parley.frozen import frozen

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]
"""The encodings by their Python names. A file in a UTF-16 encoding has a byte order mark."""

_MARK = "\ufeff"
_MARKS: dict[Encoding, bytes] = {
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
"""The bytes at the beginning of a file in each encoding that has a byte order mark."""


class FileTextError(ParleyError):
    """Bytes and text cannot be converted; the text says why, for the user and the model."""


class BinaryFileError(FileTextError):
    """The bytes are not text."""

    def __init__(self) -> None:
        super().__init__("the file is binary, not text")


class UnencodableError(FileTextError):
    """A character does not exist in the file's encoding."""

    def __init__(self, character: str, encoding: str) -> None:
        shown = f"U+{ord(character):04X}"
        if character.isprintable():
            shown = f"{character} ({shown})"
        super().__init__(
            f"the file's encoding, {encoding}, has no character {shown}. Use other characters, or "
            "convert the file to UTF-8 first"
        )


@frozen
class FileText:
    """A file's text, without its byte order mark, and its encoding; by default, of a new file."""

    text: str = ""
    encoding: Encoding = "utf-8"

    def encoded(self, text: str) -> bytes:
        """The bytes of the file with another text. Raises UnencodableError.

        The file's own text becomes the file's own bytes.
        """
        mark = _MARKS.get(self.encoding, b"")
        if mark and not self.text.startswith(_MARK):
            text = text.removeprefix(_MARK)
        try:
            return mark + text.encode("utf-8" if self.encoding == "utf-8-sig" else self.encoding)
        except UnicodeEncodeError as error:
            raise UnencodableError(text[error.start], _NAMES[self.encoding]) from None


_NAMES: dict[Encoding, str] = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "latin-1": "ISO 8859-1 (Latin-1)",
}


def decoded(data: bytes) -> FileText:
    """The text of a file's bytes. Raises BinaryFileError.

    As in Neovim, bytes that are not valid in the encoding of their mark, or in UTF-8, are Latin-1,
    which loses no byte.
    """
    for encoding, mark in _MARKS.items():
        if data.startswith(mark):
            return _in(encoding, data, len(mark))
    return _in("utf-8", data, 0)


def _in(encoding: Encoding, data: bytes, start: int) -> FileText:
    try:
        text = data[start:].decode("utf-8" if encoding == "utf-8-sig" else encoding)
    except UnicodeDecodeError:
        encoding, text = "latin-1", data.decode("latin-1")
    if "\0" in text:
        raise BinaryFileError
    return FileText(text, encoding)
