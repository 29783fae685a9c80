"""The laws of pictures on the wire, for every format: each picture is in place, or words replace
it.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from parley.chat.attachments import attachment_of
from parley.chat.history import ModelTurn
from parley.chat.reader import parse
from parley.chat.transcript import (
    Answer,
    Attachment,
    Exchange,
    Proposal,
    Question,
    Result,
    Text,
    ToolCall,
    Transcript,
)
from parley.chat.writer import render
from parley.media import PDF
from parley.models.encode import encoded
from parley.models.picture_limits import attachments_of
from parley.models.request import Request, TextTools
from parley.models.text_tools.adapter import text_request
from parley.models.text_tools.template import builtin_templates
from tests.examples import examples
from tests.formats import CLAUDE, FORMATS, MANUAL, OPENAI, WireFormat, cases, own
from tests.pictures import PDF as DOCUMENT
from tests.pictures import png

forms = pytest.mark.parametrize("form", FORMATS, ids=str)
loaded = examples(15, suppress_health_check=list(HealthCheck))
CONTENTS = {
    attachment_of(each, "a.assets", kind).path: each
    for each, kind in [(png(1), "png"), (png(2), "png"), (DOCUMENT, "pdf")]
}
ATTACHMENTS = [Attachment(f"image/png {len(each)} B", path) for path, each in CONTENTS.items()]


def with_pictures(transcript: Transcript, draw: st.DataObject) -> Transcript:
    """The transcript with pictures whose bytes are available, in questions and results."""
    some = st.lists(st.sampled_from(ATTACHMENTS), max_size=3).map(tuple)

    def answer(one: Answer) -> Answer:
        segments = (
            replace(s, result=replace(s.result, attachments=draw.draw(some)))
            if isinstance(s, Proposal) and s.result
            else s
            for s in one.segments
        )
        return replace(one, segments=tuple(segments))

    def exchange(one: Exchange) -> Exchange:
        question = one.question and Question((*draw.draw(some), *one.question.parts))
        return Exchange(question, tuple(map(answer, one.answers)))

    return replace(transcript, exchanges=tuple(map(exchange, transcript.exchanges)))


def sent(body: Any) -> list[bytes]:
    """The bytes of all pictures and files in a body, in order."""
    match body:
        case {"type": "base64", "data": data}:
            return [b64decode(data)]
        case str() if match := re.fullmatch(r"data:[a-z]+/[a-z]+;base64,(.*)", body):
            return [b64decode(match[1])]
        case dict():
            return [each for value in body.values() for each in sent(value)]
        case list():
            return [each for value in body for each in sent(value)]
        case _:
            return []


def meant(form: WireFormat, request: Request) -> list[bytes]:
    """The contents of a request's turns, in order, as far as format and model accept them."""
    found = list[Attachment]()
    for turn in request.turns():
        if isinstance(turn, ModelTurn) and form in (CLAUDE, MANUAL):  # failed results are text
            ok = (outcome for outcome in turn.calls if outcome.status == "ok")
            found += [a for outcome in ok for a in outcome.parts if isinstance(a, Attachment)]
        else:
            found += attachments_of(turn)
    takes_documents = form.model.startswith(("claude", "gpt"))
    return [
        CONTENTS[a.path]
        for a in found
        if a.path in CONTENTS and (a.media_type != PDF or takes_documents)
    ]


@forms
@given(case=cases(), data=st.data())
@loaded
def test_pictures_are_sent_in_order_and_the_provider_accepts_them(
    form: WireFormat, case: tuple[Transcript, int], data: st.DataObject
) -> None:
    transcript = own(with_pictures(case[0], data), form)
    request = replace(form.ask(transcript, case[1]), pictures=CONTENTS)
    body = form.body(request)
    assert form.check(body) == []
    if len(meant(form, request)) <= 20:
        assert sent(body) == meant(form, request)


@forms
@pytest.mark.parametrize("spaces", ["\v", "\f", "\u2003"])
def test_text_of_unusual_spaces_next_to_a_picture_is_left_out(
    form: WireFormat, spaces: str
) -> None:
    picture = ATTACHMENTS[0]
    call = Proposal(ToolCall("c1", "see", "{}"), "ya", Result("ok", spaces, (picture,)))
    exchange = Exchange(Question((picture, Text(spaces))), (Answer(None, (call,)),))
    request = replace(form.ask(Transcript((exchange,)), 0), pictures=CONTENTS)
    body = form.body(request)
    assert form.check(body) == []
    assert sent(body) == meant(form, request) == [CONTENTS[picture.path]] * 2


@forms
@given(case=cases(), data=st.data())
@loaded
def test_a_request_from_the_reopened_file_is_the_same_including_pictures(
    form: WireFormat, case: tuple[Transcript, int], data: st.DataObject
) -> None:
    transcript = with_pictures(case[0], data)
    first = replace(form.ask(transcript, case[1]), pictures=CONTENTS)
    again = replace(
        form.ask(parse(render(transcript)), case[1]), pictures=dict(reversed(CONTENTS.items()))
    )
    body = encoded(form.adapter.request_body(first))
    assert encoded(form.adapter.request_body(again)) == body
    assert encoded(form.adapter.request_body(first)) == body


