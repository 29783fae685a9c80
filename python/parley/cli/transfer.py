"""`parley export` and `parley import`: chats in other forms, and from other programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.cli.exits import COMPLETE, USAGE
from parley.cli.terminal import complain, read, remark, say
from parley.errors import ParleyError

_Writer: TypeAlias = Callable[[str, Transcript], Iterator[str]]
HTML = "html"


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a chat: what it is, what writes it, whether there may be several in one output."""

    title: str
    write: _Writer
    is_line: bool = False


def export(arguments: argparse.Namespace) -> int:
    """Print a chat in another form: for readers, or for programs."""
    form = EXPORTS[arguments.to]
    if len(arguments.files) > 1 and not form.is_line:
        complain(f"{arguments.to} is a page of one chat: name one file")
        return USAGE
    for path in arguments.files:
        try:
            transcript = parse(read(path))
        except ParleyError as error:  # the others are printed all the same
            complain(str(error))
            continue
        for piece in form.write(path, transcript):
            say(piece, end="")
    return COMPLETE


def _html(path: str, transcript: Transcript) -> Iterator[str]:
    from parley.export.html import html_page
    from parley.storage.attachments import ChatAttachments

    pictures = ChatAttachments("" if path == "-" else path).pictures(transcript)
    yield html_page(transcript, Path(path).stem, pictures)


def _markdown(path: str, transcript: Transcript) -> Iterator[str]:
    from parley.export.markdown import markdown_page

    yield markdown_page(transcript, Path(path).stem)


def _line(option: str, path: str, transcript: Transcript) -> Iterator[str]:
    from parley.export.messages import lacks, message_line

    for notice in lacks(transcript):
        remark(f"{path}: {notice}")
    if line := message_line(transcript, option):
        yield line + "\n"
    else:
        remark(f"{path} is left out: nothing was asked in it")


EXPORTS = {
    HTML: Form("one page that needs nothing else", _html),
    "md": Form("plain Markdown", _markdown),
    "jsonl-openai": Form("messages of Chat Completions", partial(_line, "openai"), is_line=True),
    "jsonl-anthropic": Form("messages of the Messages API", partial(_line, "anthropic"), is_line=True),
}
"""The forms that `parley export --to` may name."""
