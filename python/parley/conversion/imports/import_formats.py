"""The table of other programs' chat formats, and how to recognize and read each format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from parley.chat.grammar import MARKERS, is_escaped
from parley.chat.reader import parse, split_lines
from parley.conversion.imports import chat_exports, markdown_chats, message_arrays, session_logs
from parley.conversion.imports.imported_chat import UNNAMED, ImportedChat
from parley.conversion.imports.message_arrays import ROLES
from parley.frozen import frozen


@frozen
class Program:
    """How to recognize a program's JSON that is not messages, and convert it to messages."""

    fits: Callable[[Any], bool]
    records: Callable[[Any], Iterator[message_arrays.Record]]
    provider: str = UNNAMED
    """The provider to record for thinking."""
    roles: str = "openai"


@frozen
class ImportFormat:
    """Another program's format: its title, and its reader if `messages` does not read it."""

    title: str
    markdown: Callable[[str], ImportedChat] | None = None
    program: Program | None = None


IMPORT_FORMATS = {
    "gp": ImportFormat("a gp.nvim chat", markdown_chats.gp),
    "parley.nvim": ImportFormat("a parley.nvim chat", markdown_chats.parley_nvim),
    "codecompanion": ImportFormat("a chat that CodeCompanion saved", markdown_chats.codecompanion),
    "openai": ImportFormat("Chat Completions messages, as JSON or JSON lines"),
    "anthropic": ImportFormat("Messages API messages, as JSON or JSON lines"),
    "chatgpt": ImportFormat(
        "a ChatGPT export, conversations.json",
        program=Program(chat_exports.is_chatgpt, chat_exports.chatgpt),
    ),
    "claude-ai": ImportFormat(
        "a Claude.ai export, conversations.json",
        program=Program(chat_exports.is_claude_ai, chat_exports.claude_ai),
    ),
    "claude-code": ImportFormat(
        "a Claude Code session, as JSON lines",
        program=Program(session_logs.is_claude_code, session_logs.claude_code, "anthropic"),
    ),
    "llm": ImportFormat(
        "the output of llm logs --json", program=Program(session_logs.is_llm, session_logs.llm)
    ),
}
"""The formats by their names in the shell."""


Folder: TypeAlias = Callable[[int, int], str]
"""Returns the folder for a chat's pictures, given the chat's number and the number of chats; "" if
there is none."""


def no_folder(number: int, count: int) -> str:
    """Provide no folder for pictures."""
    return ""


def imported_chats(
    text: str, name: str | None = None, folder: Folder = no_folder
) -> Sequence[ImportedChat]:
    """The chats in a file, in the named format or a recognized format.

    Raises ValueError with the location of unreadable content.
    """
    entry = IMPORT_FORMATS.get(name or _recognized(text))
    if entry and entry.markdown and not (name in ROLES and _is_json(text)):
        return [entry.markdown(text)]
    value = message_arrays.json_value(text)
    program = entry.program if entry else _program(value)
    if program and not program.fits(value):
        raise ValueError(f"this is not {entry.title if entry else name}")
    records = list(program.records(value)) if program else message_arrays.records(value)
    if not records:
        raise ValueError("it contains no messages")
    return [
        _record(
            record, name, program, folder(number, len(records)), number if len(records) > 1 else 0
        )
        for number, record in enumerate(records, 1)
    ]


def _program(value: Any) -> Program | None:
    """The program that this JSON seems to come from; None if unknown."""
    programs = (entry.program for entry in IMPORT_FORMATS.values())
    return next((program for program in programs if program and program.fits(value)), None)


def _record(
    record: message_arrays.Record,
    name: str | None,
    program: Program | None,
    folder: str,
    number: int,
) -> ImportedChat:
    """A record's chat; errors contain its `number`, which is 0 if there is only one record."""
    try:
        if program:
            return message_arrays.chat(record, program.roles, folder, program.provider)
        return message_arrays.chat(record, name or message_arrays.kind(record), folder)
    except ValueError as error:
        raise ValueError(f"chat {number}: {error}" if number else str(error)) from error


def _recognized(text: str) -> str:
    """The name of the recognized Markdown format; "" for JSON. Raises ValueError."""
    lines, exchanges = split_lines(text), parse(text).exchanges
    has_calls = any(answer.calls for exchange in exchanges for answer in exchange.answers)
    if has_calls or any(map(is_escaped, lines)):
        raise ValueError("this is already a Parley chat")
    for name, fits in _SIGNS:
        if fits(lines):
            return name
    if _is_json(text):
        return ""
    raise ValueError(f"it is not JSON, and no line begins with {MARKERS['question']} or ## Me")


_SIGNS = (
    ("parley.nvim", markdown_chats.has_tools),
    ("gp", markdown_chats.has_turns),
    ("codecompanion", markdown_chats.has_headings),
)
"""The tests that recognize Markdown formats, in this order. JSON lines never match."""


def _is_json(text: str) -> bool:
    return text.removeprefix("\ufeff").lstrip(" \t\r\n")[:1] in ("{", "[")
