"""Providers from installed packages equal the built-in ones, and a faulty provider harms no other."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from parley import Session, SettingsError
from parley.cli import main
from parley.entry_points import PROVIDER_GROUP
from parley.errors import ModelError, ParleyError
from parley.models.events import Event, Finished, TextDelta
from parley.models.request import Request
from parley.providers.client import ProviderClient
from parley.settings.read import read_settings
from parley.settings.values import ProviderSettings
from tests.faulty_providers import QUESTION
from tests.packages import ECHO, install, put_package

SETTINGS = {
    "providers": {"echo": {"kind": "package", "api_key_env": "ECHO_KEY"}},
    "agents": [
        {"name": "Echo", "provider": "echo", "model": "echo"},
        {"name": "Plain", "provider": "echo", "model": "echo-plain"},
    ],
    "mcp": {"mock": True},
}
ENVIRON = {"ECHO_KEY": "a-key-of-the-echo"}
STOCKS = 'call web_search {"query": "google"}'
PLAIN_STOCKS = '{"tool": "web_search", "params": {"query": "google"}}'
XML_STOCKS = "<tool:web_search>\n<param:query>google</param:query>\n</tool:web_search> and more"

# --- The example ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(ECHO, tmp_path_factory.mktemp("echo"))


@pytest.fixture
def echo(target: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example, installed."""
    monkeypatch.syspath_prepend(str(target))
    yield target
    sys.modules.pop("parley_echo", None)


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("agent", "mode", "stocks"),
    [("Echo", "auto", STOCKS), ("Plain", "auto", PLAIN_STOCKS), ("Echo", "xml", XML_STOCKS)],
    ids=["native", "json", "xml"],
)
async def test_the_example_answers_thinks_calls_and_counts(
    agent: str, mode: str, stocks: str
) -> None:
    assert "parley_echo" not in sys.modules
    settings = {**SETTINGS, "tool_mode": mode}
    async with Session(settings, agent=agent, approve=lambda _: True, environ=ENVIRON) as session:
        assert "parley_echo" not in sys.modules  # not before its first request
        assert await session.process_message("hello my dear") == "hello my dear"
        chunks = [chunk async for chunk in session.send_message_stream(stocks)]
        assert session.usage.input > 0
    kinds = [chunk["type"] for chunk in chunks]
    assert {"thinking", "tool_start", "tool_result", "content", "usage"} <= set(kinds)
    assert "$911" in "".join(chunk["content"] for chunk in chunks if chunk["type"] == "content")
    assert "🧠:[echo:echo" in session.transcript


@pytest.mark.usefixtures("echo")
async def test_a_model_without_tools_gets_them_in_words_and_the_user_is_told_once() -> None:
    async with Session(SETTINGS, agent="Plain", approve=lambda _: True, environ=ENVIRON) as session:
        hints = list[str]()
        for text in (PLAIN_STOCKS, "hello"):
            async for chunk in session.send_message_stream(text):
                if chunk["type"] == "hint":
                    hints.append(chunk["content"])
    assert [hint for hint in hints if "echo-plain does not support tools" in hint] == hints[:1]


@pytest.mark.usefixtures("echo")
async def test_the_rate_limit_also_applies_to_the_example() -> None:
    settings = {**SETTINGS, "safety": {"rate_limit_per_minute": 1}}
    statuses = list[str]()
    async with Session(
        settings, agent="Echo", on_status=statuses.append, environ=ENVIRON
    ) as session:
        await session.process_message("hello")
        async for chunk in session.send_message_stream("hello again"):
            if chunk["type"] == "status" and chunk["content"].startswith("Rate limit reached"):
                break
    assert [status for status in statuses if status.startswith("Rate limit reached, waiting ")]


@pytest.mark.usefixtures("echo")
def test_the_shell_asks_the_example_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "parley" / "config.toml"
    config.parent.mkdir()
    text = (ECHO / "README.md").read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    config.write_text('prompt_tools.templates = "package:echo"\n' + text, encoding="utf-8")
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path))
    chat = tmp_path / "chat.md"
    chat.write_text("💬: hello\n", encoding="utf-8")
    assert main(["respond", str(chat), "--agent", "Echo"]) == 0
    assert "hello" in capsys.readouterr().out
    assert "🤖:[Echo]\n\n🧠:[echo:echo]\n" in chat.read_text(encoding="utf-8")
    assert main(["messages", str(chat), "--agent", "Echo"]) == 0
    shown = capsys.readouterr()
    assert "hello" in [message["content"] for message in json.loads(shown.out)["messages"]]
    assert shown.err == ""
    others = text.partition("[mcp]")[0].replace("echo", "gone").replace("Echo", "Gone")
    config.write_text(others + text, encoding="utf-8")
    assert main(["agents"]) == 0
    gone, here, *_ = capsys.readouterr().out.splitlines()
    assert (
        "needs no key, but no installed package has a provider called 'gone' (known: 'echo')"
        in gone
    )
    assert here.endswith("needs no key, from the package parley-echo 1.0")


