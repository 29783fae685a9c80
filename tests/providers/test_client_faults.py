"""Failing providers with the real SDK clients: the reports, the retries and the file."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from parley.chat.reader import parse
from parley.chat.transcript import Note, Text
from parley.engine import End
from parley.errors import ModelError
from parley.iterators import closing
from parley.models.events import Call, Finished, TextDelta
from parley.models.request import Request
from parley.providers.client import ProviderClient
from tests.chats import TOOLS
from tests.defaults import text_tools
from tests.fakes import LoggedTools, ScriptedModel, Turns
from tests.faulty_providers import (
    FORMATS,
    HTML,
    KEY,
    QUESTION,
    FaultyProviders,
    ProviderModel,
    Where,
    begun,
    check_message,
    refusal,
)
from tests.faulty_server import BEGUN, SAYS, STREAM, FaultyServer, Forever, Part, Response, event

pytestmark = pytest.mark.asyncio(loop_scope="module")

# --- Refused requests -----------------------------------------------------------------------------

REFUSALS = {
    400: (False, ":ParleyRequest shows"),
    401: (False, "check FAULTY_KEY"),
    403: (False, "check FAULTY_KEY and the account"),
    404: (False, "check the agent's model 'some-model' and the base URL"),
    408: (True, "try :ParleyRespond again"),
    409: (True, "try :ParleyRespond again"),
    413: (False, "shorten the question"),
    422: (False, ":ParleyRequest shows"),
    429: (True, "then try :ParleyRespond again"),
    500: (True, "try :ParleyRespond again"),
    503: (True, "try :ParleyRespond again"),
    529: (True, "the provider is overloaded"),
}


@pytest.mark.parametrize("status", REFUSALS)
@pytest.mark.parametrize("kind", FORMATS)
async def test_a_refused_request_is_reported_and_retried_only_if_that_may_help(
    faulty: FaultyProviders, kind: str, status: int
) -> None:
    retried, action = REFUSALS[status]
    faulty.plan(refusal(status))
    error = await faulty.fail(faulty.provider(kind))
    check_message(error, f"faulty answered {status}: it was … that failed", action)
    assert (error.status, error.reason) == (status, f"faulty answered {status}")
    assert len(faulty.server.requests) == (4 if retried else 1)
    assert faulty.notices == [
        f"faulty answered {status}: retry {n} of 3..." for n in (1, 2, 3) if retried
    ]
    assert faulty.waits == ([0.5, 1.0, 2.0] if retried else [])


async def test_a_server_that_requires_a_key_names_the_setting_if_no_key_was_sent(
    faulty: FaultyProviders,
) -> None:
    faulty.plan(Response([b"who are you?"], 401))
    error = await faulty.fail(faulty.provider("chat", api_key_env=None))
    check_message(error, "set providers.faulty.api_key_env", "(no key was sent)")


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_request_that_failed_before_its_first_event_may_still_work(
    faulty: FaultyProviders, kind: str
) -> None:
    cut: list[Part] = [b": a comment\n\n", "cut"]
    faulty.plan(refusal(529), Response(cut), Response(SAYS[kind]("Whole")))
    events = await faulty.say(faulty.provider(kind))
    assert [e for e in events if isinstance(e, TextDelta | Finished)] == [
        TextDelta("Whole"),
        Finished("complete"),
    ]
    assert len(faulty.server.requests) == 3
    assert faulty.server.requests[0] == faulty.server.requests[2]
    assert faulty.notices == [
        "faulty answered 529: retry 1 of 3...",
        "faulty broke off the connection: retry 2 of 3...",
    ]


WAITS = {
    "none": ({}, [0.5, 1.0, 2.0]),
    "seconds": ({"retry-after": "7"}, [7.0] * 3),
    "none at all": ({"retry-after": "0"}, [0.0] * 3),
    "milliseconds": ({"retry-after-ms": "250", "retry-after": "7"}, [0.25] * 3),
    "nonsense": ({"retry-after": "soon"}, [0.5, 1.0, 2.0]),
    "no number": ({"retry-after": "nan"}, [0.5, 1.0, 2.0]),
    "less than nothing": ({"retry-after-ms": "-1"}, [0.5, 1.0, 2.0]),
    "for ever": ({"retry-after": "inf"}, []),
    "a date gone by": ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, [0.0] * 3),
    "a day": ({"retry-after": "86400"}, []),
    "not again": ({"x-should-retry": "false"}, []),
}


@pytest.mark.parametrize("why", WAITS)
@pytest.mark.parametrize("kind", FORMATS)
async def test_the_providers_delay_is_obeyed_unless_it_is_too_long(
    faulty: FaultyProviders, kind: str, why: str
) -> None:
    headers, waits = WAITS[why]
    faulty.plan(refusal(429, **headers))
    check_message(await faulty.fail(faulty.provider(kind)), "too many requests")
    assert faulty.waits == waits


async def test_a_delay_may_be_given_as_a_date(faulty: FaultyProviders) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    faulty.plan(refusal(429, **{"retry-after": soon}), Response(SAYS["chat"]("Whole")))
    await faulty.say(faulty.provider("chat"))
    assert 20 < faulty.waits[0] <= 30


async def test_a_server_may_say_that_retrying_helps(faulty: FaultyProviders) -> None:
    faulty.plan(refusal(400, **{"x-should-retry": "true"}), Response(SAYS["anthropic"]("Whole")))
    assert await faulty.say(faulty.provider("anthropic"))


@pytest.mark.parametrize("kind", FORMATS)
async def test_the_words_of_an_html_page_are_reported(faulty: FaultyProviders, kind: str) -> None:
    faulty.plan(Response([HTML.encode()], 502, {"content-type": "text/html", "retry-after": "0"}))
    error = await faulty.fail(faulty.provider(kind))
    check_message(error, "faulty answered 502: Bad gateway sorry sorry")
    assert "<" not in str(error)
    assert "color" not in str(error)


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'{"error":"plain"}', b'{"error":{}}', b"\xff\xfe{"]
)
@pytest.mark.parametrize("kind", FORMATS)
async def test_any_error_body_is_reported(faulty: FaultyProviders, kind: str, body: bytes) -> None:
    faulty.plan(Response([body], 400, {"content-type": "application/json"}))
    check_message(await faulty.fail(faulty.provider(kind)), "faulty answered 400")


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_refused_signature_drops_the_thinking_once(
    faulty: FaultyProviders, kind: str
) -> None:
    body = b'{"error":{"message":"messages.1.content.0: Invalid `signature` in thinking block"}}'
    refused = Response([body], 400, {"content-type": "application/json"})
    faulty.plan(refused, Response(SAYS[kind]("Whole")))
    assert TextDelta("Whole") in await faulty.say(faulty.provider(kind))
    assert (len(faulty.server.requests), faulty.notices) == (
        2,
        ["Asking again without earlier thoughts..."],
    )
    faulty.plan(refused)
    check_message(await faulty.fail(faulty.provider(kind)), "Invalid `signature`")
    assert len(faulty.server.requests) == 2


# --- Streams that break ---------------------------------------------------------------------------


def faults(kind: str) -> dict[str, tuple[list[Part], bool, str]]:
    """Faults instead of the rest of a stream, whether a retry may help, and the cause."""
    piece = SAYS[kind]("Hälf")[BEGUN[kind] - 1]
    umlaut = piece.index("ä".encode())
    passing = {"type": "overloaded_error", "code": "server_error", "message": f"busy {KEY}"}
    lasting = {"type": "invalid_request_error", "message": "no\nsuch thing"}
    return {
        "cut": (["cut"], True, "broke off the connection"),
        "cut in an event": ([piece[:-5], "cut"], True, "broke off the connection"),
        "cut in a character": ([piece[: umlaut + 1], "cut"], True, "broke off the connection"),
        "silence": (["silence"], True, "did not answer in time"),
        "silence in an event": ([piece[:9], "silence"], True, "did not answer in time"),
        "end": ([], False, "ended the stream before the reply was complete"),
        "end in an event": ([piece[:-5]], False, "ended the stream before the reply was complete"),
        "half a character": ([piece[: umlaut + 1] + b"\n\n"], False, "not JSON"),
        "no JSON": ([b"data: {nope}\n\n"], False, "not JSON"),
        "no object": ([b"data: [1]\n\n"], False, "not a JSON object"),
        "too deep": ([b"data: " + b"[" * 100_000 + b"\n\n"], False, "not JSON"),
        "wrong types": (
            [
                event(
                    {"type": "content_block_start", "index": "x", "output_index": "x", "choices": 7}
                )
            ],
            False,
            "cannot be read",
        ),
        "passing error": (
            [event({"type": "error", "error": passing})],
            True,
            "broke off the reply: busy …",
        ),
        "lasting error": ([event({"type": "error", "error": lasting})], False, "no such thing"),
        "too large": ([b"data: ", *[b"x" * (1 << 20)] * 17], False, "more than"),
    }


@pytest.mark.parametrize("fault", faults("chat"))
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("kind", FORMATS)
async def test_a_broken_stream_is_reported_and_never_retried_once_it_has_begun(
    faulty: FaultyProviders, kind: str, where: Where, fault: str
) -> None:
    parts, retried, cause = faults(kind)[fault]
    faulty.plan(Response([*begun(kind, where), *parts]))
    error = await faulty.fail(faulty.provider(kind))
    check_message(error, cause)
    retried = retried and where == "before"
    assert len(faulty.server.requests) == (4 if retried else 1)
    assert len(faulty.notices) == (3 if retried else 0)


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_large_event_within_the_limit_is_read(faulty: FaultyProviders, kind: str) -> None:
    large = "ä" * (1 << 20)
    faulty.plan(Response(SAYS[kind](large)))
    events = await faulty.say(faulty.provider(kind))
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == large


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "application/json", ""])
@pytest.mark.parametrize("kind", FORMATS)
async def test_an_address_that_is_not_a_models_is_reported_with_its_content_type(
    faulty: FaultyProviders, kind: str, content_type: str
) -> None:
    headers = {"content-type": content_type} if content_type else {}
    faulty.plan(Response([HTML.encode()], 200, headers))
    error = await faulty.fail(faulty.provider(kind))
    check_message(
        error,
        f"answered with {content_type or 'no content type'} instead of an event stream",
        "base URL",
    )


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_stream_with_a_wrong_content_type_is_still_read(
    faulty: FaultyProviders, kind: str
) -> None:
    faulty.plan(Response(SAYS[kind]("Whole"), 200, {"content-type": "text/plain"}))
    assert TextDelta("Whole") in await faulty.say(faulty.provider(kind))


@pytest.mark.parametrize("kind", FORMATS)
async def test_an_address_without_a_server_is_reported(faulty: FaultyProviders, kind: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        error = await faulty.fail(faulty.provider(kind, base_url=url))
    refused = "faulty cannot be reached (Connection refused)"
    check_message(error, refused, "check the network and the base URL")
    assert faulty.notices == [f"faulty cannot be reached: retry {n} of 3..." for n in (1, 2, 3)]


@pytest.mark.parametrize("url", ["ftp://example.org", "http://[", "no url", "http://a b/"])
@pytest.mark.parametrize("kind", FORMATS)
async def test_an_invalid_base_url_is_reported_at_once(
    faulty: FaultyProviders, kind: str, url: str
) -> None:
    error = await faulty.fail(faulty.provider(kind, base_url=url))
    check_message(error, "base URL")


@pytest.mark.parametrize("kind", FORMATS)
async def test_a_reader_that_stops_ends_the_connection(faulty: FaultyProviders, kind: str) -> None:
    faulty.server.plan(Response([*begun(kind, "after"), "silence"]))
    provider = faulty.provider(kind)
    async with closing(
        faulty.client.stream(provider, Request(QUESTION, 0, "faulty", "m"), print)
    ) as events:
        async for each in events:
            if isinstance(each, TextDelta):
                break
    await asyncio.wait_for(faulty.server.hung_up.wait(), 5)


# --- Keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["", " \n", "ké" * 20, "two words of it", "first-line\nsecond-line"]
)
async def test_an_invalid_key_is_reported_and_not_shown(faulty: FaultyProviders, key: str) -> None:
    client = ProviderClient({"FAULTY_KEY": key}, faulty.client._builtin_url)
    with pytest.raises(
        ModelError, match=r"^No key for faulty.*: set FAULTY_KEY before you start Neovim,"
    ) as caught:
        await anext(
            aiter(
                client.stream(faulty.provider("chat"), Request(QUESTION, 0, "faulty", "m"), print)
            )
        )
    assert "\n" not in str(caught.value)
    assert not key.strip() or key.split()[0] not in str(caught.value)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("/nowhere/pass",), "/nowhere/pass: program not found"),
        (("false",), "false did not print a key"),
        (("true",), "true did not print a key"),
        (("sh", "-c", "echo secret-word; exit 1"), "sh did not print a key"),
        (("yes", "secret-word"), "yes printed more than 65536 bytes"),
        (("cat", "/dev/zero"), "cat printed more than 65536 bytes"),
    ],
)
async def test_a_command_that_prints_no_key_is_reported(
    faulty: FaultyProviders, command: tuple[str, ...], told: str
) -> None:
    error = await faulty.fail(faulty.provider("chat", api_key_command=command))
    assert told in str(error)
    assert "check providers.faulty.api_key_command" in str(error)
    assert "secret-word" not in str(error)


async def test_a_command_may_print_the_key(faulty: FaultyProviders) -> None:
    faulty.plan(Response(SAYS["chat"]("Whole")))
    command = ("sh", "-c", "echo printed-key-0123456789")
    assert await faulty.say(faulty.provider("chat", api_key_command=command))


async def test_a_missing_key_is_reported_in_full(faulty: FaultyProviders) -> None:
    error = await faulty.fail(faulty.provider("chat", api_key_env="LAB_API_KEY"))
    assert "set LAB_API_KEY before you start Neovim, or choose another agent" in str(error)


async def test_a_key_typed_in_place_of_its_variables_name_is_not_shown(
    faulty: FaultyProviders,
) -> None:
    error = await faulty.fail(faulty.provider("chat", api_key_env="gsk_0123456789abcdef"))
    assert "0123456789abcdef" not in str(error)


# --- Through the loop into the file ---------------------------------------------------------------


NOTICES = {
    "cut": "faulty broke off the connection",
    "cut in a character": "faulty broke off the connection",
    "silence": "faulty did not answer in time",
    "end": "the stream ended early",
    "no JSON": "an unreadable event",
    "passing error": "busy …",
}


@pytest.mark.parametrize("fault", NOTICES)
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("kind", FORMATS)
async def test_a_broken_reply_leaves_its_text_once_and_a_notice_and_the_next_turn_continues(
    faulty: FaultyProviders, kind: str, where: Where, fault: str
) -> None:
    turns = Turns(
        "💬: hi\n\n💬: later\n", ScriptedModel(), LoggedTools(TOOLS), anchor=0, provider="faulty"
    )
    model = ProviderModel(faulty, faulty.provider(kind), turns)
    turns.ports = replace(turns.ports, model=model)
    parts, _, _ = faults(kind)[fault]
    faulty.plan(Response([*begun(kind, where), *parts]))
    end = await turns.run()
    assert end.kind == "interrupted"
    check_message(ModelError(end.message, reason="x"))
    transcript = parse(turns.text)
    assert not transcript.problems
    half = [Text("Half")] if where == "after" else []
    notice = Note(f"[Interrupted: {NOTICES[fault]}]")
    assert list(transcript.exchanges[0].answers[0].segments) == [*half, notice]
    assert turns.text.endswith("]\n\n💬: later\n")
    faulty.plan(Response(SAYS[kind]("Half", " of it")))
    assert await turns.run() == End("complete")
    assert turns.text == "💬: hi\n\n🤖:[Demo]\n\nHalf of it\n\n💬: later\n"


async def test_the_status_reports_the_retry(faulty: FaultyProviders) -> None:
    turns = Turns("💬: hi\n", ScriptedModel(), LoggedTools(TOOLS), provider="faulty")
    turns.ports = replace(turns.ports, model=ProviderModel(faulty, faulty.provider("chat"), turns))
    faulty.plan(refusal(503), Response(SAYS["chat"]("Whole")))
    assert await turns.run() == End("complete")
    assert turns.observer.statuses == [
        "Analyzing request...",
        "faulty answered 503: retry 1 of 3...",
        "Writing a reply...",
        "",
    ]


async def test_ten_turns_at_once_share_the_connections(faulty: FaultyProviders) -> None:
    faulty.plan(Response(SAYS["chat"]("Whole"), headers=STREAM))
    provider = faulty.provider("chat")
    said = await asyncio.gather(*(faulty.say(provider) for _ in range(10)))
    assert all(TextDelta("Whole") in events for events in said)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("after", ["And now", "<tool:web_search><param:query>second"])
async def test_after_its_one_call_in_xml_a_reply_is_ended_at_the_provider(
    faulty: FaultyProviders, kind: str, after: str
) -> None:
    block = "Look.\n<tool:web_search><param:query>x</param:query></tool:web_search>\n"
    said = SAYS[kind](block, after)[: BEGUN[kind] + 1]
    faulty.server.plan(Response([*said, "silence"]))
    request = Request(QUESTION, 0, "faulty", "m", catalogue=TOOLS, text_tools=text_tools("xml"))
    heard = [each async for each in faulty.client.stream(faulty.provider(kind), request, print)]
    assert [each.call.arguments for each in heard if isinstance(each, Call)] == ['{"query": "x"}']
    assert "".join(each.text for each in heard if isinstance(each, TextDelta)).strip() == "Look."
    assert heard[-1] == Finished("tool_calls")
    await asyncio.wait_for(faulty.server.hung_up.wait(), 30)


# --- Streams that only seem to be alive -----------------------------------------------------------

ALIVE = {
    "anthropic": (b": processing\n\n", b"data: ", event({"type": "ping"})),
    "chat": (b": processing\n\n", b"data: ", event({"choices": [{"delta": {"content": ""}}]})),
    "responses": (b": processing\n\n", b"data: ", event({"type": "keepalive"})),
}


async def test_a_silent_stream_ends_after_a_while(faulty: FaultyProviders) -> None:
    async def failing(kind: str, piece: bytes) -> ModelError:
        async with FaultyServer() as server:
            alive = FaultyProviders(server, faulty.clients, [])
            alive.plan(Response([*begun(kind, "after"), Forever(piece)]))
            error = await alive.fail(alive.provider(kind))
            await server.hung_up.wait()
            return error

    asked = [failing(kind, piece) for kind, pieces in ALIVE.items() for piece in pieces]
    for error in await asyncio.gather(*asked):
        check_message(error, "faulty did not answer in time", "wait, then try :ParleyRespond again")
