"""Refusals of the Responses API: items, pairs of calls and outputs, returned reasoning.

The demo server stores nothing, so reasoning only counts with the encrypted content that it issued.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from parley.demo.signing import unseal
from tests.strict.function_tools import (
    FUNCTION_KINDS,
    TEXT_TOO_SHORT,
    function_tools,
    kind_words,
    string_range,
    tool_name,
)
from tests.strict.kinds import kinds_rule
from tests.strict.pictures import openai_pictures
from tests.strict.shapes import (
    Body,
    Rule,
    has_lone_surrogate,
    is_openai_reasoning,
    names,
    reasons,
    twice,
)

_FIELDS = names(
    "model input access_programs background background_options context_management conversation "
    "image "
    "include instructions max_output_tokens max_tool_calls metadata moderation parallel_tool_calls "
    "previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning "
    "safety_identifier service_tier store stream stream_options temperature text tool_choice tools "
    "top_logprobs top_p truncation user"
)
_KINDS = {
    "model": str,
    "instructions": str,
    "stream": bool,
    "store": bool,
    "include": [str],
    "reasoning": {"effort": str, "summary": str},
    "max_output_tokens": int,
    "parallel_tool_calls": bool,
    "input": (
        str,
        [
            {
                "type": str,
                "id": str,
                "role": str,
                "content": (str, [{"type": str, "text": str, "image_url": str, "file_data": str}]),
                "call_id": str,
                "name": str,
                "arguments": str,
                "output": (str, [{"type": str, "text": str, "image_url": str, "file_data": str}]),
                "summary": [{"type": str, "text": str}],
                "encrypted_content": str,
                "status": str,
                "action": {
                    "type": str,
                    "query": str,
                    "queries": [str],
                    "url": str,
                    "pattern": str,
                    "sources": [{"type": str, "url": str}],
                },
            }
        ],
    ),
    "tools": [{"type": str} | FUNCTION_KINDS],
    "tool_choice": (str, {"type": str, "name": str}),
}
_MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
}
_ITEM_FIELDS: Mapping[str, frozenset[str]] = {
    "message": frozenset(("type", "id", "role", "content", "status", "phase")),
    "function_call": frozenset(
        ("type", "id", "call_id", "name", "arguments", "status", "namespace", "caller")
    ),
    "function_call_output": frozenset(
        ("type", "id", "call_id", "output", "status", "name", "namespace", "caller"),
    ),
    "reasoning": frozenset(("type", "id", "summary", "content", "encrypted_content", "status")),
    "web_search_call": frozenset(("type", "id", "status", "action")),
}
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "reasoning": "rs",
    "web_search_call": "ws",
}
# `ResponseFunctionWebSearchParam` in openai 3.54: the fields of each action, the required ones first
_ACTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "search": ((), ("query", "queries", "sources")),
    "open_page": ((), ("url",)),
    "find_in_page": (("pattern", "url"), ()),
}
_SEARCH_STATUSES = ("in_progress", "searching", "completed", "failed", "incomplete")
_SEARCH_FIELDS = frozenset(
    ("type", "filters", "search_context_size", "user_location", "external_web_access")
)
_WITHOUT_SEARCH = ("gpt-4.1-nano", "gpt-3.5")
_INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_PARTS = {"assistant": ("output_text", "refusal")}
_INPUT_PARTS = ("input_text", "input_image", "input_file")


def check_responses(body: Mapping[str, Any]) -> list[str]:
    """Every reason to answer 400 to a Responses request."""
    return reasons(_STAGES, body)


def _items(body: Body) -> list[dict[str, Any]]:
    raw = body["input"]
    return [{"role": "user", "content": raw}] if isinstance(raw, str) else raw


def _kind(item: Mapping[str, Any]) -> str:
    return str(item.get("type", "message" if "role" in item else None))


def _required(body: Body) -> Iterator[str]:
    for field in ("model", "input"):
        if body.get(field) is None:
            yield f"Missing required parameter: '{field}'."
    for field in body.keys() - _FIELDS:
        if field in _MOVED:
            yield (
                f"Unsupported parameter: '{field}'. In the Responses API, this parameter has "
                "moved to "
                f"'{_MOVED[field]}'."
            )
        else:
            yield f"Unknown parameter: '{field}'."


def _item_shapes(body: Body) -> Iterator[str]:
    for at, item in enumerate(_items(body)):
        place, kind = f"input[{at}]", _kind(item)
        if kind not in _ITEM_FIELDS:
            yield (
                f"Invalid value: '{kind}'. Supported values are: "
                f"{', '.join(map(repr, _ITEM_FIELDS))}."
            )
            continue
        for field in item.keys() - _ITEM_FIELDS[kind]:
            yield f"Unknown parameter: '{place}.{field}'."
        if item.get("id") is not None and not str(item["id"]).startswith(_PREFIXES[kind]):
            hint = f"Expected an ID that begins with '{_PREFIXES[kind]}'."
            yield f"Invalid '{place}.id': '{item['id']}'. {hint}"
        yield from _ITEM_SHAPES[kind](place, item)


def _message(place: str, item: Mapping[str, Any]) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        yield (
            f"Invalid value: '{role}'. Supported values: 'assistant', 'system', 'developer', "
            "and 'user'."
        )
    if content is None:
        yield f"Missing required parameter: '{place}.content'."
    elif not content:
        yield TEXT_TOO_SHORT.format(place=f"{place}.content")
    allowed = _PARTS.get(str(role), _INPUT_PARTS)
    for at, part in enumerate(content if isinstance(content, list) else []):
        if part.get("type") not in allowed:
            supported = " and ".join(map(repr, allowed))
            yield f"Invalid value: '{part.get('type')}'. Supported values are: {supported}."
        elif part.get("text") == "":
            yield TEXT_TOO_SHORT.format(place=f"{place}.content[{at}].text")


def _function_call(place: str, item: Mapping[str, Any]) -> Iterator[str]:
    yield from string_range(f"{place}.call_id", item.get("call_id"), 1, 64)
    yield from tool_name(f"{place}.name", item.get("name"))
    if item.get("arguments") is None:
        yield f"Missing required parameter: '{place}.arguments'."


def _function_call_output(place: str, item: Mapping[str, Any]) -> Iterator[str]:
    yield from string_range(f"{place}.call_id", item.get("call_id"), 1, 64)
    if item.get("output") is None:
        yield f"Missing required parameter: '{place}.output'."


def _reasoning(place: str, item: Mapping[str, Any]) -> Iterator[str]:
    for field in ("id", "summary"):
        if item.get(field) is None:
            yield f"Missing required parameter: '{place}.{field}'."


def _web_search_call(place: str, item: Mapping[str, Any]) -> Iterator[str]:
    for field in ("id", "status", "action"):
        if item.get(field) is None:
            yield f"Missing required parameter: '{place}.{field}'."
    if item.get("status") not in (None, *_SEARCH_STATUSES):
        supported = ", ".join(map(repr, _SEARCH_STATUSES))
        yield f"Invalid value: '{item['status']}'. Supported values are: {supported}."
    action = item.get("action") or {}
    if action and action.get("type") not in _ACTIONS:
        supported = ", ".join(map(repr, _ACTIONS))
        yield f"Invalid value: '{action.get('type')}'. Supported values are: {supported}."
        return
    required, optional = _ACTIONS.get(str(action.get("type")), ((), ()))
    for field in required:
        if action.get(field) is None:
            yield f"Missing required parameter: '{place}.action.{field}'."
    for field in action.keys() - {"type", *required, *optional}:
        yield f"Unknown parameter: '{place}.action.{field}'."


_ITEM_SHAPES = {
    "message": _message,
    "function_call": _function_call,
    "function_call_output": _function_call_output,
    "reasoning": _reasoning,
    "web_search_call": _web_search_call,
}


def _encoding(body: Body) -> Iterator[str]:
    if has_lone_surrogate(body):
        yield (
            "We could not parse the JSON body of your request. The OpenAI API expects a JSON "
            "payload, "
            "but what was sent was not valid JSON."
        )


def _order(body: Body) -> Iterator[str]:
    talk = [item for item in _items(body) if item.get("role") not in ("system", "developer")]
    if not talk or talk[0].get("role") != "user":
        yield "Invalid 'input': the first item after the system message must be a user message."
    elif talk[-1].get("role") != "user" and _kind(talk[-1]) != "function_call_output":
        yield "Invalid 'input': the last item must be a user message or a function call output."


def _pictures(body: Body) -> Iterator[str]:
    for at, item in enumerate(_items(body)):
        for field in ("content", "output"):
            parts = item.get(field)
            for number, part in enumerate(parts if isinstance(parts, list) else []):
                place, kind = f"input[{at}].{field}[{number}]", part.get("type")
                if field == "output" and kind not in _INPUT_PARTS:
                    supported = " and ".join(map(repr, _INPUT_PARTS))
                    yield f"Invalid value: '{kind}'. Supported values are: {supported}."
                if kind in ("input_image", "input_file"):
                    url = part.get("image_url" if kind == "input_image" else "file_data")
                    yield from openai_pictures(place, [str(url)])


def _calls_and_outputs(body: Body) -> Iterator[str]:
    call_ids: set[str] = set()
    for item in _items(body):
        if _kind(item) == "function_call":
            call_ids.add(str(item["call_id"]))
        elif _kind(item) == "function_call_output" and item["call_id"] not in call_ids:
            yield f"No tool call found for function call output with call_id {item['call_id']}."
    answers = [
        str(item["call_id"]) for item in _items(body) if _kind(item) == "function_call_output"
    ]
    calls = [str(item["call_id"]) for item in _items(body) if _kind(item) == "function_call"]
    yield from (
        f"No tool output found for function call {call}." for call in calls if call not in answers
    )
    for again in twice(calls):
        yield f"Duplicate function call found with call_id {again}."
    for again in twice(answers):
        yield f"Duplicate function call output found with call_id {again}."


def _unique_items(body: Body) -> Iterator[str]:
    for again in twice(str(item["id"]) for item in _items(body) if item.get("id") is not None):
        yield (
            f"Duplicate item found with id {again}. Remove duplicate items from your input "
            "and try again."
        )


def _reasoning_followed(body: Body) -> Iterator[str]:
    for item, following in pairwise([*_items(body), None]):
        if item is None or _kind(item) != "reasoning":
            continue
        is_reply = following is not None and (
            following.get("role") == "assistant"
            or _kind(following) in ("function_call", "reasoning", "web_search_call")
        )
        if not is_reply:
            yield (
                f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                "following item."
            )


def _searches_led_to(body: Body) -> Iterator[str]:
    """The search of a reasoning model needs the reasoning that led to it, directly above it or
    above other searches."""
    if not is_openai_reasoning(str(body["model"])):
        return
    for before, item in pairwise([{}, *_items(body)]):
        is_led_to = _kind(before) in ("reasoning", "web_search_call")
        if _kind(item) == "web_search_call" and not is_led_to:
            yield (
                f"Item '{item['id']}' of type 'web_search_call' was provided without its "
                "required 'reasoning' item."
            )


def _hosted_tools(body: Body) -> Iterator[str]:
    hosted = [tool for tool in body.get("tools") or [] if tool.get("type") == "web_search"]
    for tool in hosted:
        for field in tool.keys() - _SEARCH_FIELDS:
            yield f"Unknown parameter: 'tools.{field}'."
    for _ in hosted[1:]:
        yield "Invalid 'tools': duplicate tool 'web_search'."
    if hosted and str(body["model"]).startswith(_WITHOUT_SEARCH):
        yield f"Hosted tool 'web_search' is not supported with {body['model']}."
    if hosted and (body.get("reasoning") or {}).get("effort") == "minimal":
        yield "The following tools cannot be used with reasoning.effort 'minimal': web_search."
    for value in body.get("include") or []:
        if value not in _INCLUDABLE:
            supported = ", ".join(map(repr, _INCLUDABLE))
            yield f"Invalid value: '{value}'. Supported values are: {supported}."


def _functions(body: Body) -> Iterator[str]:
    tools = body.get("tools")
    functions = [tool for tool in tools or [] if tool.get("type") != "web_search"]
    if functions or not tools:
        yield from function_tools({**body, "tools": functions} if tools else body, nested=False)


def _reasoning_is_ours(body: Body) -> Iterator[str]:
    for item in _items(body):
        if _kind(item) != "reasoning":
            continue
        sealed = item.get("encrypted_content")
        if sealed is None:
            yield (
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` "
                "is set to "
                "false. Try again with `store` set to true, or remove this item from your input."
            )
        elif unseal(str(sealed)) is None:
            yield f"The encrypted content for item {item['id']} could not be verified."


def _tools_for_history(body: Body) -> Iterator[str]:
    if not body.get("tools") and any(_kind(item) == "function_call" for item in _items(body)):
        yield (
            "Missing required parameter: 'tools'. It must be given when 'input' holds "
            "function calls."
        )


def _limits(body: Body) -> Iterator[str]:
    most = body.get("max_output_tokens")
    if most is not None and most < 16:
        yield (
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, "
            f"but got {most} instead."
        )
    for field in ("temperature", "top_p"):
        if body.get(field) is not None and is_openai_reasoning(str(body["model"])):
            yield f"Unsupported parameter: '{field}' is not supported with this model."
    if body.get("previous_response_id") is not None:
        yield f"Previous response with id '{body['previous_response_id']}' not found."


_RULES: tuple[Rule, ...] = (
    _encoding,
    _calls_and_outputs,
    _pictures,
    _unique_items,
    _reasoning_followed,
    _reasoning_is_ours,
    _searches_led_to,
    _order,
    _hosted_tools,
    _functions,
    _tools_for_history,
    _limits,
)
_STAGES: tuple[tuple[Rule, ...], ...] = (
    (kinds_rule(_KINDS, kind_words),),
    (_required,),
    (_item_shapes,),
    _RULES,
)
