"""The tool that reads more of long results: offered if such results exist, and run without asking."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from parley.chat.attachments import attachment_of, link
from parley.chat.call_lines import proposal_line
from parley.chat.reader import parse
from parley.chat.transcript import Attachment, Proposal, Result, ToolCall
from parley.engine import End, observe, with_own_tools
from parley.engine.ports import NoAttachments
from parley.models import anthropic, openai_chat, openai_responses
from parley.policy.rules import Pattern, Rules
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.long_results import READ_RESULT
from tests.chats import TOOLS
from tests.defaults import limits_with
from tests.fakes import LoggedTools, ScriptedModel, Turns, calls, says

TEXT = "".join(f"line {number}\n" for number in range(100))
WHOLE = attachment_of(TEXT.encode(), "chat.assets", "txt")


def proposal(number: int = 1, call_id: str = "call_1") -> str:
    return (
        f'❓:[ya] `{{"index":{number - 1},"id":"{call_id}","type":"function","function":'
        '{"name":"web_search","arguments":"{\\"query\\":\\"x\\"}"}}`'
    )


def chat(*more: str, whole: Attachment = WHOLE) -> str:
    head = f"```\n{TEXT[:21]}… [truncated: 769 bytes omitted]\n```"
    return "\n\n".join(
        [
            "💬: Read the log.",
            "🤖:[Demo]",
            proposal(),
            f"🛠️: [web_search][call_1] {link(whole)}",
            head,
            *more,
        ]
    )


class Beside(NoAttachments):
    """The files next to a chat, with a record of the requested ones."""

    def __init__(self, contents: Mapping[str, bytes | str]) -> None:
        self.contents = contents
        self.requests = list[str]()

    async def read(self, attachments: Sequence[Attachment]) -> Mapping[str, bytes | str]:
        self.requests += [attachment.path for attachment in attachments]
        return {a.path: self.contents.get(a.path, "no such file") for a in attachments}


def read(call_id: str = "call_1", **arguments: int) -> ToolCall:
    return ToolCall("call_2", "read_result", json.dumps({"call": call_id} | arguments), 0)


async def turn(
    text: str, call: ToolCall, contents: Mapping[str, bytes | str] | None = None
) -> Turns:
    """A turn in which the model reads more of a result and then answers."""
    turns = Turns(text, ScriptedModel(calls(call), says("Done.")), LoggedTools(TOOLS))
    beside = Beside({WHOLE.path: TEXT.encode()} if contents is None else contents)
    turns.ports = replace(turns.ports, attachments=beside)
    assert await turns.run() == End("complete")
    return turns


def result_of(turns: Turns) -> Result:
    proposals = parse(turns.text).exchanges[0].answers[0].proposals
    last = [p for p in proposals if p.call.name == "read_result"][-1]
    assert isinstance(last, Proposal)
    assert last.choice == "ya"
    assert last.result
    return last.result


async def test_it_runs_without_asking_and_is_written_like_any_call() -> None:
    turns = await turn(chat(), read())
    assert result_of(turns) == Result(
        "ok", f"{TEXT[21:]}\n[Characters 21 to 790 of 790; this is the end]"
    )
    (entry,) = turns.ledger.view().entries
    assert (entry.key.server, entry.key.tool, entry.rule, entry.state) == (
        "parley",
        "read_result",
        "auto",
        "used",
    )


async def test_an_offset_and_a_length_are_used() -> None:
    turns = await turn(chat(), read(offset=5, length=10))
    assert result_of(turns) == Result(
        "ok", f"{TEXT[5:15]}\n[Characters 5 to 15 of 790; 775 are left: go on with offset 15]"
    )


async def test_an_integer_may_have_a_decimal_point() -> None:
    turns = await turn(
        chat(), ToolCall("call_2", "read_result", '{"call":"call_1","offset":5.0,"length":1e1}', 0)
    )
    assert result_of(turns).body.startswith(f"{TEXT[5:15]}\n[Characters 5 to 15 of 790")


async def test_calls_with_one_id_are_read_by_the_ids_that_the_model_knows() -> None:
    other = attachment_of(b"other\n" * 9, "chat.assets", "txt")
    second = [
        "Once more.",
        proposal(),
        f"🛠️: [web_search][call_1] {link(other)}",
        "`other… [truncated: 49 bytes omitted]`",
    ]
    contents: dict[str, bytes | str] = {WHOLE.path: TEXT.encode(), other.path: b"other\n" * 9}
    turns = await turn(chat(*second), read("call_1_2"), contents)
    assert result_of(turns).body.startswith("\nother\nother")
    assert result_of(await turn(chat(*second), read("call_1"), contents)).body.startswith("line 3")


@pytest.mark.parametrize(
    ("call", "contents", "why"),
    [
        (
            read("call_9"),
            None,
            "No long result of a call 'call_9'. Calls with long results: call_1",
        ),
        (read(), {}, "The result of call_1 cannot be read: no such file"),
        (
            read(),
            {WHOLE.path: "its content does not match its name"},
            "its content does not match its name",
        ),
    ],
)
async def test_an_unreadable_attachment_is_an_error_for_the_model(
    call: ToolCall, contents: Mapping[str, bytes | str] | None, why: str
) -> None:
    result = result_of(await turn(chat(), call, contents))
    assert result.status == "error"
    assert why in result.body


async def test_only_the_chats_attachments_are_read() -> None:
    turns = await turn(chat(), read("../../etc/passwd"))
    assert result_of(turns).status == "error"
    assert isinstance(turns.ports.attachments, Beside)
    assert turns.ports.attachments.requests == []


async def test_a_rule_may_deny_it_and_a_limit_counts_it() -> None:
    denied = Turns(
        chat(),
        ScriptedModel(calls(read()), says("Well.")),
        LoggedTools(TOOLS),
        rules=Rules(deny=(Pattern("parley/*"),)),
    )
    assert await denied.run() == End("complete")
    assert result_of_refused(denied).status == "refused"
    full = Turns(
        chat(),
        ScriptedModel(calls(read()), says("Well.")),
        LoggedTools(TOOLS),
        limits=limits_with(per_message=1),
    )
    await full.run()
    assert "Tool call limit exceeded" in full.text


def result_of_refused(turns: Turns) -> Result:
    result = parse(turns.text).exchanges[0].answers[0].proposals[-1].result
    assert result
    return result


async def test_a_call_that_the_model_did_not_make_here_needs_approval() -> None:
    turns = Turns(
        chat(proposal_line(replace(read(), index=1), "ya")),
        ScriptedModel(says("x")),
        LoggedTools(TOOLS),
    )
    assert await turns.run() == End("waiting")


def test_it_is_offered_while_the_chat_has_a_long_result() -> None:
    with_one, without = (
        parse(chat()),
        parse(chat(whole=replace(WHOLE, path=f"{WHOLE.path[:-3]}png"))),
    )
    assert with_own_tools(TOOLS, with_one, None).get("read_result") == READ_RESULT
    assert with_own_tools(TOOLS, without, None) is TOOLS
    namesake = Tool("demo", "read_result", input_schema={"type": "object"})
    both = with_own_tools(Catalogue.of([namesake]), with_one, None)
    assert both.names() == ("demo__read_result", "parley__read_result")


@pytest.mark.parametrize("form", [anthropic, openai_chat, openai_responses])
async def test_the_model_is_told_how_to_read_more(form: object) -> None:
    turns = Turns(chat(), ScriptedModel(says("x")), LoggedTools(TOOLS))
    seen = await observe(turns.ports, turns.resolve)
    body = json.dumps(form.request_body(seen.request(tools_on=True)))  # type: ignore[attr-defined]
    assert '[read_result with the call \\"call_1\\" reads on in this result]' in body
    assert '"name": "read_result"' in body
