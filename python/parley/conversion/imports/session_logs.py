"""Converts session logs from Claude Code and `llm` to messages.

- Claude Code: `~/.claude/projects/*/*.jsonl`. A line has the type `user` or `assistant`, with a
  `message` as in the Messages API, or has another type; `parentUuid` is the id of its parent. A
  reply takes several lines with the same `message.id`, one for each block. Lines with `isSidechain`
  belong to subagents (oneryalcin/agent-schemas, claude-code, v2.1.1, 2026-11-24).
- `llm logs --json`: a list of prompts with their responses; tool results are stored with the prompt
  that sent them (llm 0.36, 2026-11-24).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.conversion.imports.message_arrays import Message, Record, mapping, string

_SPEAKERS = ("user", "assistant")
_COMMANDS = ("<command-", "<local-command-", "<bash-")
_CONTENT_KEYS = ("prompt", "response", "reasoning", "attachments", "tool_calls", "tool_results")
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


def is_claude_code(value: Any) -> bool:
    """Whether these are lines from a Claude Code session."""
    return any(_is_said(line) for line in _lines(value))


def is_llm(value: Any) -> bool:
    """Whether this is the output of `llm logs --json`."""
    keys = ("conversation_id", "prompt", "response")
    rows = value if isinstance(value, list) else []
    return bool(rows) and all(
        isinstance(row, Mapping) and all(k in row for k in keys) for row in rows
    )


# --- Claude Code ----------------------------------------------------------------------------------


def claude_code(value: Any) -> Iterator[Record]:
    """The conversation in a Claude Code session, from the branch that was continued last."""
    lines, losses = _lines(value), dict[str, None]()
    said = [line for line in lines if _is_said(line)]
    main = [line for line in said if line.get("isSidechain") is not True]
    if len(main) < len(said) and main:
        losses["its subagents' messages"] = None
    path = _branch(lines, main or said)
    if len(path) < len(main or said):
        losses["other versions of its messages"] = None
    replies = dict[str, list[Any]]()
    messages = list[Message]()
    for line in path:
        message = mapping(line, "message")
        content = message.get("content")
        if line.get("isMeta") is True or line.get("isApiErrorMessage") is True:
            continue
        if isinstance(content, str) and content.startswith(_COMMANDS):
            losses["Claude Code commands and their output"] = None
            continue
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        if line["type"] == "assistant" and (key := string(message, "id")) and key in replies:
            replies[key] += parts
            continue
        messages.append({"role": line["type"], "content": (own := list(parts))})
        if line["type"] == "assistant":
            replies[string(message, "id")] = own
    if messages:
        yield Record(messages, _head(lines, path), tuple(losses))


def _lines(value: Any) -> Sequence[Message]:
    return [
        line
        for line in (value if isinstance(value, list) else [value])
        if isinstance(line, Mapping)
    ]


def _is_said(line: Any) -> bool:
    return (
        isinstance(line, Mapping)
        and line.get("type") in _SPEAKERS
        and isinstance(line.get("sessionId"), str)
        and isinstance(line.get("message"), Mapping)
    )


def _branch(lines: Sequence[Message], candidates: Sequence[Message]) -> list[Message]:
    """The lines that lead to the last line, with all lines of each reply and the results of its
    calls.
    """
    by_id = {string(line, "uuid"): line for line in lines if string(line, "uuid")}
    on_it, at = set[str](), string(candidates[-1], "uuid")
    while at in by_id and at not in on_it:
        on_it.add(at)
        at = string(by_id[at], "parentUuid") or string(by_id[at], "logicalParentUuid")
    if not on_it:
        return list(candidates)
    replies = {_reply(line) for line in candidates if string(line, "uuid") in on_it} - {""}
    kept = [line for line in candidates if string(line, "uuid") in on_it or _reply(line) in replies]
    calls = {string(block, "id") for line in kept for block in _blocks(line, "tool_use")}
    own = set(map(id, kept))
    return [line for line in candidates if id(line) in own or _answers(line, calls)]


def _reply(line: Message) -> str:
    return string(mapping(line, "message"), "id")


def _answers(line: Message, calls: set[str]) -> bool:
    return any(string(block, "tool_use_id") in calls for block in _blocks(line, "tool_result"))


def _blocks(line: Message, kind: str) -> Iterator[Message]:
    content = mapping(line, "message").get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == kind:
            yield block


def _head(lines: Sequence[Message], path: Sequence[Message]) -> Message:
    titles = [
        title for line in lines if (title := string(line, _TITLES.get(string(line, "type"), "")))
    ]
    models = [model for line in path if (model := string(mapping(line, "message"), "model"))]
    head = {"title": titles[-1]} if titles else {}
    return head | ({"model": models[-1]} if models else {})


# --- llm ------------------------------------------------------------------------------------------


def llm(value: Any) -> Iterator[Record]:
    """The conversations in an `llm` log, oldest first."""
    rows = sorted(value, key=lambda row: string(row, "datetime_utc"))
    conversations = dict[str, list[Message]]()
    for row in rows:
        if any(row.get(key) for key in _CONTENT_KEYS):
            conversations.setdefault(string(row, "conversation_id"), []).append(row)
    for own in conversations.values():
        messages = list(_llm(own))
        title = string(own[0], "conversation_name") or string(own[0], "prompt")
        yield Record(messages, {"title": title, "model": string(own[-1], "model")})


def _llm(rows: Sequence[Message]) -> Iterator[Message]:
    systems = dict.fromkeys(filter(None, (string(row, "system") for row in rows)))
    yield from ({"role": "system", "content": system} for system in systems)
    for row in rows:
        calls = _objects(row, "tool_calls")
        own = {string(call, "tool_call_id") for call in calls} - {""}
        results = _objects(row, "tool_results")
        yield from (_result(r) for r in results if string(r, "tool_call_id") not in own)
        parts: list[Message] = [{"type": "text", "text": string(row, "prompt")}]
        parts += ({"type": _kind(attachment)} for attachment in _objects(row, "attachments"))
        if any(part.get("text") != "" for part in parts):
            yield {"role": "user", "content": parts}
        yield {
            "role": "assistant",
            "reasoning": string(row, "reasoning"),
            "content": string(row, "response"),
            "tool_calls": [_call(call) for call in calls],
        }
        yield from (_result(r) for r in results if string(r, "tool_call_id") in own)


def _objects(row: Message, key: str) -> list[Message]:
    found = row.get(key)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _kind(attachment: Message) -> str:
    """An attachment's kind, such as "image"; the log does not contain its content."""
    return string(attachment, "type").partition("/")[0] or "attachment"


def _call(call: Message) -> Message:
    arguments = json.dumps(call.get("arguments", {}), ensure_ascii=False)
    return {
        "id": string(call, "tool_call_id"),
        "function": {"name": string(call, "name"), "arguments": arguments},
    }


def _result(result: Message) -> Message:
    return {
        "role": "tool",
        "tool_call_id": string(result, "tool_call_id"),
        "name": string(result, "name"),
        "content": string(result, "output"),
        "tools": {"is_error": bool(result.get("exception"))},
    }
