"""Reads request bodies in all three formats as the conversation that the demo model sees.

Does not validate bodies: a malformed body raises LookupError, TypeError, ValueError or
AttributeError. The question is the user's last text. Results before the question are history, and
results after it are new.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from parley.demo.dialogue import CallResult, Dialogue, Thinking, claude_version, tokens
from parley.demo.text_tools import syntax_of, tools_in, with_calls
from parley.late_patterns import late_pattern

Body = Mapping[str, Any]
Entry = tuple[str, Any]
"""`("question", text)` from the user, `("text", text)` from the model, `("call", (id, name,
arguments))`, `("result", (id, text, failed))`, or `("pictures", types)` in the previous entry."""

_TOKENS_OF_A_PICTURE = 1600


def read_anthropic(body: Body) -> Dialogue:
    """Read a Messages request."""
    offered = body.get("tools") or ()
    return _conversation(
        body,
        entries=(entry for message in body["messages"] for entry in _anthropic_entries(message)),
        system=_text_of(body.get("system") or ""),
        tools=tuple(str(tool["name"]) for tool in offered if not _is_search(tool)),
        searches=any(map(_is_search, offered)) and not _no_tools(body.get("tool_choice")),
        parallel=not (body.get("tool_choice") or {}).get("disable_parallel_tool_use", False),
        thinking=_anthropic_thinking(body),
        limit=body.get("max_tokens"),
    )


def read_chat(body: Body) -> Dialogue:
    """Read a Chat Completions request."""
    messages = body["messages"]
    effort = body.get("reasoning_effort")
    return _conversation(
        body,
        entries=(e for before, m in pairwise([{}, *messages]) for e in _chat_entries(m, before)),
        system="\n".join(
            _text_of(m.get("content") or "") for m in messages if m["role"] in _SYSTEM_ROLES
        ),
        tools=tuple(str(tool["function"]["name"]) for tool in body.get("tools") or ()),
        parallel=body.get("parallel_tool_calls") is not False,
        thinking="on" if effort not in (None, "none") else "asked",
        limit=body.get("max_completion_tokens") or body.get("max_tokens"),
    )


def read_responses(body: Body) -> Dialogue:
    """Read a Responses request."""
    raw = body["input"]
    items = [{"role": "user", "content": raw}] if isinstance(raw, str) else raw
    systems = [body.get("instructions") or ""]
    systems += [
        _text_of(item.get("content") or "") for item in items if item.get("role") in _SYSTEM_ROLES
    ]
    effort = (body.get("reasoning") or {}).get("effort")
    return _conversation(
        body,
        entries=(entry for item in items for entry in _responses_entries(item)),
        system="\n".join(systems),
        tools=tuple(str(tool["name"]) for tool in body.get("tools") or () if "name" in tool),
        parallel=body.get("parallel_tool_calls") is not False,
        thinking="on" if effort not in (None, "none") else "asked",
        limit=body.get("max_output_tokens"),
    )


_SYSTEM_ROLES = ("system", "developer")
_KINDS = {"user": "question", "assistant": "text"}


def _conversation(
    body: Body,
    *,
    entries: Iterable[Entry],
    system: str,
    tools: tuple[str, ...],
    parallel: bool,
    thinking: Thinking,
    limit: int | None,
    searches: bool = False,
) -> Dialogue:
    syntax = "" if tools else syntax_of(system)
    entries = with_calls(entries, syntax) if syntax else entries
    question, pictures, results = _since_the_question(entries)
    history = json.dumps([body.get("messages"), body.get("input")], sort_keys=True)
    return Dialogue(
        model=str(body["model"]),
        system=system,
        question=question,
        tools=() if _no_tools(body.get("tool_choice")) else tools_in(system) if syntax else tools,
        results=results,
        pictures=pictures,
        parallel=parallel,
        thinking="off" if _later_round_of_manual(body, results) else thinking,
        limit=limit,
        prompt_tokens=_tokens_of(body),
        seed=hashlib.sha256(history.encode()).hexdigest()[:16],
        syntax=syntax,
        searches=searches,
    )


def _is_search(tool: Mapping[str, Any]) -> bool:
    """Whether an offered tool is the provider's own web search."""
    return str(tool.get("type", "")).startswith("web_search")


def _tokens_of(body: Body) -> int:
    """A request's number of tokens; all pictures cost the same."""
    text, count = _BYTES.subn("", json.dumps(body, ensure_ascii=False))
    return tokens(text) + _TOKENS_OF_A_PICTURE * count


_BYTES = late_pattern(r'(?<=[",])[A-Za-z0-9+/]{60,}={0,2}(?=")')


