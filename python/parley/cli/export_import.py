"""`parley export` and `parley import`: print chats in other forms, and import foreign chats."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.cli.exits import COMPLETE, USAGE
from parley.cli.terminal import PIPE, chat_path, complain, file_name, read, remark, say
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.storage.forks import write_new

if TYPE_CHECKING:
    from parley.conversion import ImportedChat

_Writer: TypeAlias = Callable[[str, Transcript], Iterator[str]]
HTML = "html"


@frozen
class Form:
    """A form of a chat: its title, its writer, and whether one output can contain several chats."""

    title: str
    write: _Writer
    is_line: bool = False


def export(arguments: argparse.Namespace) -> int:
    """Print a chat in another form, for readers or programs."""
    form = EXPORTS[arguments.to]
    if len(arguments.files) > 1 and not form.is_line:
        complain(f"--to {arguments.to} prints a single chat: give one file")
        return USAGE
    for path in arguments.files:
        try:
            transcript = parse(read(path))
        except ParleyError as error:  # still print the others
            complain(str(error))
            continue
        for piece in form.write(path, transcript):
            say(piece, end="")
    return COMPLETE


def import_chats(arguments: argparse.Namespace) -> int:
    """Make a chat from another program's chat, or from a provider's API messages."""
    from parley.conversion import imported_chats

    def folder(number: int, count: int) -> str:
        target = _target(arguments, number, count)
        return f"{target.stem}.assets" if target else ""

    source = file_name(arguments.file)
    try:
        made = imported_chats(read(arguments.file), arguments.source, folder)
    except ValueError as error:
        raise ParleyError(f"{source}: {error}") from error
    for number, chat in enumerate(made, 1):
        path = _target(arguments, number, len(made))
        if path is None:
            say(chat.text, end="")
        else:
            _write(path, chat)
        for loss in chat.losses:
            remark(f"{path or source}: not carried over: {loss}")
    return COMPLETE


def _write(path: Path, chat: ImportedChat) -> None:
    """Write a new chat, and its pictures next to it. Raises ParleyError."""
    if not write_new(path, chat.text.encode()):
        raise ParleyError(f"{path} already exists: choose another file")
    if chat.pictures:
        from parley.media import kind_of
        from parley.storage.attachment_files import ChatAttachments

        for content in chat.pictures:
            ChatAttachments(str(path)).put(content, kind_of(content) or "")


def _target(arguments: argparse.Namespace, number: int, count: int) -> Path | None:
    """The file to write a chat to; None for standard output. Raises ParleyError for several chats
    in one file.
    """
    target = Path(arguments.to) if arguments.to else None
    if target and _is_folder(target):
        stem = "chat" if arguments.file == PIPE else Path(arguments.file).stem
        return target / (f"{stem}-{number:0{len(str(count))}}.md" if count > 1 else f"{stem}.md")
    if count != 1:
        raise ParleyError(
            f"{file_name(arguments.file)} contains {count} chats: --to FOLDER writes a file "
            "for "
            "each"
        )
    return target


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # the name is too long
        return False


def _html(path: str, transcript: Transcript) -> Iterator[str]:
    from parley.conversion import html_page
    from parley.storage.attachment_files import ChatAttachments

    pictures = ChatAttachments(chat_path(path)).pictures(transcript)
    yield html_page(transcript, Path(path).stem, pictures)


def _markdown(path: str, transcript: Transcript) -> Iterator[str]:
    from parley.conversion import markdown_page

    yield markdown_page(transcript, Path(path).stem)


def _line(option: str, path: str, transcript: Transcript) -> Iterator[str]:
    from parley.conversion import message_line, message_problems

    for notice in message_problems(transcript):
        remark(f"{file_name(path)}: {notice}")
    if line := message_line(transcript, option):
        yield line + "\n"
    else:
        remark(f"{file_name(path)} is left out because it has no question")


EXPORTS = {
    HTML: Form("one self-contained page", _html),
    "md": Form("plain Markdown", _markdown),
    "jsonl-openai": Form("Chat Completions messages", partial(_line, "openai"), is_line=True),
    "jsonl-anthropic": Form("Messages API messages", partial(_line, "anthropic"), is_line=True),
}
"""The forms for `parley export --to`."""
