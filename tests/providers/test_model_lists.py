"""Providers' lists of models over real HTTP: six kinds of servers, and servers that fail."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parley.models.events import Price
from parley.models.model_list import MOST_MODELS, ModelList
from parley.providers.client import ProviderClient
from parley.providers.model_lists import ListFailure, ModelLists
from parley.settings.values import ProviderSettings
from tests.model_servers import KINDS, Answer, ModelServer

KEY = "a-Secret-of-no-known-shape-0123456789"


async def no_demo() -> str:
    raise AssertionError("there is no demo here")


@asynccontextmanager
async def lists_of(
    kind: str,
    home: Path,
    answer: Callable[[str, Mapping[str, str], Any], Answer] | None = None,
    *,
    seconds: float = 20,
) -> AsyncIterator[tuple[ModelLists, ProviderSettings, ModelServer]]:
    """A provider of this kind, and the lists of a process in this home."""
    end, usual = KINDS[kind]
    async with ModelServer(answer or usual) as server:
        provider = ProviderSettings(
            "near",
            "anthropic" if kind == "anthropic" else "openai",
            server.url + end,
            api_key_env="NEAR_KEY",
            model_list=kind if kind in ("gemini", "ollama") else "auto",  # type: ignore[arg-type]
        )
        environ = {"NEAR_KEY": KEY, "XDG_STATE_HOME": str(home), "HOME": str(home)}
        client = ProviderClient(environ, no_demo)
        lists = ModelLists(client, environ, seconds=seconds)
        try:
            yield lists, provider, server
        finally:
            await lists.close()
            await client.close()


def facts(listed: ModelList) -> dict[str, tuple[Any, ...]]:
    return {
        model.id: (model.facts.window, model.facts.max_output, model.facts.price)
        for model in listed.models
    }


WINDOW = (1_048_576, 65_536, None)
CLAUDE = (2_000_000, 256_000, None)
NOTHING = (None, None, None)


@pytest.mark.parametrize(
    ("kind", "models", "requests"),
    [
        (
            "anthropic",
            dict.fromkeys(
                ("claude-nova-1", "claude-opus-7", "claude-sonnet-4-5", "claude-sonnet-5-5"), CLAUDE
            ),
            ["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=claude-nova-1"],
        ),
        (
            "openai",
            dict.fromkeys(
                (
                    *("gpt-5", "gpt-5.9", "gpt-6.1-sol", "gpt-6.2-astra", "gpt-6.2-sol"),
                    "gpt-6.2-sol-2026-11-01",
                ),
                NOTHING,
            ),
            ["/v1/models"],
        ),
        (
            "gemini",
            {"gemini-4-argon": WINDOW, "gemini-pro-latest": WINDOW},
            [
                "/v1beta/models?pageSize=1000",
                "/v1beta/models?pageSize=1000&pageToken=1",
                "/v1beta/models?pageSize=1000&pageToken=2",
            ],
        ),
        (
            "openrouter",
            {
                "openrouter/auto": (2_000_000, None, None),
                "qwen/qwen4-max": (262_144, 32_768, Price(2.0, 10.0, 0.2)),
            },
            ["/api/v1/models"],
        ),
        (
            "ollama",
            {"llama3.1:latest": (131_072, None, None), "qwen4:8b": (16_384, None, None)},
            ["/api/tags", "/api/show", "/api/show", "/api/show"],
        ),
        ("other", {"one": NOTHING, "two": (8192, None, None)}, ["/v1/models"]),
    ],
)
async def test_each_kind_of_server_lists_its_models(
    tmp_path: Path, kind: str, models: dict[str, Any], requests: list[str]
) -> None:
    async with lists_of(kind, tmp_path) as (lists, provider, server):
        assert lists.known(provider) == ModelList()
        listed = await lists.fetch(provider)
        assert isinstance(listed, ModelList)
        assert facts(listed) == models
        assert listed.problem == ""
        assert server.requests == requests
        is_native = kind == "gemini"
        for head in server.heads:
            assert (f"bearer {KEY}".lower() in head) is not is_native
            assert (f"x-goog-api-key: {KEY}".lower() in head) is is_native
        # Another process reads the file, and asks nobody.
        other = ModelLists(ProviderClient({}, no_demo), {"XDG_STATE_HOME": str(tmp_path)})
        assert other.known(provider) == listed
        assert other.is_fresh(provider)
        assert len(server.requests) == len(requests)


async def test_the_list_is_kept_in_a_private_file_without_key_and_address(tmp_path: Path) -> None:
    async with lists_of("openai", tmp_path) as (lists, provider, server):
        await lists.fetch(provider)
        (path,) = (tmp_path / "parley" / "models").iterdir()
        content = path.read_text(encoding="utf-8")
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0
        assert KEY not in content
        assert "127.0.0.1" not in content
        assert lists.known(replace(provider, base_url="http://127.0.0.1:1/v1")) == ModelList()
        # A day later, the list is still known, and asked for again.
        table = json.loads(content)
        path.write_text(json.dumps(table | {"at": time.time() - 90_000}), encoding="utf-8")
        client = ProviderClient({"NEAR_KEY": KEY}, no_demo)
        later = ModelLists(client, {"XDG_STATE_HOME": str(tmp_path)})
        assert len(later.known(provider).models) == 6
        assert not later.is_fresh(provider)
        await later.prepare(provider, waits=False)
        assert not later.is_fresh(provider)  # nobody waits for it
        await later.fetch(provider)
        assert later.is_fresh(provider)
        assert server.requests == ["/v1/models"] * 2
        await later.close()
        await client.close()


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "[" * 100_000, '{"models": 1}', '{"at": 9e99}', "{}", " " * 9_000_000],
)
async def test_a_damaged_file_is_no_list(tmp_path: Path, content: str) -> None:
    async with lists_of("openai", tmp_path) as (lists, provider, _):
        await lists.fetch(provider)
        (path,) = (tmp_path / "parley" / "models").iterdir()
        path.write_text(content, encoding="utf-8")
        other = ModelLists(ProviderClient({}, no_demo), {"XDG_STATE_HOME": str(tmp_path)})
        assert other.known(provider).models == ()
        assert not other.is_fresh(provider)


def always(status: int, content: Any) -> Callable[[str, Mapping[str, str], Any], Answer]:
    return lambda path, query, body: (status, content)


NAMES = [{"id": f"model-{number}", "object": "model"} for number in range(100_000)]


@pytest.mark.parametrize(
    ("status", "content", "line"),
    [
        (200, b"<html>", "unreadable list: "),
        (200, b"[" * 100_000, "unreadable list: "),
        (200, b"\xff\xfe", "unreadable list: "),
        (
            200,
            {"object": "list"},
            "unreadable list: it is not a list of models. Check the base URL",
        ),
        (200, {"data": {"id": "x"}}, "unreadable list: it is not a list of models. "),
        (200, {"data": [1, None, "x", []]}, "unreadable list: it is not a list of models. "),
        (200, "text", "unreadable list: it is not a list of models. "),
        (200, b" " * 17_000_000, "it sent more than 16.0 MB. Check the network"),
        (
            401,
            {"error": {"message": f"bad key {KEY}"}},
            "it answered 401: bad key …. Check NEAR_KEY",
        ),
        (404, b"nothing here", "model_list to off"),
        (500, b"<h1>down</h1>", "it answered 500: down. Check the network"),
    ],
)
async def test_a_broken_list_costs_one_line(
    tmp_path: Path, status: int, content: Any, line: str
) -> None:
    async with lists_of("openai", tmp_path, always(status, content)) as (lists, provider, server):
        failure = await lists.fetch(provider)
        assert isinstance(failure, ListFailure)
        assert line in str(failure)
        assert str(failure).isprintable()
        assert len(str(failure)) < 300
        assert KEY not in str(failure)
        assert lists.known(provider) == ModelList()
        await lists.prepare(provider, waits=True)
        assert len(server.requests) == 1  # the next question does not try at once


async def test_hostile_entries_are_left_out_and_odd_values_count_as_missing(tmp_path: Path) -> None:
    odd: list[Any] = [True, -1, 0, 2**60, 1.5, "many", [], {}, None]
    entries: list[Any] = [
        *({"id": name} for name in ("", "a b", "x\ny", "]", "x\u202ey", "\x1b[2J", "n" * 201, 7)),
        *(
            {"id": f"odd-{n}", "context_length": value, "created": value, "pricing": value}
            for n, value in enumerate(odd)
        ),
        {"id": "free", "pricing": {"prompt": "0", "completion": 0}, "lifecycle": "odd"},
        {"id": "dear", "pricing": {"prompt": "nan", "completion": "inf"}, "retires_at": "soon"},
        {"id": "free"},
    ]
    async with lists_of("openai", tmp_path, always(200, {"data": entries})) as (lists, provider, _):
        listed = await lists.fetch(provider)
        assert isinstance(listed, ModelList)
        assert [model.id for model in listed.models] == [
            "dear",
            "free",
            *(f"odd-{n}" for n in range(9)),
        ]
        assert {model.facts.window for model in listed.models} == {None}
        assert {model.ends for model in listed.models} == {""}


async def test_a_slow_list_is_given_up_and_a_question_waits_less(tmp_path: Path) -> None:
    async with lists_of("openai", tmp_path, lambda *_: None, seconds=0.2) as (lists, provider, _):
        failure = await lists.fetch(provider)
        assert str(failure) == "no list within 0.2 s. Try again later, or check the base URL"
    async with lists_of("openai", tmp_path, lambda *_: None) as (lists, provider, _):
        began = time.monotonic()
        await lists.prepare(provider, waits=True)
        assert 1.5 < time.monotonic() - began < 10
        await lists.prepare(provider, waits=False)


async def test_a_huge_list_is_cut(tmp_path: Path) -> None:
    async with lists_of("openai", tmp_path, always(200, {"data": NAMES})) as (lists, provider, _):
        listed = await lists.fetch(provider)
        assert isinstance(listed, ModelList)
        assert len(listed.models) == MOST_MODELS
        assert listed.problem == "it has more than 5000 models; the others are left out"
        other = ModelLists(ProviderClient({}, no_demo), {"XDG_STATE_HOME": str(tmp_path)})
        assert other.known(provider) == listed


async def test_endless_pages_end(tmp_path: Path) -> None:
    numbers = count()

    def endless(path: str, query: Mapping[str, str], body: Any) -> Answer:
        name = f"model-{next(numbers)}"
        return 200, {"data": [{"id": name}], "has_more": True, "last_id": name}

    async with lists_of("anthropic", tmp_path, endless) as (lists, provider, server):
        listed = await lists.fetch(provider)
        assert isinstance(listed, ModelList)
        assert len(server.requests) == len(listed.models) == 20
        assert listed.problem == "it continues after 20 models; the others are left out"
    same = {"data": [{"id": "a"}], "has_more": True, "last_id": "a"}
    async with lists_of("anthropic", tmp_path, always(200, same)) as (lists, provider, server):
        listed = await lists.fetch(provider)
        assert isinstance(listed, ModelList)
        assert (len(server.requests), listed.problem) == (
            *(2, "it repeats its pages, which are left out"),
        )


async def test_all_who_ask_at_the_same_time_share_a_request(tmp_path: Path) -> None:
    async with lists_of("openai", tmp_path) as (lists, provider, server):
        one, two, _ = await asyncio.gather(
            lists.fetch(provider), lists.fetch(provider), lists.prepare(provider, waits=True)
        )
        assert one == two
        assert server.requests == ["/v1/models"]


async def test_a_folder_that_cannot_be_made_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "parley").write_text("in the way")
    async with lists_of("openai", tmp_path) as (lists, provider, _):
        listed = await lists.fetch(provider)
        assert listed == lists.known(provider) != ModelList()
        assert (tmp_path / "parley").is_file()