@forms
@given(case=cases(), data=st.data())
@loaded
def test_without_the_folder_the_request_has_words(
    form: WireFormat, case: tuple[Transcript, int], data: st.DataObject
) -> None:
    transcript = with_pictures(case[0], data)
    bare = form.ask(transcript, case[1])
    gone = replace(bare, pictures=dict.fromkeys(CONTENTS, "no such file"))
    for request in gone, replace(bare, pictures=CONTENTS, is_blind=True):
        assert form.body(request) == form.body(bare)
    assert sent(form.body(bare)) == []
    assert form.check(form.body(form.ask(own(transcript, form), case[1]))) == []


CALL = '❓:[ya] `{"index":0,"id":"call_1","type":"function","function":{"name":"plot","arguments":"{}"}}`'
ONE, TWO = ATTACHMENTS[0], ATTACHMENTS[2]
CHAT = f"""💬: Look:

![image/png 69 B]({ONE.path})

And at this:

![application/pdf 15 B]({TWO.path})

🤖:[Demo]

{CALL}

🛠️: [plot][call_1] ![image/png 69 B]({ONE.path})

`A plot.`
"""
DATA, FILE = (b64encode(CONTENTS[each.path]).decode() for each in (ONE, TWO))
URL, FILE_URL = f"data:image/png;base64,{DATA}", f"data:application/pdf;base64,{FILE}"
NAME = TWO.path.rpartition("/")[2]


def body(form: WireFormat, **more: Any) -> Any:
    return form.body(replace(form.ask(parse(CHAT), 0), pictures=CONTENTS, **more))


def test_anthropic_has_blocks_in_the_question_and_in_the_result() -> None:
    question, _, results = body(CLAUDE)["messages"]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
    source = {"type": "base64", "media_type": "application/pdf", "data": FILE}
    mark = {"cache_control": {"type": "ephemeral"}}
    assert question["content"] == [
        {"type": "text", "text": "Look:"},
        image,
        {"type": "text", "text": "And at this:"},
        {"type": "document", "source": source} | mark,
    ]
    content = [{"type": "text", "text": "A plot."}, image]
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "call_1", "content": content} | mark
    ]


def test_chat_completions_has_results_pictures_in_a_message_directly_after_them() -> None:
    _, question, _, result, shown = body(OPENAI)["messages"]
    image = {"type": "image_url", "image_url": {"url": URL}}
    assert question["content"] == [
        {"type": "text", "text": "Look:"},
        image,
        {"type": "text", "text": "And at this:"},
        {"type": "file", "file": {"filename": NAME, "file_data": FILE_URL}},
    ]
    assert result["content"] == "A plot.\n[image image/png, 69 B]"
    assert shown == {
        "role": "user",
        "content": [{"type": "text", "text": "Returned by plot (call_1):"}, image],
    }


def test_responses_has_a_list_as_a_calls_output() -> None:
    question, _, output = body(FORMATS[-1])["input"]
    image = {"type": "input_image", "image_url": URL}
    assert question["content"] == [
        {"type": "input_text", "text": "Look:"},
        image,
        {"type": "input_text", "text": "And at this:"},
        {"type": "input_file", "filename": NAME, "file_data": FILE_URL},
    ]
    assert output["output"] == [{"type": "input_text", "text": "A plot."}, image]


@forms
def test_a_failed_result_with_a_picture_says_that_it_failed(form: WireFormat) -> None:
    failed = parse(CHAT.replace("[call_1] ", "[call_1][error] "))
    request = replace(form.ask(failed, 0), pictures=CONTENTS)
    text = json.dumps(form.body(request))
    assert form.check(form.body(request)) == []
    assert ("is_error" if form in (CLAUDE, MANUAL) else "Error:") in text


@forms
def test_a_refused_picture_is_sent_in_words_and_the_others_stay(
    form: WireFormat,
) -> None:
    refused = body(form, refused=frozenset([ONE.path]))
    assert CONTENTS[ONE.path] not in sent(refused)
    assert (CONTENTS[TWO.path] in sent(refused)) == (form.model.startswith(("claude", "gpt")))


def test_values_derived_from_a_turn_are_cached_with_it() -> None:
    request = replace(CLAUDE.ask(parse(CHAT + "\n\nDone.\n\n💬: and?\n"), 1), pictures=CONTENTS)
    one, two = (CLAUDE.adapter.request_body(request)["messages"] for _ in range(2))
    assert one[0]["content"][1] is two[0]["content"][1]


def test_a_result_is_the_same_value_with_and_without_bytes() -> None:
    assert Result("ok", "x", (ONE,)) != Result("ok", "x")


@forms
@pytest.mark.parametrize("syntax", ["json", "xml"])
def test_a_model_with_text_tools_also_sees_the_results_pictures(
    form: WireFormat, syntax: Literal["json", "xml"]
) -> None:
    text_tools = TextTools(syntax, builtin_templates()[-1], "unlimited", 4096)
    request = replace(form.ask(parse(CHAT), 0), pictures=CONTENTS, text_tools=text_tools)
    shown = sent(form.adapter.request_body(text_request(request)))
    assert shown[-1] == CONTENTS[ONE.path]
    assert len(shown) == (3 if form.model.startswith(("claude", "gpt")) else 2)
