"""The law of ends: in each format, each reason for a reply's end has a visible outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.chat.rounds import last_notice
from parley.chat.transcript import ToolCall
from parley.engine import End
from parley.engine.reply import TROUBLE
from parley.models.events import Aside, Call, Event, Finished, Reason, TextDelta, ThinkingDelta
from parley.models.formats import FORMATS, of_kind
from parley.models.package import EVENT
from parley.models.request import Request
from parley.text import one_line
from tests.chats import TOOLS
from tests.examples import examples
from tests.fakes import LoggedTools, ScriptedModel, ScriptStep, Turns, says

REASONS: tuple[Reason, ...] = get_args(Reason)
WHOLE = ("complete", "tool_calls")
CALL = ToolCall("c", "web_search", '{"query":"x"}')
AGAIN = "An answer after all."


async def outcome(events: list[Event], detail: str) -> None:
    """Compare the outcome of a turn with this reply to the reason for the reply's end."""
    reason, has_call = _reason(events), any(isinstance(event, Call) for event in events)
    reply: list[ScriptStep] = [*events]
    turns = Turns("💬: q\n", ScriptedModel(reply, says(AGAIN)), LoggedTools(TOOLS))
    end = await turns.run()
    answer = parse(turns.text).exchanges[0].answers[0]
    notice = last_notice(answer)
    has_words = any(isinstance(e, TextDelta | ThinkingDelta) and e.text.strip() for e in events)
    asides = [event.text for event in turns.observer.events if isinstance(event, Aside)]
    if reason in WHOLE and (has_call or has_words):
        assert end == End("waiting" if has_call else "complete")
        assert notice is None
        assert not detail or any(detail in text for text in asides)
        return
    assert end.kind == "interrupted"
    assert notice is not None
    assert not answer.proposals
    cause = end.message.partition(". What to do: ")[0]
    assert plain(cause) == f"The reply is not complete: {notice.reason}"
    assert plain(detail).rstrip(".") in notice.reason
    assert any(status.startswith("Stopped: ") for status in turns.observer.statuses)
    assert await turns.run() == End("complete")
    assert AGAIN in turns.text


def plain(text: str) -> str:
    """A text in the form that a notice can hold."""
    return " ".join(one_line(text.replace("[", " ").replace("]", " ")).split())


def _reason(events: list[Event]) -> Reason:
    return next(event.reason for event in events if isinstance(event, Finished))


def test_each_reason_has_a_decided_outcome() -> None:
    assert {*TROUBLE, *WHOLE} == {*REASONS}


WORDS = st.sampled_from(
    ["", "it may not", "[a] b]", "no: never.", "This was stopped by a classifier."]
)


@examples(60)
@given(st.sampled_from(REASONS), WORDS, st.booleans(), st.sampled_from(["", " \n", "Half of"]))
@example("pause", "", False, "Half of")
@example("refusal", "This was stopped by a classifier.", False, "Half of")
@example("complete", "a word of tomorrow", False, "All of it.")
async def test_the_user_sees_why_a_reply_ended(
    reason: Reason, detail: str, has_call: bool, text: str
) -> None:
    events: list[Event] = [TextDelta(text)] if text else []
    await outcome([*events, *([Call(CALL)] if has_call else []), Finished(reason, detail)], detail)


def messages(stop: str | None, explanation: str = "", category: str | None = None) -> list[Any]:
    details = {"type": "refusal", "category": category, "explanation": explanation or None}
    delta = {"stop_reason": stop, "stop_details": details if stop == "refusal" else None}
    return [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Half of"},
        },
        {"type": "message_delta", "delta": delta},
        {"type": "message_stop"},
    ]


def chunks(finish: str, **delta: Any) -> list[Any]:
    said = delta or {"content": "Half of"}
    return [{"choices": [{"delta": said}]}, {"choices": [{"delta": {}, "finish_reason": finish}]}]


