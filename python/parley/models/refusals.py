"""Providers' refusals: whether and how to change a refused request so that it may be accepted.

Providers explain refusals only in text, and each provider words them differently. Knows neither
clients nor files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.models.body_fields import OF_USER, REFUSABLE
from parley.models.context_window import Limit
from parley.models.formats import FORMATS
from parley.models.request import Request
from parley.models.searches import WEB_SEARCH
from parley.text import counted
from parley.tools.catalogue import Tool

TOO_LONG = "the chat is larger than the model's context window"
SHORTEN = "shorten the question or the system prompt, lower max_tokens, or offer fewer tools"

# Providers' wordings, read 2026-11-22 and 2026-11-23: "prompt is too long: 202128 tokens > 200000
# maximum" (Anthropic, github.com/stackblitz/bolt.new/issues/1748), "input length and `max_tokens`
# exceed context limit: 178959 + 64000" (Anthropic, github.com/docker/docker-agent/issues/569),
# "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946
# in the messages, 10000 in the completion)" (vLLM, github.com/vllm-project/vllm/issues/20409),
# "your messages resulted in 142422 tokens" (OpenAI,
# github.com/brianpetro/obsidian-smart-connections/issues/867), "The input token count (3475108)
# exceeds the maximum number of tokens allowed (1048576)" (Gemini,
# github.com/google-gemini/gemini-cli/issues/4231), "the request exceeds the available context size"
# (github.com/ggml-org/llama.cpp/pull/15780), "Requested tokens (2285) exceed context window of
# 2048" (llama-cpp-python, github.com/fedora-copr/logdetective-website/pull/193). With status 429,
# although waiting does not help: "Request too large for gpt-4o on tokens per min (TPM): Limit
# 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully."
# (OpenAI, github.com/vanna-ai/vanna-flask/issues/11). For the other wordings, no source was kept.
_TOO_LONG = late_pattern(
    r"prompt is too long"  # Anthropic
    r"|exceed(s|ed)? (the |its )?(model'?s )?(available |maximum )?context"  # Anthropic, OpenAI, llama.cpp
    r"|maximum context length"  # OpenAI, vLLM
    r"|context_length_exceeded"
    r"|input token count .* exceeds"  # Gemini
    r"|input length .* exceeds? "  # Ollama
    r"|request too large for .*tokens must be reduced",  # OpenAI
    re.IGNORECASE | re.DOTALL,
)
_N = r"(\d{1,12})"
_LIMIT = late_pattern(
    rf"> {_N}"  # Anthropic
    rf"|maximum context length (?:is|of) {_N}"  # OpenAI, vLLM
    rf"|tokens allowed \({_N}\)"  # Gemini
    rf"|context (?:size|window|length)(?: of| is)? \(?{_N}"  # llama.cpp and related servers
    rf"|\bLimit {_N}, Requested",  # OpenAI
    re.IGNORECASE,
)
_PROMPT = late_pattern(
    rf"{_N}(?: tokens)?(?: \+ \d+)? > "  # Anthropic
    rf"|\({_N} in the messages"  # OpenAI, vLLM
    rf"|resulted in {_N} tokens"  # OpenAI
    rf"|token count \({_N}\)"  # Gemini
    rf"|request \({_N} tokens\)|requested tokens \({_N}\)"  # llama.cpp and related servers
    rf"|, Requested {_N}",  # OpenAI
    re.IGNORECASE,
)
_REPLY = late_pattern(
    rf"\d \+ {_N} >"  # Anthropic
    rf"|, {_N} in the completion",  # OpenAI, vLLM
    re.IGNORECASE,
)
_TOO_LARGE = 413
"""The status that proxies send for requests that are too large, with any text."""


def says_too_long(words: str) -> bool:
    """Whether a refusal means that the conversation exceeds the model's context window."""
    return bool(_TOO_LONG.search(words))


def limit_in(words: str) -> Limit | None:
    """The limit that a refusal states; None if it states no limit."""
    tokens = _number(_LIMIT, words)
    return Limit(tokens, _number(_PROMPT, words), _number(_REPLY, words)) if tokens else None


def _number(pattern: re.Pattern[str], words: str) -> int | None:
    match = pattern.search(words)
    return next((int(number) for number in match.groups() if number), None) if match else None


@frozen
class Amendment:
    """A request that was changed after a refusal, so that it may be accepted.

    `status` is shown while the request runs; `aside` is the message for the user.
    """

    request: Request
    status: str
    aside: str = ""


