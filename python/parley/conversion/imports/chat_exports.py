"""Converts `conversations.json` files from ChatGPT and Claude.ai to messages.

- ChatGPT: each conversation is a tree in `mapping`; `current_node` is the leaf that is shown. A
  message has an `author`, a `content` with a `content_type`, and a `recipient`, which is the tool's
  name for a call (mitkury/chatgpt-export-parser, docs/chatgpt-data-export-format.md, and exports in
  public repositories, 2026-11-24).
- Claude.ai: `chat_messages` have a `sender`, and blocks in `content`, in which tool calls and their
  results are in the same message; `attachments` has files' texts
  (socketteer/Claude-Conversation-Exporter, and exports in public repositories, 2026-11-24).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.chat.grammar import fit
from parley.chat.references import ReferenceText, expansion
from parley.chat.transcript import without_blank_edges
from parley.conversion.imports.message_arrays import Message, Record, mapping, string

_TOOL_TEXTS = ("text", "result")
_UNSAID = ("reasoning_recap", "user_editable_context", "model_editable_context")
_INSTRUCTIONS = "custom instructions and memories"
_BRANCHES = "other versions of its messages"


def is_chatgpt(value: Any) -> bool:
    """Whether this is a ChatGPT export, or one conversation from it."""
    return _all_have(value, "mapping", Mapping)


def is_claude_ai(value: Any) -> bool:
    """Whether this is a Claude.ai export, or one conversation from it."""
    return _all_have(value, "chat_messages", list)


def chatgpt(value: Any) -> Iterator[Record]:
    """The conversations in a ChatGPT export, except empty ones."""
    for root in _objects(value):
        nodes = mapping(root, "mapping")
        path = list(_path(root, nodes))
        losses = dict[str, None]()
        shown = set(map(id, path))
        if any(
            _says(message) and id(message) not in shown for message in map(_message, nodes.values())
        ):
            losses[_BRANCHES] = None
        messages = list(_chatgpt(path, losses))
        if any(message["role"] != "system" for message in messages):
            models = [
                model for m in path if (model := string(mapping(m, "metadata"), "model_slug"))
            ]
            yield Record(messages, _head(root.get("title"), models), tuple(losses))


def claude_ai(value: Any) -> Iterator[Record]:
    """The conversations in a Claude.ai export, except empty ones."""
    for root in _objects(value):
        said = root.get("chat_messages")
        messages = (
            [m for each in said if isinstance(each, Mapping) for m in _claude_ai(each)]
            if said
            else []
        )
        if messages:
            yield Record(messages, _head(root.get("name"), [string(root, "model")]))


def _all_have(value: Any, key: str, kind: type) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        isinstance(item, Mapping) and isinstance(item.get(key), kind) for item in items
    )


def _objects(value: Any) -> Sequence[Message]:
    return value if isinstance(value, list) else [value]


def _head(title: Any, models: Sequence[str]) -> Message:
    head = {"title": title} if isinstance(title, str) else {}
    return head | ({"model": models[-1]} if models and models[-1] else {})


# --- ChatGPT --------------------------------------------------------------------------------------


def _message(node: Any) -> Message:
    return mapping(node, "message") if isinstance(node, Mapping) else {}


def _says(message: Message) -> bool:
    return string(mapping(message, "author"), "role") in ("user", "assistant") and not _is_hidden(
        message
    )


def _is_hidden(message: Message) -> bool:
    return mapping(message, "metadata").get("is_visually_hidden_from_conversation") is True


def _path(root: Message, nodes: Message) -> Iterator[Message]:
    """The messages from the first message to the current message, or else to the file's last
    message.
    """
    at: Any = root.get("current_node")
    if not isinstance(at, str) or at not in nodes:
        at = list(nodes)[-1] if nodes else None
    path = dict[str, Message]()
    while isinstance(at, str) and at in nodes and at not in path:
        path[at] = _message(nodes[at])
        at = nodes[at].get("parent") if isinstance(nodes[at], Mapping) else None
    return (message for message in reversed(path.values()) if message)


def _chatgpt(path: Sequence[Message], losses: dict[str, None]) -> Iterator[Message]:
    waiting = Counter[str]()
    for message in path:
        role, content = string(mapping(message, "author"), "role"), mapping(message, "content")
        kind = string(content, "content_type")
        if kind in _UNSAID:
            if kind != "reasoning_recap":
                losses[_INSTRUCTIONS] = None
        elif role == "tool":
            name = string(mapping(message, "author"), "name")
            if not waiting[name]:
                losses["tool results without a matching call"] = None
                continue
            waiting[name] -= 1
            yield {"role": "tool", "name": name, "content": _parts(content)}
        elif _is_hidden(message) or role not in ("user", "assistant", "system"):
            continue
        elif kind == "thoughts":
            yield {"role": "assistant", "reasoning": _thoughts(content)}
        elif role == "assistant" and (tool := string(message, "recipient")) not in ("", "all"):
            waiting[tool] += 1
            call = {"name": tool, "arguments": _arguments(content)}
            yield {
                "role": "assistant",
                "tool_calls": [{"id": string(message, "id"), "function": call}],
            }
        elif parts := _parts(content):
            yield {"role": role, "content": parts}


def _thoughts(content: Message) -> str:
    thoughts = content.get("thoughts")
    found = [t for t in thoughts if isinstance(t, Mapping)] if isinstance(thoughts, list) else []
    texts = ("\n\n".join(filter(None, (string(t, "summary"), string(t, "content")))) for t in found)
    return "\n\n".join(filter(None, texts))


def _arguments(content: Message) -> str:
    """A call's arguments as a JSON object; many tools receive code or plain text instead."""
    text = "\n".join(part["text"] for part in _parts(content) if isinstance(part.get("text"), str))
    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        is_object = False
    return text if is_object else json.dumps({"input": text}, ensure_ascii=False)


