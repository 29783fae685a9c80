"""Fetches providers' lists of models, and keeps each for a day in a private file.

All limits are here: pages, bytes, models and seconds. If a list cannot be fetched, one line says
so. Knows how each kind of server is asked; `models/model_list.py` knows the shapes of the answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from parley.bounded_files import whole
from parley.errors import ModelError
from parley.frozen import frozen
from parley.iterators import closing
from parley.models.formats import ACP, PACKAGE
from parley.models.model_list import (
    MOST_MODELS,
    ListedModel,
    ListPage,
    ModelList,
    complete_list,
    is_model_name,
    list_page,
    with_details,
)
from parley.paths import private_file, private_folder, state_folder
from parley.providers.client import ProviderClient
from parley.providers.provider_errors import bounded
from parley.settings.values import ProviderSettings
from parley.tables import NO_VALUE, TableReader

FRESH_S = 24 * 3600.0
LISTING_S = 10.0
"""The maximum number of seconds for a list with all its pages."""
SHORT_S = 2.0
"""The maximum number of seconds for which a question waits for a list."""
_PAUSE_S = 60.0
"""The number of seconds after a failure for which no question waits again."""
_MOST_BYTES = 16_000_000
_MOST_PAGES = 20
_MOST_SHOWN = 60
"""How many of Ollama's models are asked for their details, because each is a request."""
_AT_ONCE = 4
_MOST_SAID = 120
_MOST_OF_A_FILE = 8_000_000
_ANTHROPIC_PAGE = "/v1/models?limit=1000"


@frozen
class ListFailure:
    """Why a provider's list cannot be fetched, and what to do, on one line each."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}. {self.remedy}" if self.remedy else self.why


class ModelLists:
    """The lists of all providers, by provider and address. One for each process."""

    def __init__(
        self,
        client: ProviderClient,
        environ: Mapping[str, str],
        *,
        seconds: float = LISTING_S,
    ) -> None:
        """The files are in the state folder."""
        self._client = client
        self._folder = state_folder(environ) / "models"
        self._seconds = seconds
        self._known: dict[str, ModelList] = {}
        self._read = set[str]()
        self._tasks: dict[str, asyncio.Task[ModelList | ListFailure]] = {}
        self._failed: dict[str, float] = {}

    def lists(self, provider: ProviderSettings) -> bool:
        """Whether this provider can list models at all."""
        is_own = provider.builtin or provider.kind in (PACKAGE, ACP)
        return not is_own and provider.model_list != "off"

    def known(self, provider: ProviderSettings) -> ModelList:
        """The list as last fetched, of any age; empty if there is none. Sends nothing."""
        if not self.lists(provider):
            return ModelList()
        key = self._key(provider)
        if key not in self._read:
            self._read.add(key)
            if stored := _stored(self._path(key)):
                self._known.setdefault(key, stored)
        return self._known.get(key, ModelList())

    def is_fresh(self, provider: ProviderSettings) -> bool:
        """Whether the list is known and at most a day old."""
        return 0 <= time.time() - self.known(provider).at < FRESH_S

    async def fetch(self, provider: ProviderSettings) -> ModelList | ListFailure:
        """Fetch the list, only once for all simultaneous callers."""
        return await asyncio.shield(self._task(provider))

    async def prepare(self, provider: ProviderSettings, *, waits: bool) -> None:
        """Refresh a list that is missing or too old, in the background; if `waits` and there is
        none, wait for it for a short time.
        """
        if not self.lists(provider) or self.is_fresh(provider):
            return
        failed = self._failed.get(self._key(provider))
        if failed is not None and time.monotonic() - failed < _PAUSE_S:
            return
        task = self._task(provider)
        if waits and not self.known(provider).models:
            with suppress(ModelError):
                await self._client.key(provider)  # imports the SDK, which the question needs, too
            await asyncio.wait({task}, timeout=SHORT_S)

    async def close(self) -> None:
        """Stop fetching."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _task(self, provider: ProviderSettings) -> asyncio.Task[ModelList | ListFailure]:
        key = self._key(provider)
        if key not in self._tasks:
            task = asyncio.ensure_future(self._fetched(provider, key))
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return self._tasks[key]

    async def _fetched(self, provider: ProviderSettings, key: str) -> ModelList | ListFailure:
        try:
            await self._client.key(provider)  # imports the SDK, which is not the provider's delay
            async with asyncio.timeout(self._seconds):
                listed = await self._all_pages(provider)
        except TimeoutError:
            failure = ListFailure(
                f"no list within {self._seconds:g} s", "Try again later, or check the base URL"
            )
        except ModelError as error:
            failure = ListFailure(_why(error, provider), _remedy(error, provider))
        except (ValueError, RecursionError) as error:
            failure = ListFailure(f"unreadable list: {bounded(str(error))}", "Check the base URL")
        else:
            self._known[key] = listed
            self._read.add(key)
            self._failed.pop(key, None)
            await asyncio.to_thread(_store, self._path(key), listed)
            return listed
        self._failed[key] = time.monotonic()
        return failure

    async def _all_pages(self, provider: ProviderSettings) -> ModelList:
        models, problem, count, asked = list[ListedModel](), "", 0, set[tuple[str, str]]()
        async with closing(self._pages(provider)) as pages:
            async for page in pages:
                models += page.models
                count += 1
                if page.following is None:
                    break
                if page.following in asked:
                    problem = "it repeats its pages, which are left out"
                    break
                asked.add(page.following)
                if count == _MOST_PAGES or len(models) > MOST_MODELS:
                    problem = f"it continues after {len(models)} models; the others are left out"
                    break
        if provider.model_list == "ollama":
            models = await self._with_details(provider, models)
        return complete_list(models, time.time(), problem)

    async def _pages(self, provider: ProviderSettings) -> AsyncIterator[ListPage]:
        path, headers = self._place(provider), dict[str, str]()
        if provider.model_list == "gemini" and not path.startswith("/"):
            # The native list has the limits, and takes the key in a header of its own:
            # "x-goog-api-key" (ai.google.dev/api, google-genai 3.4, _api_client.py, 2026-11-24).
            headers = {"x-goog-api-key": await self._client.key(provider)}
        query = ""
        while True:
            page = await asyncio.to_thread(
                _page, await self._client.read(provider, path + query, _MOST_BYTES, headers=headers)
            )
            yield page
            if page.following is None:
                return
            name, value = page.following
            query = f"{'&' if '?' in path else '?'}{name}={quote(value, safe='')}"

    def _place(self, provider: ProviderSettings) -> str:
        """The path of the list below the provider's address, or a whole address."""
        base = self._client.url(provider, "")
        if provider.kind == "anthropic":
            return _ANTHROPIC_PAGE
        if provider.model_list == "gemini" and base.endswith("/openai"):
            return f"{base.removesuffix('/openai')}/models?pageSize=1000"
        if provider.model_list == "ollama" and base.endswith("/v1"):
            return f"{base.removesuffix('/v1')}/api/tags"
        return "/models"

    async def _with_details(
        self, provider: ProviderSettings, models: Iterable[ListedModel]
    ) -> list[ListedModel]:
        """Ollama's models with their facts; the newest are asked first."""
        place, room = self._place(provider), asyncio.Semaphore(_AT_ONCE)
        newest = sorted(models, key=lambda model: -model.created)
        if place.startswith("/"):
            return newest

        async def detailed(model: ListedModel) -> ListedModel | None:
            body, path = {"model": model.id}, place.replace("/api/tags", "/api/show")
            async with room:
                try:
                    raw = await self._client.read(provider, path, _MOST_BYTES, body=body)
                    return with_details(model, await asyncio.to_thread(json.loads, raw))
                except (ModelError, ValueError, RecursionError):
                    return model  # the name is enough

        shown = await asyncio.gather(*map(detailed, newest[:_MOST_SHOWN]))
        return [*filter(None, shown), *newest[_MOST_SHOWN:]]

    def _key(self, provider: ProviderSettings) -> str:
        text = f"{provider.name}\n{provider.kind}\n{self._client.url(provider, '')}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def _page(content: bytes) -> ListPage:
    return list_page(json.loads(content))


