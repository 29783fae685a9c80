"""Small pictures, and chats with attached pictures."""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path

from parley.chat.attachments import attachment_of, link
from parley.chat.transcript import Attachment
from parley.media import kind_of


def png(seed: int = 0, more: int = 0) -> bytes:
    """A picture of one pixel that differs for each number; `more` adds this many bytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    pixel = zlib.compress(b"\0" + seed.to_bytes(3, "big"))
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    comment = chunk(b"tEXt", b"x" * more) if more else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + comment
        + chunk(b"IDAT", pixel)
        + chunk(b"IEND", b"")
    )


PDF = b"%PDF-1.4\n%%EOF\n"


def beside(chat: Path, content: bytes, suffix: str = "") -> Attachment:
    """A chat's attachment, written next to the chat by hand."""
    attachment = attachment_of(content, f"{chat.stem}.assets", suffix or kind_of(content) or "txt")
    path = chat.parent / attachment.path
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return attachment


def question(*attachments: Attachment, text: str = "What is this?") -> str:
    """A chat with one question about these pictures."""
    return "\n\n".join([f"💬: {text}", *map(link, attachments)]) + "\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
