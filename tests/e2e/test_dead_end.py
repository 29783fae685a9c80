"""No chat is a dead end: Parley can answer every chat, however long the chat and however small the
window.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest

from parley import engine
from parley.engine import End, run_turn
from parley.models.events import Aside
from parley.runtime.app import App
from parley.runtime.asyncio_ports import Callbacks
from parley.settings.values import Agent, ProviderSettings, Settings, WorkspaceSettings
from parley.storage.chat_file import TextDocument
from tests.faulty_server import SAYS, FaultyServer, Response
from tests.ledgers import open_ledger
from tests.strict import check_anthropic, check_openai, check_responses

pytestmark = pytest.mark.asyncio

CHECKS: dict[str, Callable[[Any], list[str]]] = {
    "anthropic": check_anthropic,
    "chat": check_openai,
    "responses": check_responses,
}


class Window(NamedTuple):
    """A server's model, and its refusal of requests that exceed its window."""

    model: str
    tokens: int
    words: str

    def refusals(self, body: Any) -> list[str]:
        """The reasons to refuse a request; the server counts one token per three bytes."""
        count = len(json.dumps(body, ensure_ascii=False).encode()) // 3
        return [self.words.format(count=count, tokens=self.tokens)] if count > self.tokens else []


WINDOWS = {
    "known by its name": Window(
        "gpt-4o", 175_000, "it was known that this is too long: exceeds the context"
    ),
    "named in the refusal": Window(
        "some-model", 6_000, "prompt is too long: {count} tokens > {tokens} maximum"
    ),
    "named without a count": Window(
        "some-model", 30_000, "This model's maximum context length is {tokens} tokens."
    ),
    "never named": Window(
        "some-model", 12_000, "Your input exceeds the context window of this model."
    ),
}
LONG = "word " * 20_000
CALL = (
    '❓:[ya] `{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{}"}}`'
)
RESULT = f"{CALL}\n\n🛠️: [read_file][call_1]\n\n`%s`\n"

CHATS = {
    "twelve long exchanges without summaries": "".join(
        f"💬: {n} {LONG}\n\n🤖:[A]\n\n{n} {LONG}\n\n{RESULT % LONG}\nThat is it.\n\n"
        for n in range(12)
    )
    + "💬: and now?\n",
    "one question of two megabytes": f"💬: and now? {LONG * 20}\n",
    "one result of two megabytes": f"💬: and now?\n\n🤖:[A]\n\n{RESULT % (LONG * 20)}",
}


@pytest.fixture
async def server() -> AsyncIterator[FaultyServer]:
    async with FaultyServer() as one:
        yield one


class Chat:
    """A chat with one of the server's models; `asides` are the messages to its user."""

    def __init__(self, server: FaultyServer, kind: str, window: Window, text: str) -> None:
        self.server, self.kind = server, kind
        family: Any = "anthropic" if kind == "anthropic" else "openai"
        url = server.url + ("" if kind == "anthropic" else "/v1")
        api: Any = "auto" if family == kind else kind
        lab = ProviderSettings("lab", family, base_url=url, api=api)
        agent = Agent("A", "lab", window.model)
        alone = WorkspaceSettings(enabled=False)  # the tests may run in a Git work tree
        settings = Settings(
            agent="A", agents=(agent,), providers={"lab": lab}, tool_mode="native", workspace=alone
        )
        self.app = App(settings, {}, open_ledger())
        self.asides = list[str]()
        self.document = TextDocument(text, 10**9)
        server.check = lambda body: [*window.refusals(body), *CHECKS[kind](body)]

    async def respond(self) -> End:
        """Ask, and count messages and refusals from now on."""
        self.asides.clear()
        self.server.plan(Response(SAYS[self.kind]("Fine.")))
        observer = Callbacks(on_event=lambda what: self._note(what))
        return await run_turn(
            self.app.ports(self.document, "chat.md", observer), self.app.resolve(None)
        )

    def _note(self, what: engine.TurnEvent) -> None:
        if isinstance(what, Aside):
            self.asides.append(what.text)


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("kind", SAYS)
async def test_a_chat_that_is_too_long_continues(
    server: FaultyServer, kind: str, window: Window, name: str
) -> None:
    chat = Chat(server, kind, window, CHATS[name])
    assert await chat.respond() == End("complete")
    (notice,) = chat.asides
    assert notice.startswith(f"this chat is too long for {window.model}; not sent: ")
    assert notice.endswith(". :ParleyCompact summarizes older exchanges") == ("twelve" in name)
    assert "Fine." in chat.document.text[-100:]
    assert "and now?" in json.dumps(server.requests[-1])
    if "known" in window.words:
        assert len(server.requests) == 1
    # Parley remembers the limit for the next question: no refusal and no message is repeated.
    chat.document = TextDocument(
        f"{chat.document.text.rstrip().removesuffix('💬:')}💬: and then?\n", 10**9
    )
    assert await chat.respond() == End("complete")
    assert len(server.requests) <= 2
    await chat.app.close()


OFFER = (
    "this chat fills 87% of some-model's context window: :ParleyCompact summarizes older exchanges"
)


async def test_at_four_fifths_of_the_window_a_summary_is_proposed_once(
    server: FaultyServer,
) -> None:
    exchanges = "".join(f"💬: {n}\n\n🤖:[A]\n\n{'word ' * 17_900}\n\n" for n in range(5))
    chat = Chat(server, "chat", Window("some-model", 10**9, ""), f"{exchanges}💬: and now?\n")
    assert await chat.respond() == End("complete")
    assert chat.asides == [OFFER]
    chat.document = TextDocument(f"{chat.document.text}and then?\n", 10**9)
    assert await chat.respond() == End("complete")
    assert chat.asides == []
    await chat.app.close()


async def test_omissions_are_reported_even_if_the_reply_takes_most_of_the_window(
    server: FaultyServer,
) -> None:
    exchanges = "".join(f"💬: {n}\n\n🤖:[A]\n\n{'word ' * 10_000}\n\n" for n in range(5))
    text = f"---\nmax_tokens: 100000\n---\n\n{exchanges}💬: and now?\n"
    chat = Chat(server, "chat", Window("some-model", 10**9, ""), text)
    assert await chat.respond() == End("complete")
    (notice,) = chat.asides
    assert notice.startswith("this chat is too long for some-model; not sent: ")
    await chat.app.close()


async def test_if_everything_is_summarized_nothing_is_proposed(server: FaultyServer) -> None:
    exchanges = "".join(f"💬: {n}\n\n🤖:[A]\n\n{'word ' * 17_900}\n📝: s\n\n" for n in range(5))
    chat = Chat(server, "chat", Window("some-model", 10**9, ""), f"{exchanges}💬: and now?\n")
    assert await chat.respond() == End("complete")
    assert chat.asides == []
    await chat.app.close()
