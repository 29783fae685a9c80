"""The notice that says in the file why an answer is not complete."""

from __future__ import annotations

from parley.chat import edits
from parley.chat.rounds import Notice, NoticeKind
from parley.engine.ports import Document


async def write_notice(document: Document, kind: NoticeKind, reason: str) -> None:
    """Say in the file why the answer in hand is not complete."""
    notice = Notice(kind, reason)
    await document.change(lambda s: [edits.append_notice(s.lines, s.answer, notice)])