def amended(
    request: Request,
    api: str,
    status: int | None,
    words: str,
    field_in: Callable[[Request, str], str | None] = lambda *_: None,
) -> Amendment | None:
    """How to repeat a request that was refused with this text; None if unknown.

    `api` is the format that was used; "" if the user chose it. `field_in` finds the field of the
    request's body that the text names. Each change is either made only once
    or makes the request smaller every time.
    """
    if status == 400 and request.keep_searches and _ABOUT_EARLIER_SEARCHES.search(words):
        return Amendment(
            replace(request, keep_searches=False), "Asking again without earlier searches..."
        )
    if status == 400 and request.keep_thinking and _ABOUT_THOUGHTS.search(words):
        return Amendment(
            replace(request, keep_thinking=False), "Asking again without earlier thoughts..."
        )
    if (
        status in _OF_CONTENT
        and _ABOUT_PICTURES.search(words)
        and (images := frozenset(request.images(request.turns())))
    ):
        return _without_pictures(request, images, words)
    if status in _OF_TOOLS and (refused := _refused_tools(request, words)):
        return _without_tools(request, refused, words)
    if (says_too_long(words) or status == _TOO_LARGE) and (
        narrow := request.narrowed(limit_in(words))
    ):
        return Amendment(
            narrow, f"this chat is too long for {request.model}: asking with less of it..."
        )
    if request.api is None and (other := _other_api(request.model, api, status, words)):
        aside = (
            f"{request.model} is reached through {FORMATS[other].title}, as "
            f"{request.provider} requires"
        )
        return Amendment(
            replace(request, api=other), f"Asking through {FORMATS[other].title}...", aside
        )
    if status in _OF_SEARCH and request.web_search and _ABOUT_SEARCH.search(words):
        return _without_search(request, words)
    if status in _OF_FIELDS and (field := field_in(request, words)):
        return _without_field(request, field, words)
    return None


def crowding(request: Request) -> str:
    """The notice about the parts of a long chat that are not sent; "" if all parts are sent."""
    memory = request.memory()
    if memory.is_whole:
        return ""
    omissions = [
        (memory.results, "the results of {}", "call"),
        (memory.summaries, "all of {} except for the 📝: line", "exchange"),
        (memory.questions, "the answers in {} without a 📝: line", "exchange"),
        (memory.missing, "all of {}", "older exchange"),
    ]
    words = [text.format(counted(count, noun)) for count, text, noun in omissions if count]
    words += ["the middle of the longest texts in the last exchange"] if memory.is_cut else []
    return f"this chat is too long for {request.model}; not sent: {', '.join(words)}"


# "messages.17.content.0: Invalid `encrypted_content` in `search_result` block" (Anthropic, for
# content that this account cannot read; several projects quote it), "`web_search` tool use with id
# `srvtoolu_…` was found without a corresponding `web_search_tool_result` block" (Anthropic,
# github.com/AnswerDotAI/lisette/issues/108). Read 2026-11-26.
_ABOUT_EARLIER_SEARCHES = late_pattern(
    r"\bsearch_result\b|web_search_(?:tool_)?result|server_tool_use|`?web_search`? tool use with id",
    re.IGNORECASE,
)


# "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
# (platform.claude.com/docs/en/build-with-claude/preserved-thinking, November 2026); "Item 'rs_*' of
# type reasoning was provided without its required following item" (OpenAI,
# github.com/coder/mux/pull/59, 2026-11-22).
_ABOUT_THOUGHTS = late_pattern(
    r"signature"  # Anthropic and Gemini
    r"|redacted_thinking"
    r"|encrypted[ _]content"  # OpenAI
    r"|of type .?(reasoning|web_search_call).? was provided without",
    re.IGNORECASE,
)


# "Invalid content type. image_url is only supported by certain models." (OpenAI,
# github.com/browser-use/web-ui/issues/274), "this model does not support image input" and "this
# model is missing data required for image input" (Ollama, github.com/ollama/ollama/issues/17301,
# github.com/valentinfrlch/ha-llmvision/issues/691), "Invalid value: 'input_image'. Supported values
# are: 'input_text'." (github.com/can1357/oh-my-pi/issues/3421). For a single picture: "Could not
# process image", "At least one of the image dimensions exceed max allowed size: 8000 pixels"
# (Anthropic, github.com/anthropics/claude-code/issues/39534 and 4778). All read 2026-11-23.
_ABOUT_PICTURES = late_pattern(
    r"image|picture|\bvision\b|multi-?modal|mmproj|\bpdf\b|\bdocument\b|input_file", re.IGNORECASE
)
_OF_CONTENT = (400, 404, 413, 415, 422, 500)
"""The statuses that servers send if they refuse the content."""
_BLIND = late_pattern(
    r"only supported by certain models"
    r"|(does|do) not support (image|vision|multi-?modal)"
    r"|(image|vision|multi-?modal)\S*( \w+)? (is|are) not supported"
    r"|that support image input"
    r"|data required for image input"
    r"|at most 0 image"
    r"|not a multi-?modal model"
    r"|supported values are: .?input_text.?\."
    r"|unknown variant .?image_url",
    re.IGNORECASE,
)