@pytest.mark.usefixtures("echo")
def test_the_examples_templates_are_used_for_its_model() -> None:
    from parley.models.text_tools.template import load_templates, template_for

    templates, problems = load_templates("package:echo")
    assert problems == ()
    assert template_for("echo-plain", templates).json.startswith("# Tools\n")
    assert "parley_echo" not in sys.modules
    (problem,) = load_templates("package:gone")[1]
    assert problem.startswith(
        "parley: prompt_tools.templates: no installed package has templates called 'gone'"
    )


# --- Others ---------------------------------------------------------------------------------------

FAULTY = """
import asyncio, sys, threading, time
from parley import Call, Finished, ModelError, TextDelta, ThinkingDelta, ToolCall, Usage

free = threading.Event()
closed = []
tries = []
waited = []


class Good:
    name = "good"

    def supports_tools(self, model):
        return {"nonsense": "yes", "raises": None}.get(model, True) if model != "raises" else 1 / 0

    async def stream(self, request):
        yield TextDelta(f"key {request.api_key} at {request.base_url}")
        yield Finished("complete")


class Raises(Good):
    name = "raises"

    async def stream(self, request):
        yield TextDelta("half")
        raise OSError(f"boom {request.api_key}\\x1b[31m")


class Passing(Good):
    name = "passing"

    async def stream(self, request):
        tries.append(1)
        if len(tries) < 4:
            wait = (1.0, float("nan"), -1)[len(tries) - 1]
            raise ModelError("come again", reason="busy", retryable=True, retry_after=wait, status=429)
        yield Finished("complete")


class Refuses(Good):
    name = "refuses"

    async def stream(self, request):
        key = request.api_key
        raise ModelError(f"not today {key}", reason=f"no wish {key}", status="400", retry_after="soon")
        yield


class Idle(Good):
    name = "idle"

    async def stream(self, request):
        try:
            yield TextDelta("half")
            await asyncio.sleep(3600)
        finally:
            closed.append(1)


class Two(Good):
    name = "two"

    async def stream(self, request):
        if request.model == "idle":
            await asyncio.sleep(3600)
        while not waited:
            yield TextDelta("more ")
            await asyncio.sleep(0.01)
        yield Finished("complete")


class Dies(Good):
    name = "dies"

    async def stream(self, request):
        if tries:
            yield Finished("complete")
            return
        tries.append(1)
        yield TextDelta("half")

        async def work():
            sys.exit(3)

        await asyncio.create_task(work())


class Once(Good):
    name = "once"

    async def stream(self, request):
        tries.append(1)
        if len(tries) == 1:
            free.wait(60)
        yield Finished("complete")


class Blocks(Good):
    name = "blocks"

    async def stream(self, request):
        free.wait(60)
        yield TextDelta("at last")
        yield Finished("complete")


class Plenty(Good):
    name = "plenty"

    async def stream(self, request):
        for number in range(3000):
            yield TextDelta(f"{number} ")
        yield Finished("complete")


class Eager(Good):
    name = "eager"

    async def stream(self, request):
        try:
            while True:
                time.sleep(0.001)
                yield TextDelta("more ")
        finally:
            closed.append(1)


class Nonsense(Good):
    name = "nonsense"

    async def stream(self, request):
        yield TextDelta("half")
        yield "whole"


class Early(Good):
    name = "early"

    async def stream(self, request):
        yield TextDelta("half")


class Coroutine(Good):
    name = "coroutine"

    def stream(self, request):
        return [TextDelta("half")]


class Exits(Good):
    name = "exits"

    async def stream(self, request):
        yield TextDelta("half")
        sys.exit(3)


class Cancels(Good):
    name = "cancels"

    async def stream(self, request):
        yield TextDelta("half")
        raise asyncio.CancelledError


class Masked(Good):
    name = "openai"


def broken():
    raise RuntimeError("no licence")
"""
WHOLE = (
    "good",
    "raises",
    "passing",
    "refuses",
    "idle",
    "blocks",
    "plenty",
    "eager",
    "two",
    "once",
    "dies",
)
BROKEN = ("nonsense", "early", "coroutine", "exits", "cancels", "masked")
OFFERS = {name: f"faulty:{name.title()}" for name in WHOLE + BROKEN} | {
    "broken": "faulty:broken",
    "missing": "faulty:Missing",
    "unimportable": "faulty_import:Provider",
    "exiting": "faulty_exit:Provider",
    "no-provider": "faulty:free",
    "taken": "faulty:Good",
    "slow": "faulty_slow:Slow",
}
FILES = {
    "faulty.py": FAULTY,
    "faulty_slow.py": """
import faulty

faulty.free.wait(60)


class Slow(faulty.Blocks):
    name = "slow"
""",
    "faulty_import.py": "import no_such_module",
    "faulty_exit.py": "raise SystemExit('bye')",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    put_package(folder, "parley-faulty", {PROVIDER_GROUP: OFFERS}, FILES)
    put_package(folder, "parley-other", {PROVIDER_GROUP: {"taken": "faulty:Good"}}, {})
    return folder


class Asker:
    """A client for the faulty package, and the seconds that it has waited."""

    def __init__(self, idle_s: float) -> None:
        self.waits = list[float]()
        self.notices = list[str]()
        self.client = ProviderClient(
            {"FAULTY_KEY": "a-key-of-the-faulty"},
            self._no_url,
            idle_s=idle_s,
            sleep=self._sleep,
            luck=lambda: 0.0,
        )

    async def _no_url(self) -> str:
        raise AssertionError("nothing here is built in")

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def say(self, name: str, model: str = "some-model") -> list[Event]:
        provider = ProviderSettings(name, "package", "http://here", api_key_env="FAULTY_KEY")
        request = Request(QUESTION, 0, name, model)
        return [event async for event in self.client.stream(provider, request, self.notices.append)]

    async def fail(self, name: str, model: str = "some-model") -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.say(name, model)
        return caught.value


@asynccontextmanager
async def asking(idle_s: float) -> AsyncIterator[Asker]:
    """A client; at the end, no provider thread is left."""
    asker = Asker(idle_s)
    yield asker
    if faulty := sys.modules.get("faulty"):
        faulty.free.set()
    await asker.client.close()
    for thread in threading.enumerate():
        if thread.name.startswith("parley "):
            thread.join(30)
            assert not thread.is_alive()
    for name in ("faulty", "faulty_slow"):  # now that no test imports them
        sys.modules.pop(name, None)


@pytest_asyncio.fixture
async def asker(site: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asker]:
    monkeypatch.syspath_prepend(str(site))
    async with asking(20.0) as asker:
        yield asker


@pytest_asyncio.fixture
async def hasty(site: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asker]:
    """Waits only a moment. `asker` waits longer, so that a busy machine does not look like silence."""
    monkeypatch.syspath_prepend(str(site))
    async with asking(0.2) as asker:
        yield asker


async def test_a_provider_gets_its_address_and_key_from_the_settings_and_cannot_show_the_key(
    asker: Asker,
) -> None:
    (text, end) = await asker.say("good")
    assert text == TextDelta("key [key] at http://here")
    assert end == Finished("complete")


async def until_closed() -> None:
    """Wait until a stream of the package has been closed."""
    async with asyncio.timeout(10):
        while not sys.modules["faulty"].closed:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


MESSAGES = {
    "raises": "failed: OSError: boom …",
    "refuses": "says: not today",
    "nonsense": (
        "gave an invalid answer: nonsense sent an event that cannot be read: it is of type str"
    ),
    "early": (
        "gave an invalid answer: early sent an event that cannot be read: the stream ended without"
    ),
    "coroutine": "failed: TypeError: stream returned a list, not an async iterator",
    "exits": "failed: SystemExit: 3",
    "cancels": "failed: CancelledError",
    "masked": "cannot be used: its name is 'openai', but its entry point is called 'masked'",
    "broken": "cannot be loaded: RuntimeError: no licence",
    "missing": "cannot be loaded: AttributeError: module 'faulty' has no attribute 'Missing'",
    "unimportable": "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'",
    "exiting": "cannot be loaded: SystemExit: bye",
    "no-provider": "cannot be loaded: TypeError: 'Event' object is not callable",
}


async def test_a_providers_fault_is_reported_with_its_package_and_harms_no_other(
    asker: Asker,
) -> None:
    for name, words in MESSAGES.items():
        error = await asker.fail(name)
        assert str(error).startswith(f"the provider {name} from parley-faulty 1.0 {words}"), str(
            error
        )
        assert ". What to do: " in str(error)
        assert error.reason.startswith(f"the provider {name} ")
        assert "a-key-of" not in str(error) + error.reason + error.words
        assert "\x1b" not in str(error)
        assert len(await asker.say("good")) == 2
    assert asker.waits == []


async def test_a_provider_in_no_package_or_in_two_is_reported(asker: Asker) -> None:
    assert str(await asker.fail("gone")).startswith(
        "no installed package has a provider called 'gone' (known: "
    )
    assert "parley-faulty 1.0 and parley-other 1.0" in str(await asker.fail("taken"))


async def test_a_temporary_failure_before_the_first_event_is_retried_if_the_provider_says_so(
    asker: Asker,
) -> None:
    assert await asker.say("passing") == [Finished("complete")]
    assert asker.waits == [1.0, 1.0, 2.0]
    assert asker.notices == [
        f"the provider passing says: busy: retry {n} of 3..." for n in (1, 2, 3)
    ]


async def test_many_events_at_once_arrive_complete_and_in_order(asker: Asker) -> None:
    text = "".join(
        event.text for event in await asker.say("plenty") if isinstance(event, TextDelta)
    )
    assert text == "".join(f"{number} " for number in range(3000))


async def test_a_silent_provider_is_abandoned_after_a_while_and_its_stream_is_closed(
    hasty: Asker,
) -> None:
    error = await hasty.fail("idle")
    assert str(error).startswith(
        "the provider idle from parley-faulty 1.0 sent nothing for 0.2 s. What to do: wait"
    )
    await until_closed()


@pytest.mark.parametrize("name", ["blocks", "slow"])
async def test_a_blocked_provider_delays_no_other_and_is_restarted_the_next_time(
    hasty: Asker, name: str
) -> None:
    slow = asyncio.ensure_future(hasty.fail(name))
    assert len(await hasty.say("good")) == 2
    assert not slow.done()
    error = await slow
    assert "sent nothing for 0.2 s" in str(error)
    assert len(hasty.waits) == 3  # such a failure is temporary, as with other providers
    sys.modules["faulty"].free.set()
    assert await hasty.say(name) == [TextDelta("at last"), Finished("complete")]


async def test_a_missing_reply_ends_no_other_of_the_same_provider(hasty: Asker) -> None:
    steady = asyncio.ensure_future(hasty.say("two"))
    await hasty.fail("two", "idle")
    assert not steady.done()
    sys.modules["faulty"].waited.append(1)
    assert (await steady)[-1] == Finished("complete")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_provider_that_ends_its_whole_thread_is_restarted(hasty: Asker) -> None:
    await hasty.fail("dies")
    for thread in threading.enumerate():
        if thread.name == "parley dies":
            await asyncio.to_thread(thread.join)
    assert await hasty.say("dies") == [Finished("complete")]


async def test_a_blocked_provider_is_restarted_after_a_stop(hasty: Asker) -> None:
    blocked = asyncio.ensure_future(hasty.say("once"))
    async with asyncio.timeout(10):
        while not getattr(sys.modules.get("faulty"), "tries", None):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)
    blocked.cancel()
    await asyncio.wait({blocked})
    assert await hasty.say("once") == [Finished("complete")]


