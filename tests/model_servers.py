"""Servers that list models in the shapes of the real ones, or fail to do so, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from tests.local_server import LocalServer, on_a_thread

Answer: TypeAlias = tuple[int, Any] | None
"""A status and a body, as bytes or JSON; None for silence."""


class ModelServer(LocalServer):
    """Answers by `answer`, which receives the path, the query and the body; keeps the requests."""

    def __init__(self, answer: Callable[[str, Mapping[str, str], Any], Answer]) -> None:
        super().__init__()
        self.answer = answer
        self.requests = list[str]()
        """The paths with their queries."""
        self.heads = list[str]()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.lower().split("\r\n")
            length = next((line for line in lines if line.startswith("content-length:")), ":0")
            body = json.loads(await reader.readexactly(int(length.split(":")[1])) or b"null")
            target = head.split(" ", 2)[1]
            self.requests.append(target)
            self.heads.append(head.lower())
            parts = urlsplit(target)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            answer = self.answer(parts.path, query, body)
            if answer is None:
                await reader.read(1)
                return
            status, content = answer
            is_stream = isinstance(content, bytes) and content.startswith(b"data: ")
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            writer.write(
                f"HTTP/1.1 {status} x\r\n"
                f"content-type: {'text/event-stream' if is_stream else 'application/json'}\r\n"
                f"content-length: {len(data)}\r\n\r\n".encode()
                + data
            )
            await writer.drain()


def supported(*names: str, of: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"supported": name in names} for name in of}


def claude(model: str, line: str, created: str, **more: Any) -> dict[str, Any]:
    """A model as Anthropic lists it."""
    types = supported("adaptive", of=("adaptive", "enabled", "disabled", "between_tools"))
    efforts = supported("low", "high", of=("low", "medium", "high", "xhigh", "max"))
    capabilities = {
        "image_input": {"supported": True},
        "pdf_input": {"supported": False},
        "server_tools": {"supported": True, "web_search": {"supported": True}},
        "thinking": {"supported": True, "types": types},
        "effort": {"supported": True, **efforts},
    }
    return {
        "type": "model",
        "id": model,
        "display_name": model.title(),
        "created_at": created,
        "line": line,
        "lifecycle": "active",
        "retires_at": None,
        "max_input_tokens": 2_000_000,
        "max_tokens": 256_000,
        "capabilities": capabilities,
    } | more


CLAUDES = [
    claude("claude-opus-7", "opus", "2027-01-01T00:00:00Z"),
    claude("claude-nova-1", "sonnet", "2027-02-01T00:00:00Z"),
    claude("claude-sonnet-5-5", "sonnet", "2026-09-01T00:00:00Z"),
    claude(
        "claude-sonnet-4-5",
        "sonnet",
        "2025-09-29T00:00:00Z",
        lifecycle="deprecated",
        deprecated_at="2026-10-01T00:00:00Z",
        retires_at="2027-03-01T00:00:00Z",
    ),
]


def anthropic(path: str, query: Mapping[str, str], body: Any) -> Answer:
    """Anthropic's list, with two models on each page."""
    if path != "/v1/models":
        return 404, {}
    names = [model["id"] for model in CLAUDES]
    first = names.index(query["after_id"]) + 1 if "after_id" in query else 0
    page = CLAUDES[first : first + 2]
    more = first + 2 < len(CLAUDES)
    return 200, {"data": page, "has_more": more, "last_id": page[-1]["id"]}


def openai(path: str, query: Mapping[str, str], body: Any) -> Answer:
    entry = {"object": "model", "owned_by": "openai"}
    models = [
        {"id": "gpt-6.1-sol", "created": 1_790_000_000},
        {"id": "gpt-6.2-sol", "created": 1_795_000_000},
        {"id": "gpt-6.2-sol-2026-11-01", "created": 1_795_000_001},
        {"id": "gpt-6.2-astra", "created": 1_796_000_000},
        {"id": "gpt-5", "created": 1_750_000_000, "shutdown_date": "2026-12-11"},
        {"id": "gpt-5.9", "created": 1_780_000_000, "shutdown_date": None},
    ]
    is_there = path == "/v1/models"
    return (
        (200, {"object": "list", "data": [entry | each for each in models]}) if is_there else None
    )