def _since_the_question(
    entries: Iterable[Entry],
) -> tuple[str, tuple[str, ...], tuple[CallResult, ...]]:
    question, pictures = "", tuple[str, ...]()
    calls: dict[str, tuple[str, str]] = {}
    results: list[CallResult] = []
    for kind, what in entries:
        match kind:
            case "question":
                question, pictures, results = what, (), []
            case "pictures" if results:
                results[-1] = replace(results[-1], pictures=(*results[-1].pictures, *what))
            case "pictures":
                pictures += what
            case "call":
                calls[what[0]] = (what[1], what[2])
            case "result":
                name, arguments = calls.get(what[0], ("", "{}"))
                results.append(
                    CallResult(name, arguments, what[1], what[2] or what[1].startswith("Error: "))
                )
    return question, pictures, tuple(results)


def _anthropic_entries(message: Mapping[str, Any]) -> Iterable[Entry]:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] == "tool_use":
            yield (
                "call",
                (block["id"], block["name"], json.dumps(block["input"], ensure_ascii=False)),
            )
        elif block["type"] == "tool_result":
            text = _text_of(block.get("content") or "")
            yield "result", (block["tool_use_id"], text, bool(block.get("is_error")))
            yield "pictures", _pictures_of(block.get("content"))
    texts, pictures = (
        [block["text"] for block in blocks if block["type"] == "text"],
        _pictures_of(blocks),
    )
    if texts or pictures:
        yield _KINDS[message["role"]], "\n".join(texts)
        yield "pictures", pictures


def _chat_entries(message: Mapping[str, Any], before: Mapping[str, Any]) -> Iterable[Entry]:
    pictures = _pictures_of(message.get("content"))
    if before.get("role") == "tool" and message["role"] == "user" and pictures:
        yield "pictures", pictures  # from the results above, which can contain only text
        return
    for call in message.get("tool_calls") or ():
        yield "call", (call["id"], call["function"]["name"], call["function"]["arguments"])
    if message["role"] == "tool":
        yield "result", (message["tool_call_id"], _text_of(message["content"]), False)
    elif message["role"] in ("user", "assistant"):
        yield _KINDS[message["role"]], _text_of(message.get("content") or "")
        yield "pictures", pictures


def _responses_entries(item: Mapping[str, Any]) -> Iterable[Entry]:
    if item.get("type") == "function_call":
        yield "call", (item["call_id"], item["name"], item["arguments"])
    elif item.get("type") == "function_call_output":
        yield "result", (item["call_id"], _text_of(item["output"]), False)
        yield "pictures", _pictures_of(item["output"])
    elif item.get("role") in ("user", "assistant"):
        yield _KINDS[item["role"]], _text_of(item["content"])
        yield "pictures", _pictures_of(item["content"])


def _text_of(content: str | list[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if "text" in part)


def has_pictures(body: Body) -> bool:
    """Whether a request contains any pictures."""
    messages = [
        *(body.get("messages") or ()),
        *(items if isinstance(items := body.get("input"), list) else ()),
    ]
    contents = [
        part
        for message in messages
        for part in _parts(message.get("content") or message.get("output"))
    ]
    inner = [part for content in contents for part in _parts(content.get("content"))]
    return bool(_pictures_of([*contents, *inner]))


def _parts(content: object) -> list[Mapping[str, Any]]:
    return (
        [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    )


def _pictures_of(content: object) -> tuple[str, ...]:
    """The types of the pictures and files in a message's content."""
    return tuple(filter(None, map(_picture_type, _parts(content))))


def _picture_type(part: Mapping[str, Any]) -> str:
    match part:
        case {"source": {"media_type": str(kind)}}:
            return kind
        case (
            {"image_url": {"url": str(url)}}
            | {"image_url": str(url)}
            | {"file": {"file_data": str(url)}}
            | {"file_data": str(url)}
        ):
            return url.removeprefix("data:").partition(";")[0]
        case _:
            return ""


def _no_tools(choice: object) -> bool:
    return choice == "none" or (isinstance(choice, Mapping) and choice.get("type") == "none")


def _anthropic_thinking(body: Body) -> Thinking:
    kind = (body.get("thinking") or {}).get("type")
    return "on" if kind in ("enabled", "adaptive") else "off"


def _later_round_of_manual(body: Body, results: tuple[CallResult, ...]) -> bool:
    """Whether manual thinking is over: it is not interleaved, and ends before the first call."""
    return bool(results) and (body.get("thinking") or {}).get("type") == "enabled"


def shows_thinking(body: Body) -> bool:
    """Whether an Anthropic reply contains its thinking's text, or only the signature.

    `display` is "omitted" by default from 4.7 on, and "summarized" before.
    """
    display = (body.get("thinking") or {}).get("display")
    if display is not None:
        return bool(display == "summarized")
    version = claude_version(str(body["model"]))
    return version is None or version < (4, 7)