def _without_pictures(request: Request, images: frozenset[str], words: str) -> Amendment:
    """Replace pictures with text: all pictures if the model cannot see any, otherwise only the
    pictures that were sent.
    """
    status = "Asking again with words instead of pictures..."
    if _BLIND.search(words):
        aside = f"{request.model} cannot see pictures, so Parley sends text instead"
        return Amendment(replace(request, is_blind=True), status, aside)
    refused = f"{request.provider} refused a picture ({words})"
    aside = f"{refused}, so Parley sends {request.model} text instead of the pictures so far"
    return Amendment(replace(request, refused=request.refused | images), status, aside)


# Providers' wordings, read 2026-11-24: "Invalid schema for function 'NAME': …" (OpenAI,
# github.com/gumloop/guMCP/pull/136), "invalid JSON schema for tool NAME,
# tools[24].function.parameters: …" (Groq, github.com/usestrix/strix/issues/1204),
# "tools.12.custom.input_schema: JSON schema is invalid" (Anthropic,
# github.com/anthropics/claude-code/issues/63673), "tools[0].function_declarations[5].parameters…"
# (Gemini, github.com/zed-industries/zed/issues/44875).
_TOOL_BY_NAME = late_pattern(
    r"schema for (?:function|tool) ['\"`]?([A-Za-z0-9_-]{1,64})", re.IGNORECASE
)
_TOOL_BY_NUMBER = late_pattern(
    r"\btools\[0\]\.function_?declarations\[(\d{1,4})\]"
    r"|\btools\.(\d{1,4})\."
    r"|\btools\[(\d{1,4})\](?!\.function_?declarations)",
    re.IGNORECASE,
)
_OF_TOOLS = (400, 422)


def _refused_tools(request: Request, words: str) -> Mapping[str, Tool]:
    """The tools that a refusal mentions, by their names on the wire."""
    sent = request.catalogue.in_full
    numbers = (int(next(filter(None, match.groups()))) for match in _TOOL_BY_NUMBER.finditer(words))
    names = {sent[number][0] for number in numbers if number < len(sent)}
    names |= {match[1] for match in _TOOL_BY_NAME.finditer(words)}
    return {name: tool for name, tool in sent if name in names}


def _without_tools(request: Request, refused: Mapping[str, Tool], words: str) -> Amendment:
    """The request without these tools."""
    is_one = len(refused) == 1
    named = f"the tool{'' if is_one else 's'} {', '.join(refused)}"
    refusal = f"{request.provider} refused {named} ({words})"
    aside = f"{refusal}, so Parley asks {request.model} without {'it' if is_one else 'them'}"
    return Amendment(
        request.without(frozenset(refused.values())), f"Asking again without {named}...", aside
    )


# "Hosted tool 'web_search_preview' is not supported with gpt-4.1-nano" and "The following tools
# cannot be used with reasoning.effort 'minimal': web_search" (OpenAI), "web search is not enabled
# for your organization" (Anthropic). Written from memory, without pages.
_ABOUT_SEARCH = late_pattern(r"web[ _-]?search(?!_call|_tool_result)", re.IGNORECASE)
_OF_SEARCH = (None, 400, 403, 404, 422)


def _without_search(request: Request, words: str) -> Amendment:
    """The request without the provider's own search."""
    aside = (
        f"{request.provider} refused to search the web ({words}), so Parley asks {request.model} "
        "without it"
    )
    fields = request.refused_fields | {WEB_SEARCH}
    return Amendment(
        replace(request, web_search=False, refused_fields=fields),
        "Asking again without web search...",
        aside,
    )


_OF_FIELDS = (None, 400, 422)
"""The statuses of refused fields; None if the refusal came in the stream."""


def _without_field(request: Request, field: str, words: str) -> Amendment | None:
    """The request without this field of its body; None if it was left out before."""
    if field in request.refused_fields:
        return None
    name = field.partition("=")[0]
    of_user = name.removeprefix(OF_USER)
    setting = "" if name != of_user else REFUSABLE.get(name, "")
    what = f"the setting `{setting}`" if setting else f"the parameter `{of_user}`"
    aside = f"{request.provider} refused {what} ({words}): Parley asks {request.model} without it"
    return Amendment(
        replace(request, refused_fields=request.refused_fields | {field}),
        f"Asking again without {what}..." if setting or name != of_user else "Asking again...",
        aside if setting or name != of_user else "",
    )


def _other_api(model: str, api: str, status: int | None, words: str) -> str | None:
    """The format that a refusal asks for; None if it does not ask for a format."""
    refused = FORMATS.get(api)
    if refused is None or status not in (400, 404):
        return None
    return refused.other if refused.is_for_other(model, status, words) else None
