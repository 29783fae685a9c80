"""Refusals of pictures: bytes that do not match their type, too many pictures, or a wrong place."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Part = Mapping[str, Any]

_BEGINNINGS = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
    "application/pdf": b"%PDF",
}
_DATA_URL = re.compile(r"data:([a-z]+/[a-z]+);base64,(.*)", re.DOTALL)
_MOST_OF_ANTHROPIC = 5_242_880


def anthropic_pictures(place: str, block: Part, *, failed: bool = False) -> Iterator[str]:
    """Refusals of a block as an image or a document; `failed`: in a failed result."""
    kind = block.get("type")
    if failed and kind != "text":
        yield f"{place}: all content must be type 'text' if 'is_error' is true"
    if kind in ("image", "document"):
        source = block["source"]
        data = str(source.get("data", ""))
        if source.get("type") != "base64" or not _is_sound(str(source.get("media_type")), data):
            yield "Could not process image" if kind == "image" else "Could not process PDF"
        if kind == "image" and len(data) > _MOST_OF_ANTHROPIC:
            where, most = f"{place}.{kind}.source.base64", _MOST_OF_ANTHROPIC
            yield f"{where}: image exceeds 5 MB maximum: {len(data)} bytes > {most} bytes"


def openai_pictures(place: str, urls: Iterable[str]) -> Iterator[str]:
    """Refusals of the pictures and files with these URLs."""
    for url in urls:
        match = _DATA_URL.fullmatch(url)
        if not match or not _is_sound(match[1], match[2]):
            yield f"The image data you provided does not represent a valid image. - '{place}'"


def _is_sound(media_type: str, data: str) -> bool:
    try:
        content = b64decode(data, validate=True)
    except (Error, ValueError):
        return False
    return media_type in _BEGINNINGS and content.startswith(_BEGINNINGS[media_type])