def response(status: str, cut: str | None = None, refusal: str = "") -> list[Any]:
    part = (
        {"type": "refusal", "refusal": refusal}
        if refusal
        else {"type": "output_text", "text": "Half of"}
    )
    item = {"type": "message", "content": [part]}
    details = {"reason": cut} if cut else None
    over = {"status": status, "incomplete_details": details}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": f"response.{status}", "response": over},
    ]


ENDS: dict[str, tuple[str, list[Any], Reason, str]] = {
    "end_turn": ("anthropic", messages("end_turn"), "complete", ""),
    "stop_sequence": ("anthropic", messages("stop_sequence"), "complete", ""),
    "max_tokens": ("anthropic", messages("max_tokens"), "length", ""),
    "window": ("anthropic", messages("model_context_window_exceeded"), "context", ""),
    "pause_turn": ("anthropic", messages("pause_turn"), "pause", ""),
    "refusal": ("anthropic", messages("refusal", "Not that."), "refusal", "Not that."),
    "refusal of a kind": ("anthropic", messages("refusal", category="cyber"), "refusal", "cyber"),
    "refusal unexplained": ("anthropic", messages("refusal"), "refusal", ""),
    "new reason": ("anthropic", messages("tired"), "complete", "tired"),
    "stop": ("chat", chunks("stop"), "complete", ""),
    "length": ("chat", chunks("length"), "length", ""),
    "MAX_TOKENS": ("chat", chunks("MAX_TOKENS"), "length", ""),
    "content_filter": ("chat", chunks("content_filter"), "content_filter", ""),
    "safety": ("chat", chunks("SAFETY"), "content_filter", "safety"),
    "recitation": ("chat", chunks("recitation"), "content_filter", "recitation"),
    "refused in words": ("chat", chunks("stop", refusal="I cannot."), "refusal", "I cannot."),
    "new finish": ("chat", chunks("tired"), "complete", "tired"),
    "completed": ("responses", response("completed"), "complete", ""),
    "incomplete": ("responses", response("incomplete", "max_output_tokens"), "length", ""),
    "filtered": ("responses", response("incomplete", "content_filter"), "content_filter", ""),
    "cut anew": ("responses", response("incomplete", "steered"), "length", "steered"),
    "incomplete without a word": ("responses", response("incomplete"), "length", ""),
    "refused in one piece": ("responses", response("completed", refusal="No."), "refusal", "No."),
}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("what", ENDS)
async def test_the_user_sees_why_a_reply_in_a_format_ended(what: str, streamed: bool) -> None:
    name, payloads, reason, explanation = ENDS[what]
    form = FORMATS[name]
    events = _read(form, payloads if streamed else list(form.unstreamed(whole(name, payloads))))
    assert _reason(events) == reason
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    await outcome(events, "" if explanation in text else explanation)


def whole(name: str, payloads: list[Any]) -> Mapping[str, Any]:
    """The complete reply whose stream has these payloads."""
    match name:
        case "anthropic":
            return {**payloads[3]["delta"], "content": [{"type": "text", "text": "Half of"}]}
        case "chat":
            said = payloads[0]["choices"][0]["delta"]
            return {"choices": [{**payloads[1]["choices"][0], "message": said}]}
        case _:
            return {**payloads[2]["response"], "output": [payloads[1]["item"]]}


def _read(form: Any, payloads: list[Any]) -> list[Event]:
    decoder = form.reader(Request(parse("💬: q\n"), 0, "p", "m"))
    plain = json.loads(json.dumps(payloads))
    return [*decoder.read(plain), *decoder.end()]


@pytest.mark.parametrize("reason", REASONS)
async def test_the_user_sees_why_a_reply_from_a_package_ended(reason: Reason) -> None:
    (form,) = of_kind("package")
    decoder = form.reader(Request(parse("💬: q\n"), 0, "p", "m"))
    said = [TextDelta("Half of"), Finished(reason, "as it says")]
    await outcome(list(decoder.read({EVENT: event} for event in said)), "as it says")