def _parts(content: Message) -> list[Message]:
    """The parts of a message's content; a part without text is represented only by its type."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        text = next((content[key] for key in _TOOL_TEXTS if isinstance(content.get(key), str)), "")
        return [{"type": "text", "text": text}] if text else []
    made = list[Message]()
    for part in parts:
        if isinstance(part, str) and without_blank_edges(fit(part)):
            made.append({"type": "text", "text": part})
        elif isinstance(part, Mapping):
            kind = string(part, "content_type").removesuffix("_asset_pointer")
            made.append(
                {"type": kind, "text": part["text"]} if string(part, "text") else {"type": kind}
            )
    return made


# --- Claude.ai ------------------------------------------------------------------------------------


def _claude_ai(message: Message) -> Iterator[Message]:
    """Split a Claude.ai message into messages; a result in the message ends a reply."""
    content = message.get("content")
    blocks = [b for b in content if isinstance(b, Mapping)] if isinstance(content, list) else []
    if not blocks and (text := string(message, "text")):
        blocks = [{"type": "text", "text": text}]
    if message.get("sender") != "assistant":
        parts = [*blocks, *_attached(message)]
        if parts:
            yield {"role": "user", "content": parts}
        return
    reply = list[Message]()
    for block in blocks:
        if block.get("type") == "tool_result":
            if reply:
                yield {"role": "assistant", "content": reply}
                reply = []
            yield {
                "role": "tool",
                "tool_call_id": string(block, "tool_use_id"),
                "name": string(block, "name"),
                "content": block.get("content"),
                "tools": {"is_error": block.get("is_error") is True},
            }
        elif block.get("type") != "token_budget":
            reply.append(block)
    if reply:
        yield {"role": "assistant", "content": reply}


def _attached(message: Message) -> Iterator[Message]:
    """The attachments as text: each file's text, or its name."""
    for key in ("attachments", "files"):
        found = message.get(key)
        for file in found if isinstance(found, list) else ():
            if isinstance(file, Mapping) and (name := string(file, "file_name")):
                text = string(file, "extracted_content")
                lines = expansion(ReferenceText(name, text)) if text else [f"[{name}]"]
                yield {"type": "text", "text": "\n".join(lines)}
