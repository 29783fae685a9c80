"""Refusals of the Chat Completions API, and of compatible hosts with the same format.

`host="openai"` knows every field and refuses the rest; other hosts take fields of their own, and
"gemini" wants its thought signatures back.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

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
from tests.strict.schemas import undefined
from tests.strict.shapes import (
    Body,
    Rule,
    has_lone_surrogate,
    is_openai_reasoning,
    names,
    reasons,
    twice,
    wants_responses_for_tools,
)

_FIELDS = names(
    "model messages audio frequency_penalty function_call functions logit_bias logprobs "
    "max_completion_tokens max_tokens metadata modalities moderation n parallel_tool_calls "
    "prediction "
    "presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning_effort "
    "response_format safety_identifier seed service_tier stop store stream stream_options "
    "temperature "
    "tool_choice tools top_logprobs top_p user verbosity web_search_options"
)
_MESSAGE_FIELDS: Mapping[str, frozenset[str]] = {
    "system": frozenset(("role", "content", "name")),
    "developer": frozenset(("role", "content", "name")),
    "user": frozenset(("role", "content", "name")),
    "assistant": frozenset(
        ("role", "content", "name", "tool_calls", "refusal", "audio", "function_call")
    ),
    "tool": frozenset(("role", "content", "name", "tool_call_id")),
}
_CALL_FIELDS = frozenset(("id", "type", "function", "index"))  # `index` is unknown but accepted
_KINDS = {
    "model": str,
    "stream": bool,
    "stream_options": dict,
    "reasoning_effort": str,
    "max_tokens": int,
    "max_completion_tokens": int,
    "temperature": float,
    "parallel_tool_calls": bool,
    "messages": [
        {
            "role": str,
            "content": (str, [{"type": str, "text": str, "image_url": {"url": str}, "file": dict}]),
            "tool_calls": [
                {
                    "id": str,
                    "type": str,
                    "function": {"name": str, "arguments": str},
                    "extra_content": {"google": {"thought_signature": str}},
                }
            ],
            "tool_call_id": str,
        }
    ],
    "tools": [{"type": str, "function": FUNCTION_KINDS}],
    "tool_choice": (str, {"type": str, "function": {"name": str}}),
}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_WITHOUT_EFFORT = ("gpt-3.5", "gpt-4")


def check_openai(body: Mapping[str, Any], *, host: str = "openai") -> list[str]:
    """Every reason to answer 400 to a Chat Completions request; `host` is "openai", "gemini" or
    another."""
    fields: Sequence[Rule] = (_unknown_fields, _unknown_message_fields) if host == "openai" else ()
    signatures: Sequence[Rule] = (
        (_thought_signatures, _defined_parameters) if host == "gemini" else ()
    )
    return reasons((*_SHAPES, (*_RULES, *fields, *signatures)), body)


def _defined_parameters(body: Body) -> Iterator[str]:
    """Only Gemini asks for it."""
    for at, tool in enumerate(body.get("tools") or []):
        if undefined((tool.get("function") or {}).get("parameters") or {}):
            yield (
                f"GenerateContentRequest.tools[0].function_declarations[{at}].parameters.required[0]: "
                "property is not defined"
            )


def _required(body: Body) -> Iterator[str]:
    if not body.get("model"):
        yield "you must provide a model parameter"
    if body.get("messages") is None:
        yield "Missing required parameter: 'messages'."
    elif not body["messages"]:
        yield (
            "Invalid 'messages': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead."
        )


def _roles(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        if message.get("role") not in _MESSAGE_FIELDS:
            yield (
                f"Invalid value: '{message.get('role')}'. Supported values are: "
                "'system', 'assistant', 'user', 'tool', and 'developer'. - "
                f"'messages[{index}].role'"
            )
        if message.get("role") == "tool" and message.get("content") is None:
            yield f"Missing required parameter: 'messages[{index}].content'."


def _calls_shape(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        calls = message.get("tool_calls")
        if calls == []:
            yield (
                f"Invalid 'messages[{index}].tool_calls': empty array. Expected an array with "
                "minimum "
                "length 1, but got an empty array instead."
            )
        for at, call in enumerate(calls or []):
            yield from _call_shape(f"messages[{index}].tool_calls[{at}]", call)
        if message["role"] == "tool":
            yield from string_range(
                f"messages[{index}].tool_call_id", message.get("tool_call_id"), 1, 64
            )


def _call_shape(place: str, call: Mapping[str, Any]) -> Iterator[str]:
    yield from string_range(f"{place}.id", call.get("id"), 1, 64)
    if call.get("type") != "function":
        yield f"Missing required parameter: '{place}.type'."
    function = call.get("function") or {}
    yield from tool_name(f"{place}.function.name", function.get("name"))
    if function.get("arguments") is None:
        yield f"Missing required parameter: '{place}.function.arguments'."


def _encoding(body: Body) -> Iterator[str]:
    if has_lone_surrogate(body):
        yield (
            "We could not parse the JSON body of your request. The OpenAI API expects a JSON "
            "payload, "
            "but what was sent was not valid JSON."
        )


def _order(body: Body) -> Iterator[str]:
    """OpenAI itself is less strict; the strictest host of this format sets the rule."""
    talk = [
        message["role"]
        for message in body["messages"]
        if message["role"] not in ("system", "developer")
    ]
    if talk[:1] == ["assistant"] or not talk:
        yield "Invalid parameter: the first message after the system message must have role 'user'."
    if talk[-1:] == ["assistant"]:
        yield "Invalid parameter: the last message must have role 'user' or 'tool'."


def _contents(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        place, content = f"messages[{index}].content", message.get("content")
        if message["role"] == "tool" or (content is None and message.get("tool_calls")):
            continue
        if content is None:
            yield f"Invalid value for 'content': expected a string, got null. - '{place}'"
        elif not content:
            yield TEXT_TOO_SHORT.format(place=place)
        for at, part in enumerate(content if isinstance(content, list) else []):
            if part.get("type") == "text" and not part.get("text"):
                yield TEXT_TOO_SHORT.format(place=f"{place}[{at}].text")


def _pictures(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        content = message.get("content")
        for at, part in enumerate(content if isinstance(content, list) else []):
            place, kind = f"messages[{index}].content[{at}]", part.get("type")
            if kind != "text" and message["role"] != "user":
                yield f"Invalid value: '{kind}'. Supported values are: 'text'. - '{place}.type'"
            elif kind == "image_url":
                yield from openai_pictures(place, [str(part["image_url"].get("url"))])
            elif kind == "file":
                yield from openai_pictures(place, [str(part["file"].get("file_data"))])
            elif kind != "text":
                yield (
                    f"Invalid value: '{kind}'. Supported values are: 'text', 'image_url' and "
                    "'file'."
                )


def _calls_answered(body: Body) -> Iterator[str]:
    messages = body["messages"]
    for index, message in enumerate(messages):
        answers = _answers_after(messages, index)
        missing = [
            call["id"] for call in message.get("tool_calls") or [] if call["id"] not in answers
        ]
        if missing:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages "
                "responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                + ", ".join(missing)
            )


def _answers_after(messages: Sequence[Mapping[str, Any]], index: int) -> list[str]:
    answers = []
    for message in messages[index + 1 :]:
        if message["role"] != "tool":
            break
        answers.append(str(message["tool_call_id"]))
    return answers


def _results_expected(body: Body) -> Iterator[str]:
    call_ids: list[str] = []
    for index, message in enumerate(body["messages"]):
        if message["role"] != "tool":
            call_ids = [call["id"] for call in message.get("tool_calls") or []]
            yield from _answered_twice(_answers_after(body["messages"], index), index)
        elif not call_ids:
            yield (
                "Invalid parameter: messages with role 'tool' must be a response to a "
                "preceeding message "
                f"with 'tool_calls'. - 'messages[{index}].role'"
            )
        elif message["tool_call_id"] not in call_ids:
            yield (
                f"Invalid parameter: 'tool_call_id' of '{message['tool_call_id']}' not found in "
                "'tool_calls' "
                "of previous message."
            )


def _answered_twice(answers: Sequence[str], index: int) -> Iterator[str]:
    for again in twice(answers):
        yield (
            f"Duplicate value for 'tool_call_id' of '{again}' in the messages after "
            f"'messages[{index}]'."
        )


def _unique_ids(body: Body) -> Iterator[str]:
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or []]
    for again in twice(call["id"] for call in calls):
        yield f"Invalid 'tool_calls': duplicate id '{again}'."


def _tools_for_history(body: Body) -> Iterator[str]:
    """OpenAI accepts it; hosts that translate to Anthropic or Bedrock do not."""
    if not body.get("tools") and any(message.get("tool_calls") for message in body["messages"]):
        yield (
            "Missing required parameter: 'tools'. It must be given when 'messages' hold "
            "'tool_calls'."
        )


def _unknown_fields(body: Body) -> Iterator[str]:
    for field in body.keys() - _FIELDS:
        yield f"Unrecognized request argument supplied: {field}"


def _unknown_message_fields(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        for field in message.keys() - _MESSAGE_FIELDS[message["role"]]:
            yield f"Unknown parameter: 'messages[{index}].{field}'."
        for at, call in enumerate(message.get("tool_calls") or []):
            for field in call.keys() - _CALL_FIELDS:
                yield f"Unknown parameter: 'messages[{index}].tool_calls[{at}].{field}'."


def _effort(body: Body) -> Iterator[str]:
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in _EFFORTS:
        yield f"Invalid value: '{effort}'. Supported values are: {', '.join(map(repr, _EFFORTS))}."
    if effort is not None and str(body["model"]).startswith(_WITHOUT_EFFORT):
        yield "Unsupported parameter: 'reasoning_effort' is not supported with this model."


def _reasoning_models(body: Body) -> Iterator[str]:
    model = str(body["model"])
    if not is_openai_reasoning(model):
        return
    if body.get("max_tokens") is not None:
        yield (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
    if body.get("temperature") not in (None, 1):
        yield (
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this "
            "model. "
            "Only the default (1) value is supported."
        )
    if body.get("top_p") not in (None, 1):
        yield "Unsupported parameter: 'top_p' is not supported with this model."
    if (
        body.get("tools")
        and body.get("reasoning_effort") != "none"
        and wants_responses_for_tools(model)
    ):
        yield (
            f"Function tools with reasoning_effort are not supported for {model} in "
            "/v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        )


def _stream_options(body: Body) -> Iterator[str]:
    if body.get("stream_options") is not None and not body.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."


def _thought_signatures(body: Body) -> Iterator[str]:
    """Gemini checks the first call of each step, only in the current turn."""
    user_turns = [
        index for index, message in enumerate(body["messages"]) if message["role"] == "user"
    ]
    for message in body["messages"][user_turns[-1] if user_turns else 0 :]:
        for call in (message.get("tool_calls") or [])[:1]:
            google = (call.get("extra_content") or {}).get("google") or {}
            if not google.get("thought_signature"):
                yield "Function call is missing a thought_signature in functionCall parts."


_SHAPES: tuple[tuple[Rule, ...], ...] = (
    (kinds_rule(_KINDS, kind_words),),
    (_required,),
    (_roles,),
    (_calls_shape,),
)
_RULES: tuple[Rule, ...] = (
    _encoding,
    _calls_answered,
    _results_expected,
    _unique_ids,
    _contents,
    _pictures,
    _order,
    partial(function_tools, nested=True),
    _tools_for_history,
    _effort,
    _reasoning_models,
    _stream_options,
)