async def test_an_abandoned_stream_is_closed_even_if_it_never_waits(asker: Asker) -> None:
    request = Request(QUESTION, 0, "eager", "some-model")
    events = asker.client.stream(
        ProviderSettings("eager", "package"), request, asker.notices.append
    )
    assert await anext(events) == TextDelta("more ")
    assert isinstance(events, AsyncGenerator)
    await events.aclose()
    await until_closed()


@pytest.mark.parametrize(
    ("model", "words"),
    [("nonsense", "supports_tools returned a str, not a bool"), ("raises", "ZeroDivisionError")],
)
async def test_a_provider_that_cannot_say_whether_it_has_tools_is_reported(
    asker: Asker, model: str, words: str
) -> None:
    provider = ProviderSettings("good", "package")
    assert await asker.client.supports_tools(provider, "some-model")
    with pytest.raises(ModelError, match=rf"^the provider good from parley-faulty 1\.0 .*{words}"):
        await asker.client.supports_tools(provider, model)


@pytest.mark.usefixtures("asker")
async def test_a_stopped_answer_of_a_provider_ends_at_once_with_a_notice() -> None:
    settings = {
        "providers": {"blocks": {"kind": "package"}},
        "agents": [{"name": "B", "provider": "blocks", "model": "m"}],
    }
    session = Session(settings, agent="B", environ={})
    answer = asyncio.ensure_future(session.process_message("hello"))
    while not hasattr(sys.modules.get("faulty"), "free"):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    await session.stop()
    with pytest.raises(ParleyError, match="Streaming cancelled by user"):
        await answer
    assert "[Stopped: by the user]" in session.transcript
    sys.modules["faulty"].free.set()
    await session.aclose()


def test_package_is_a_provider_kind_and_other_words_are_not() -> None:
    settings, problems = read_settings({"providers": {"echo": {"kind": "package"}}})
    assert problems == ()
    assert settings.providers["echo"].kind == "package"
    with pytest.raises(SettingsError, match=r"providers\.echo\.kind"):
        Session({"providers": {"echo": {"kind": "pakage"}}})
