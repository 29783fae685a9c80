"""Prompt files: a description, an agent, arguments, and a text with placeholders for them.

Knows the format, and how a question names a prompt; does not know where the files are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.instructions.markdown_files import read_markdown
from parley.late_patterns import late_pattern
from parley.tables import NO_VALUE, TableReader, rule
from parley.text import one_line

PROMPT_SUFFIXES = (".prompt.md", ".md")
"""The endings of a prompt's file; the first that fits is not part of the prompt's name."""

_LONGEST_NAME = 64
_NAME = late_pattern(r"\w[\w.-]*")
_ARGUMENT = r"[A-Za-z_][\w-]*"
_PLACEHOLDER = late_pattern(
    rf"\{{\{{[ \t]*(?P<own>{_ARGUMENT})[ \t]*\}}\}}"
    rf"|\$\{{input:(?P<input>{_ARGUMENT})(?::(?P<hint>[^}}\n]*))?\}}"
)
_COMMAND = late_pattern(r"/(?P<name>\w[^\s]*)(?:[ \t]+(?P<rest>.*))?")
_VALUE = late_pattern(rf"(?P<name>{_ARGUMENT})=(?:\"(?P<quoted>[^\"]*)\"|(?P<plain>\S*))(?:\s+|$)")


@frozen
class Placeholder:
    """An argument of a prompt file. A required argument is asked for."""

    name: str = field(metadata=rule(is_short=True))
    description: str = ""
    required: bool = True


@frozen
class PromptFile:
    """A prompt file as read."""

    name: str
    description: str = ""
    agent: str = ""
    arguments: tuple[Placeholder, ...] = ()
    body: str = ""

    def text(self, values: Mapping[str, str]) -> str:
        """The body with the arguments' values; an argument without a value becomes "".

        A placeholder inside a value stays as it is, and so does one for an unknown argument.
        """
        known = {argument.name for argument in self.arguments}

        def filled(match: re.Match[str]) -> str:
            name = match["own"] or match["input"]
            return values.get(name, "") if name in known else match[0]

        return _PLACEHOLDER.sub(filled, self.body)


@frozen
class _PromptKeys:
    """The keys of a prompt file's front matter; other programs' keys are ignored."""

    description: str = ""
    agent: str = ""
    arguments: tuple[Placeholder, ...] = ()


def prompt_name(file: str) -> str:
    """The name of the prompt in a file with this name; "" if it is not a prompt's file."""
    suffix = next((suffix for suffix in PROMPT_SUFFIXES if file.endswith(suffix)), "")
    name = file.removesuffix(suffix) if suffix else ""
    return name if len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) else ""


def read_prompt(name: str, content: bytes) -> PromptFile:
    """Read a prompt file's content. Raises ParleyError."""
    file, reader = read_markdown(content), TableReader(None)
    keys = reader.record(_PromptKeys, {str(key): value for key, value in file.keys.items()})
    if reader.flaws or keys is NO_VALUE:
        raise ParleyError(one_line(f"front matter {reader.flaws[0]}"))
    _check_names(keys.arguments)
    arguments = {argument.name: argument for argument in keys.arguments}
    for match in _PLACEHOLDER.finditer(file.body):
        if match["input"]:  # these need no declaration
            arguments.setdefault(
                match["input"], Placeholder(match["input"], (match["hint"] or "").strip())
            )
    return PromptFile(
        name,
        one_line(keys.description),
        keys.agent,
        tuple(
            replace(argument, description=one_line(argument.description))
            for argument in arguments.values()
        ),
        file.body,
    )


def _check_names(arguments: Sequence[Placeholder]) -> None:
    for argument in arguments:
        if not re.fullmatch(_ARGUMENT, argument.name):
            raise ParleyError(
                one_line(
                    f"front matter arguments: expected names such as focus, got {argument.name!r}"
                )
            )


@frozen
class SlashCommand:
    """A question's line that may name a prompt: `/name` and the text after it."""

    name: str
    rest: str = ""

    def values(self, known: Sequence[str]) -> tuple[dict[str, str], str]:
        """The arguments at the beginning of the text, written as `name=value` or `name="a value"`,
        and the text after them.
        """
        values, at = dict[str, str](), 0
        while (match := _VALUE.match(self.rest, at)) and match["name"] in known:
            quoted = match["quoted"]
            values[match["name"]] = match["plain"] if quoted is None else quoted
            at = match.end()
        return values, self.rest[at:].strip()


def slash_command(line: str) -> SlashCommand | None:
    """The command in a question's first line of text; None if the line cannot name a prompt, as
    with a space before the `/`."""
    match = _COMMAND.fullmatch(line.rstrip())
    return SlashCommand(match["name"], (match["rest"] or "").strip()) if match else None
