"""Reads programs' and providers' message arrays into a conversation.

One reader handles OpenAI's Chat Completions, Anthropic's Messages API and CodeCompanion. They
differ in the names of roles and in where calls and results are, and many files mix them.

- OpenAI: the assistant has `tool_calls` or a legacy `function_call`; results are in messages with
  the role `tool` or `function` (openai 3.54, types/chat/chat_completion_message_param.py,
  2026-11-23).
- Anthropic: calls and results are `tool_use` and `tool_result` blocks; the system prompt is outside
  the messages (anthropic 2.12, types/message_param.py, 2026-11-23).
- CodeCompanion: the assistant is `llm`; a message's `tools` has `calls`, or a result's `call_id`;
  older messages have `tool_calls` and `tool_call_id`; thinking is in `reasoning`
  (olimorris/codecompanion.nvim, lua/codecompanion/interactions/chat/sessions/serializer.lua, and
  ravitemer/codecompanion-history.nvim, lua/codecompanion/_extensions/history/storage.lua,
  2026-11-23).
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from parley.chat.call_lines import extra_json, strict_json
from parley.chat.transcript import Attachment, Status
from parley.conversion.imports.imported_chat import Conversation, ImportedChat
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.models.encode import RAW, arguments_object

Message: TypeAlias = Mapping[str, Any]

_Speaker: TypeAlias = Literal["system", "user", "model", "result"]
ROLES: dict[str, dict[str, _Speaker]] = {
    "openai": {
        "system": "system",
        "developer": "system",
        "user": "user",
        "assistant": "model",
        "tool": "result",
        "function": "result",
    },
    "anthropic": {"system": "system", "user": "user", "assistant": "model"},
    "codecompanion": {
        "system": "system",
        "user": "user",
        "llm": "model",
        "assistant": "model",
        "tool": "result",
    },
}
"""The speaker of each role, by format."""
_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking"}
_BOM = "\ufeff"
_DATA_URL = late_pattern(r"data:[^,]{0,200},")
_ERROR = "Error: "
"""The start of a failed result's text in Parley's requests, if the format has no field for
failure.
"""
_CARRIED = {"messages", "system", "title", "tags", "model", "adapter"}


@frozen
class Record:
    """One conversation in a file: its messages, the object that contains the messages, and its
    losses.
    """

    messages: Sequence[Message]
    root: Message
    losses: Sequence[str] = ()


def json_value(text: str) -> Any:
    """Decode JSON, or JSON lines as a list. Raises ValueError."""
    text = text.removeprefix(_BOM)
    try:
        return strict_json(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise ValueError(f"invalid JSON: {error}") from error
        return list(_lines(text))


def records(value: Any) -> list[Record]:
    """The conversations in a JSON value. Raises ValueError for other values."""
    return list(_records(value))


def _lines(text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield strict_json(line.removeprefix(_BOM))
            except ValueError as error:
                raise ValueError(f"line {number} is not valid JSON: {error}") from error


def _records(value: Any) -> Iterator[Record]:
    match value:
        case {"messages": list(messages)}:
            yield Record(_objects(messages), {k: v for k, v in value.items() if k != "messages"})
        case [{"messages": list()}, *_]:
            for item in value:
                if not isinstance(item, dict) or not isinstance(item.get("messages"), list):
                    raise ValueError('expected only objects with "messages"')
                yield from _records(item)
        case [{"role": _}, *_]:
            yield Record(_objects(value), {})
        case _:
            raise ValueError('expected an array of messages, or an object with "messages"')


def _objects(messages: Sequence[Any]) -> Sequence[Message]:
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ValueError(f'message {number}: expected an object with a "role"')
    return messages


def kind(record: Record) -> str:
    """A conversation's format, recognized by features that only one format has."""
    roles = {message["role"] for message in record.messages}
    if "llm" in roles or any(
        "_meta" in m or isinstance(m.get("tools"), dict) for m in record.messages
    ):
        return "codecompanion"
    contents = (message.get("content") for message in record.messages)
    blocks = (block for content in contents if isinstance(content, list) for block in content)
    has_blocks = any(
        isinstance(block, dict) and string(block, "type") in _BLOCKS for block in blocks
    )
    return "anthropic" if has_blocks or "system" in record.root else "openai"


