"""Prompts that servers offer: their names, their arguments, and the resulting text.

The user chooses a prompt; its text is put into a question, so that the user can read it before
asking. Works on messages as JSON; does not know any SDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from parley.frozen import frozen
from parley.tools.results import cut, result_text


@frozen
class PromptArgument:
    """An argument that a prompt takes."""

    name: str
    description: str = ""
    required: bool = False


@frozen
class Prompt:
    """One prompt, as defined by its server."""

    server: str
    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def label(self) -> str:
        """The label for the user: the title, or else the name."""
        return self.title or self.name


def prompt_from_mcp(definition: Mapping[str, Any], server: str) -> Prompt:
    """The value of a definition in `prompts/list`."""
    arguments = definition.get("arguments") or ()
    return Prompt(
        server,
        definition["name"],
        definition.get("title") or "",
        definition.get("description") or "",
        tuple(
            PromptArgument(
                argument["name"], argument.get("description") or "", bool(argument.get("required"))
            )
            for argument in arguments
        ),
    )


def prompt_text(messages: Iterable[Mapping[str, Any]], max_bytes: int) -> str:
    """A `prompts/get` result's messages as the text of one question, escaped and limited in size.

    Quotes messages in the model's name.
    """
    parts = []
    for message in messages:
        text = result_text([message.get("content")], max_bytes=max_bytes).strip("\n")
        parts.append(_quoted(text) if message.get("role") == "assistant" else text)
    return cut("\n\n".join(parts), max_bytes)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
