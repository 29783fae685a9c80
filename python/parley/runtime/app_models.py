"""The lists of models of an app's providers: which model an agent means, and what the user sees.

Knows when a list is fetched; `providers` knows how.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from parley.chat.rounds import has_begun
from parley.chat.transcript import Transcript
from parley.models.model_choice import model_problem
from parley.models.model_list import ModelList, ProviderModels
from parley.providers.model_lists import ListFailure, ModelLists
from parley.settings.resolve import ListedAgent, agent_of, listed_agent
from parley.settings.values import Agent, ProviderSettings, Settings


class AppModels:
    """The models of one app; `settings` returns its current settings."""

    def __init__(
        self, lists: ModelLists, settings: Callable[[], Settings], environ: Mapping[str, str]
    ) -> None:
        self._lists = lists
        self._settings = settings
        self._environ = environ

    def listed(self, agent: Agent) -> ListedAgent:
        """An agent with its model, and the facts about it, from its provider's list as last
        fetched.
        """
        return listed_agent(agent, self.known(agent.provider))

    async def prepare(
        self, transcript: Transcript, chosen: str | None, *, is_new: bool = False
    ) -> None:
        """Before a new question, fetch its provider's list of models if it is missing or too old.

        The question waits, for a short time, only if its agent's model depends on a missing list.
        In the middle of an answer, nothing is fetched, so the answer keeps its model; `is_new` means
        that the question gets a new answer.
        """
        agent = agent_of(transcript, self._settings(), self._environ, chosen)
        provider, last = self._provider(agent.provider), transcript.exchanges[-1:]
        is_known = bool(self.known(agent.provider).at)
        is_open = not is_new and any(has_begun(exchange) for exchange in last)
        if is_open or self._settings().missing_key(agent, self._environ):
            return
        if agent.newest or provider.official or is_known:
            await self._lists.prepare(provider, waits=bool(agent.newest))

    def problem(self, agent: Agent) -> str:
        """The reason against an agent's model in the provider's last fetched list; "" if there is
        none.
        """
        known = self.known(agent.provider)
        today = datetime.now(UTC).date().isoformat()
        return model_problem(self.listed(agent).model, known, today)

    async def fetch_for(self, agents: Iterable[Agent]) -> None:
        """Fetch the lists of these agents' providers that are missing or too old; failures are not
        reported.
        """
        providers = {agent.provider: self._provider(agent.provider) for agent in agents}
        stale = [
            provider
            for provider in providers.values()
            if self._lists.lists(provider) and not self._lists.is_fresh(provider)
        ]
        await asyncio.gather(*map(self._lists.fetch, stale))

    async def all(self, *, refresh: bool = False) -> list[ProviderModels]:
        """The models that each provider in the settings serves. Fetches lists that are too old; all
        lists, if `refresh`.
        """
        names = self.providers()
        return await asyncio.gather(*(self.of(name, refresh=refresh) for name in names))

    def providers(self) -> list[str]:
        """The names of the providers whose models the user may list, in alphabetical order: all but
        the demo model's, and those whose `model_list` is off.
        """
        every = self._settings().all_providers().items()
        return sorted(
            n for n, own in every if not (own.builtin or own.is_agent) and own.model_list != "off"
        )

    def known(self, name: str) -> ModelList:
        """A provider's list as last fetched."""
        return self._lists.known(self._provider(name))

    async def of(self, name: str, *, refresh: bool) -> ProviderModels:
        """The models that a provider serves, from a list that is at most a day old, or from a new
        list if `refresh`."""
        provider = self._provider(name)
        if not self._lists.lists(provider):
            return ProviderModels(name, problem="not listed: it comes from a package")
        if missing := self._settings().missing_key(Agent(provider=name), self._environ):
            sign_in = f", or sign in: {provider.sign_in_command}" if provider.signs_in else ""
            return ProviderModels(
                name, problem=f"no key. To list its models, set {missing}{sign_in}"
            )
        known = self._lists.known(provider)
        if self._lists.is_fresh(provider) and not refresh:
            return ProviderModels(name, known, known.problem)
        match await self._lists.fetch(provider):
            case ListFailure() as failure:
                return ProviderModels(name, known, f"not listed: {failure}")
            case listed:
                return ProviderModels(name, listed, listed.problem)

    async def close(self) -> None:
        """End all fetches."""
        await self._lists.close()

    def _provider(self, name: str) -> ProviderSettings:
        return self._settings().provider(name) or ProviderSettings(name)