def chat(record: Record, format_name: str, folder: str = "", provider: str = "") -> ImportedChat:
    """Read a conversation in this format. Raises ValueError with the location of an error.

    `provider` is recorded for thinking; the default is the format.
    """
    reader = _Reader(record, format_name, folder, provider or format_name)
    for number, message in enumerate(record.messages, 1):
        try:
            reader.feed(message)
        except ValueError as error:
            raise ValueError(f"message {number}: {error}") from error
    return reader.conversation.chat()


class _Reader:
    """Reads one conversation's messages."""

    def __init__(self, record: Record, format_name: str, folder: str, provider: str) -> None:
        self.conversation = Conversation(folder)
        self._roles, root = ROLES[format_name], record.root
        self._provider = root["adapter"] if isinstance(root.get("adapter"), str) else provider
        self._model = root["model"] if isinstance(root.get("model"), str) else ""
        if isinstance(root.get("title"), str):
            self.conversation.title(root["title"])
        if isinstance(tags := root.get("tags"), list):
            self.conversation.tags(tag for tag in tags if isinstance(tag, str))
        self.conversation.system("\n\n".join(self._texts(root.get("system"))))
        if others := sorted(root.keys() - _CARRIED):
            self.conversation.lose(f"keys other than the messages: {', '.join(others)}")
        if model := " ".join(filter(None, (root.get("adapter") and self._provider, self._model))):
            self.conversation.lose(f"the answering model: {model}")
        for loss in record.losses:
            self.conversation.lose(loss)

    def feed(self, message: Message) -> None:
        """Read the next message."""
        match self._roles.get(message["role"]):
            case "system":
                self.conversation.system("\n\n".join(self._texts(message.get("content"))))
            case "user":
                self._user(message)
            case "model":
                self._reply(message)
            case "result":
                self._result(message)
            case None:
                raise ValueError(f'expected "role" to be one of {", ".join(self._roles)}')

    def _user(self, message: Message) -> None:
        content = message.get("content")
        parts = self._parts(content)
        if isinstance(content, str) and mapping(message, "_meta").get("tag") == "image":
            parts = iter([{"type": "image", "source": {"data": content}}])
        for part in parts:
            if part.get("type") == "tool_result":
                self._tool_result(part)
            elif picture := self._picture(part):
                self.conversation.attach(picture)
            else:
                self.conversation.question(self._text(part))

    def _reply(self, message: Message) -> None:
        self.conversation.reply()
        for key in ("reasoning", "reasoning_content"):
            thought = message.get(key)
            thought = thought.get("content") if isinstance(thought, dict) else thought
            if isinstance(thought, str):
                self._think(thought)
        parts = list(self._parts(message.get("content")))
        for part in sorted(parts, key=lambda part: part.get("type") == "tool_use"):
            self._say(part)  # calls end a reply, so text after a call moves before it
        if isinstance(refusal := message.get("refusal"), str):
            self.conversation.text(refusal)
        tools = mapping(message, "tools")
        calls = message.get("tool_calls") or tools.get("calls") or []
        if legacy := message.get("function_call"):
            calls = [{"function": legacy}]
        if not isinstance(calls, list):
            raise ValueError('expected a list of "tool_calls"')
        for call in calls:
            self._call(call)

    def _say(self, part: Message) -> None:
        match part.get("type"):
            case "thinking":
                self._think(string(part, "thinking"), string(part, "signature"))
            case "redacted_thinking":
                data = string(part, "data")
                self.conversation.thinking(None, self._provider, self._model, data, redacted=True)
            case "tool_use":
                self._tool_use(part)
            case _:
                self.conversation.text(self._text(part))

    def _think(self, text: str, signature: str = "") -> None:
        self.conversation.thinking(text, self._provider, self._model, signature)

    def _call(self, call: Any) -> None:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ValueError(
                'expected a call of the form {"id": …, "function": {"name": …, "arguments": …}}'
            )
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        extra = {"extra_content": call["extra_content"]} if call.get("extra_content") else {}
        self.conversation.call(
            string(call, "id"), function["name"], arguments or "", extra_json(extra)
        )

    def _tool_use(self, part: Message) -> None:
        name, value = part.get("name"), part.get("input")
        if not isinstance(name, str):
            raise ValueError('expected a "name" in a tool_use')
        raw = value.get(RAW) if isinstance(value, dict) else None
        if isinstance(raw, str) and arguments_object(raw) == value:
            arguments = raw  # the request required an object
        else:
            arguments = json.dumps({} if value is None else value, ensure_ascii=False)
        self.conversation.call(string(part, "id"), name, arguments)

    def _tool_result(self, part: Message) -> None:
        status: Status = "error" if part.get("is_error") else "ok"
        text, pictures = self._split(part.get("content"))
        self.conversation.result(string(part, "tool_use_id"), text, status, "", pictures)

    def _result(self, message: Message) -> None:
        content, tools = message.get("content"), mapping(message, "tools")
        if any(part.get("type") == "tool_result" for part in self._parts(content)):
            self._user(message)
            return
        call_id = string(message, "tool_call_id") or string(tools, "call_id") or string(tools, "id")
        text, pictures = self._split(content)
        words = text.removeprefix(_ERROR)
        is_error = bool(tools.get("is_error")) or (words != text and bool(words.strip()))
        name = string(message, "name") or string(tools, "name")
        status: Status = "error" if is_error else "ok"
        self.conversation.result(call_id, words if is_error else text, status, name, pictures)

    def _split(self, content: Any) -> tuple[str, list[Attachment]]:
        """A result's text and pictures."""
        texts, pictures = list[str](), list[Attachment]()
        for part in self._parts(content):
            if picture := self._picture(part):
                pictures.append(picture)
            else:
                texts.append(self._text(part))
        return "\n".join(texts), pictures

    def _picture(self, part: Message) -> Attachment | None:
        """The picture or PDF in a part; None for any other part, or if the file cannot be kept."""
        url = part.get("image_url") or mapping(part, "file").get("file_data") or ""
        url = url.get("url") if isinstance(url, dict) else url
        data = mapping(part, "source").get("data") or url
        if not isinstance(data, str) or not data:
            return None
        try:
            content = b64decode(
                data[head.end() :] if (head := _DATA_URL.match(data)) else data, validate=True
            )
        except ValueError:
            return None
        return self.conversation.picture(content)

    def _parts(self, content: Any) -> Iterator[Message]:
        """The parts of a message's content; a plain text counts as one part."""
        match content:
            case None:
                return
            case str():
                yield {"type": "text", "text": content}
            case {"type": str()}:
                yield content
            case list():
                for part in content:
                    if not isinstance(part, dict):
                        raise ValueError('expected objects in "content"')
                    yield part
            case _:
                raise ValueError('expected a string or a list of parts as "content"')

    def _texts(self, content: Any) -> list[str]:
        return [self._text(part) for part in self._parts(content)]

    def _text(self, part: Message) -> str:
        """A part's text; a placeholder for a part without text."""
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
        return self._lose(string(part, "type"))

    def _lose(self, type_name: str) -> str:
        """Record the loss of a part of this type, and return a placeholder."""
        name = type_name if re.fullmatch(r"[a-z_-]{1,40}", type_name) else "part"
        self.conversation.lose(f"parts of type {name}, which were replaced with text")
        return f"[{name.replace('_', ' ')}]"


def mapping(message: Message, key: str) -> Message:
    value = message.get(key)
    return value if isinstance(value, dict) else {}


def string(message: Message, key: str) -> str:
    value = message.get(key)
    return value if isinstance(value, str) else ""