def gemini(path: str, query: Mapping[str, str], body: Any) -> Answer:
    """Gemini's native list, with one model on each page."""
    models = [
        {"name": "models/gemini-4-argon", "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/gemini-embedding", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/gemini-pro-latest", "supportedGenerationMethods": ["generateContent"]},
    ]
    limits = {"inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}
    if path != "/v1beta/models":
        return 404, {}
    at = int(query.get("pageToken", "0"))
    following = {"nextPageToken": str(at + 1)} if at + 1 < len(models) else {}
    return 200, {"models": [models[at] | limits], **following}


def openrouter(path: str, query: Mapping[str, str], body: Any) -> Answer:
    pricing = {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "0.0000002"}
    modalities = {"input_modalities": ["text", "image"], "output_modalities": ["text"]}
    models = [
        {
            "id": "qwen/qwen4-max",
            "created": 1_790_000_000,
            "context_length": 262_144,
            "architecture": modalities,
            "pricing": pricing,
            "top_provider": {"context_length": 262_144, "max_completion_tokens": 32_768},
        },
        {
            "id": "openrouter/auto",
            "context_length": 2_000_000,
            "pricing": dict.fromkeys(pricing, "-1"),
        },
        {"id": "flux/draw", "architecture": {"output_modalities": ["image"]}},
    ]
    return (200, {"data": models}) if path == "/api/v1/models" else None


def ollama(path: str, query: Mapping[str, str], body: Any) -> Answer:
    match path, body:
        case "/api/tags", _:
            tags = [
                {"name": "llama3.1:latest", "modified_at": "2026-01-01T00:00:00.1+02:00"},
                {"name": "qwen4:8b", "modified_at": "2026-06-01T00:00:00Z"},
                {"name": "nomic-embed:latest", "modified_at": "2026-07-01T00:00:00Z"},
            ]
            return 200, {"models": tags}
        case "/api/show", {"model": "qwen4:8b"}:
            return 200, {
                "capabilities": ["completion", "tools", "thinking", "vision"],
                "thinking": {"values": ["none", "low", "high"], "default": "low"},
                "model_info": {"general.architecture": "qwen4", "qwen4.context_length": 262_144},
                "parameters": 'stop  "<|end|>"\nnum_ctx                        16384\n',
            }
        case "/api/show", {"model": "llama3.1:latest"}:
            return 200, {
                "capabilities": ["completion", "tools"],
                "model_info": {"llama.context_length": 131_072},
            }
        case "/api/show", {"model": "nomic-embed:latest"}:
            return 200, {"capabilities": ["embedding"]}
        case _:
            return 404, {"error": "no such model"}


def other(path: str, query: Mapping[str, str], body: Any) -> Answer:
    """litellm, LM Studio and llama.cpp: names, and sometimes a window."""
    models = [{"id": "one", "object": "model"}, {"id": "two", "meta": {"n_ctx_train": 8192}}]
    return (200, {"data": models}) if path == "/v1/models" else None


KINDS: dict[str, tuple[str, Callable[[str, Mapping[str, str], Any], Answer]]] = {
    "anthropic": ("", anthropic),
    "openai": ("/v1", openai),
    "gemini": ("/v1beta/openai/", gemini),
    "openrouter": ("/api/v1", openrouter),
    "ollama": ("/v1", ollama),
    "other": ("/v1", other),
}
"""Each kind of server, with the end of its address."""


@contextmanager
def served(*kinds: str) -> Iterator[list[str]]:
    """The addresses of servers of these kinds, on a thread of their own; `silent` never answers."""
    urls = list[str]()

    @asynccontextmanager
    async def servers() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for kind in kinds:
                end, answer = KINDS.get(kind, ("/v1", lambda *_: None))
                urls.append((await stack.enter_async_context(ModelServer(answer))).url + end)
            yield

    with on_a_thread(servers()):
        yield urls