def _why(error: ModelError, provider: ProviderSettings) -> str:
    name, said = f"{provider.name} ", error.words[:_MOST_SAID]
    why = error.reason.replace(name, "it ", 1) if error.reason.startswith(name) else error.reason
    return f"{why}: {said}" if said and error.status else why


def _remedy(error: ModelError, provider: ProviderSettings) -> str:
    own = "the key of your sign-in" if provider.signed_in else provider.key_variable
    key = bounded(own or "the key")
    match error.status:
        case 401 if provider.signed_in:
            return f"Sign in again: {provider.sign_in_command}"
        case 401 | 403:
            return f"Check {key}"
        case 404 | 405:
            return f"It may have no list: set providers.{bounded(provider.name)}.model_list to off"
        case _:
            return "Check the network and the base URL, or try again later"


# --- The files ------------------------------------------------------------------------------------


def _stored(path: Path) -> ModelList | None:
    """The list in a file; None if it is missing or damaged."""
    try:
        table = json.loads(whole(path, _MOST_OF_A_FILE))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(table, dict):
        return None
    reader = TableReader(None)
    listed = reader.record(ModelList, table)
    if listed is NO_VALUE or not isinstance(listed, ModelList) or listed.at > time.time():
        return None
    models = (model for model in listed.models if is_model_name(model.id))
    return complete_list(models, listed.at, listed.problem)


def _store(path: Path, listed: ModelList) -> None:
    new = path.with_suffix(f".{os.getpid()}.new")
    with suppress(OSError):  # a missing file costs only another request
        private_folder(path.parent)
        private_file(new).write_text(json.dumps(asdict(listed, dict_factory=_set)), "utf-8")
        new.replace(path)
    with suppress(OSError):
        new.unlink(missing_ok=True)


def _set(pairs: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    """A table without the values that are not set."""
    return {name: value for name, value in pairs if value is not None}
