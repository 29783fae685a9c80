"""The limits: every row in the table, with the exact texts, and the calls that count."""

from __future__ import annotations

import pytest

from parley.chat.reader import parse
from parley.chat.rounds import Notice, resumption
from parley.chat.transcript import (
    Answer,
    Broken,
    Exchange,
    Note,
    Proposal,
    Result,
    Segment,
    Text,
    Transcript,
)
from parley.policy.plan import (
    AskModel,
    AwaitChoices,
    AwaitQuestion,
    Complete,
    Resume,
    RunTools,
    Settle,
    StartAnswer,
    Stop,
)
from parley.policy.rules import Pattern, Rules
from parley.policy.turn_limits import (
    Limits,
    calls_left,
    calls_made,
    session_calls,
    stop_reason,
    why_without_tools,
)
from parley.tools.catalogue import Catalogue
from tests.chats import FAILED, OK, REFUSED, TOOLS, answer, asked, chat, ran, step, tool, view, yes
from tests.defaults import limits_with

MESSAGE = "Tool call limit exceeded for this message"
SESSION = "Tool call limit exceeded for this session"


def refused(transcript: Transcript, **more: object) -> list[tuple[str, str]]:
    """The calls refused without asking, each with its text."""
    made = step(transcript, **more)  # type: ignore[arg-type]
    assert isinstance(made, Settle), made
    assert all(result.status == "refused" for _, result in made.results)
    return [(p.call.id, result.body) for p, result in made.results]


def round_of(*results: Result) -> list[Segment]:
    """One reply with calls that have these results."""
    return [Text("more"), *(ran(n, result) for n, result in enumerate(results, 1))]


def test_three_of_five_calls_in_one_reply_may_run() -> None:
    transcript = chat(answer(*(asked(n) for n in range(1, 6))))
    assert refused(transcript, limits=limits_with(per_message=3)) == [
        ("call_4", MESSAGE),
        ("call_5", MESSAGE),
    ]


def test_after_the_three_have_run_the_model_is_asked_again_without_tools() -> None:
    three = [ran(n) for n in range(1, 4)]
    over = [asked(n, None, Result("refused", MESSAGE)) for n in (4, 5)]
    assert step(chat(answer(*three, *over)), limits=limits_with(per_message=3)) == AskModel(
        tools_on=False
    )
    assert step(chat(answer(*three)), limits=limits_with(per_message=3)) == AskModel(tools_on=False)
    assert step(chat(answer(*three)), limits=limits_with(per_message=4)) == AskModel(tools_on=True)


def test_calls_approved_in_the_same_reply_count_in_document_order() -> None:
    calls = [ran(1), asked(2, "ya"), asked(3), asked(4)]
    transcript = chat(answer(*calls))
    assert refused(transcript, limits=limits_with(per_message=3), view=view(yes(asked(2)))) == [
        ("call_4", MESSAGE)
    ]


def test_a_message_is_one_exchange_and_a_new_question_counts_from_zero() -> None:
    earlier = answer(*round_of(OK, OK, OK), Text("done"))
    limits = limits_with(per_message=3)
    assert step(chat(earlier, answer(asked(1))), limits=limits) == AwaitChoices((asked(1),))


def test_two_answers_to_one_question_are_one_message() -> None:
    exchange = chat(answer(*round_of(OK, OK))).exchanges[0]
    transcript = Transcript((Exchange(exchange.question, (*exchange.answers, answer(asked(1)))),))
    assert refused(transcript, limits=limits_with(per_message=2)) == [("call_1", MESSAGE)]


def test_a_session_is_the_file() -> None:
    earlier = answer(*round_of(OK, FAILED), Text("done"))
    limits = limits_with(per_session=3)
    assert refused(chat(earlier, answer(asked(1), asked(2))), limits=limits) == [
        ("call_2", SESSION)
    ]
    assert step(chat(earlier, answer(ran(1))), limits=limits) == AskModel(tools_on=False)


def test_the_user_learns_why_a_question_is_asked_without_tools() -> None:
    two = chat(answer(*round_of(OK, FAILED), Text("done")))
    assert why_without_tools(limits_with(per_session=2), two) == (
        "asked without tools: this chat has made 2 tool calls, and max_tool_calls.per_session is 2. "
        "Raise it, or start a new chat"
    )
    for limits in ({}, {"per_session": 3}, {"per_session": 0}, {"per_message": 1}):
        assert why_without_tools(limits_with(**limits), two) == ""


def test_counts_survive_a_restart_because_they_come_from_the_file() -> None:
    text = "💬: a\n🤖:\n" + "".join(
        (
            f'❓:[ya] `{{"id":"c{n}","function":{{"name":"f","arguments":""}}}}`\n🛠️: '
            f"[f][c{n}]{status}\n\n`x`\n\n"
        )
        for n, status in enumerate(["", "[error]", "[refused]"])
    )
    assert session_calls(parse(text)) == 2
    assert calls_made(parse(text).exchanges[0].answers) == 2


def test_zero_is_tools_off() -> None:
    for limits in (limits_with(per_message=0), limits_with(per_session=0)):
        assert step(chat(answer()), limits=limits) == AskModel(tools_on=False)
    assert refused(chat(answer(asked(1))), limits=limits_with(per_message=0)) == [
        ("call_1", MESSAGE)
    ]


def test_the_message_limit_is_named_before_the_sessions() -> None:
    assert refused(chat(answer(asked(1))), limits=limits_with(per_message=0, per_session=0)) == [
        ("call_1", MESSAGE)
    ]


def test_refused_calls_never_count() -> None:
    transcript = chat(answer(*round_of(REFUSED, REFUSED), asked(3)))
    assert step(transcript, limits=limits_with(per_message=1)) == AwaitChoices((asked(3),))


def test_ten_rounds_of_tools_end_the_answer() -> None:
    rounds: list[Segment] = []
    for _ in range(9):
        rounds += round_of(OK)
    assert step(chat(answer(*rounds))) == AskModel(tools_on=True)
    assert step(chat(answer(*rounds, *round_of(OK)))) == Stop(
        "reached the maximum of 10 rounds of tool calls"
    )


def test_the_round_limit_lets_the_last_round_run() -> None:
    transcript = chat(answer(*round_of(OK), Text("again"), asked(1, "ya")))
    known = view(yes(asked(1)))
    assert step(transcript, limits=limits_with(max_iterations=2), view=known) == RunTools(
        (asked(1, "ya"),)
    )


ERRORS: dict[str, tuple[list[list[Result]], bool]] = {
    "three in three rounds": ([[FAILED], [FAILED], [FAILED]], True),
    "three in one round": ([[FAILED, FAILED, FAILED]], False),
    "four in two rounds": ([[FAILED, FAILED], [FAILED, FAILED]], False),
    "six in three rounds": ([[FAILED, FAILED], [FAILED, FAILED], [FAILED, FAILED]], True),
    "one in each of three rounds worked": (
        [[FAILED, OK], [OK, FAILED], [FAILED, OK, FAILED]],
        False,
    ),
    "one in the last round worked": ([[FAILED], [FAILED], [OK, FAILED]], False),
    "two": ([[FAILED], [FAILED]], False),
    "ok error ok error": ([[OK], [FAILED], [OK], [FAILED]], False),
    "error, ok, error, error": ([[FAILED], [OK], [FAILED], [FAILED]], False),
    "two, one that worked, two": ([[FAILED, FAILED], [OK], [FAILED, FAILED]], False),
    "three before one that worked": ([[FAILED], [FAILED], [FAILED], [OK]], False),
    "declined in between": ([[FAILED], [REFUSED], [FAILED], [FAILED]], True),
    "declined only": ([[REFUSED], [REFUSED], [REFUSED]], False),
    "invalid arguments": ([[Result("refused", "Invalid arguments: expected 'query'")]] * 3, True),
    "over a limit": ([[Result("refused", MESSAGE)]] * 3, False),
    "mixed causes": ([[FAILED], [Result("refused", "Invalid arguments: no")], [FAILED]], True),
    "a failure that names a cause": ([[Result("error", "Unknown tool")], [OK]], False),
}


@pytest.mark.parametrize("why", ERRORS)
def test_three_errors_in_a_row_end_the_answer(why: str) -> None:
    results, stops = ERRORS[why]
    segments: list[Segment] = [s for each in results for s in round_of(*each)]
    made = step(chat(answer(*segments)))
    assert made == (
        Stop("all tool calls failed in 3 replies in a row") if stops else AskModel(tools_on=True)
    )


def test_a_single_reply_of_failing_calls_ends_the_answer_if_the_settings_say_so() -> None:
    made = step(
        chat(answer(*round_of(FAILED, FAILED))), limits=limits_with(max_consecutive_errors=1)
    )
    assert made == Stop("all tool calls failed in 1 reply")


def unknown(number: int, name: str) -> list[Segment]:
    body = f"Unknown tool {name!r}. Available tools: read_file, web_search"
    return [Text("hm"), asked(number, None, Result("refused", body), name=name)]


def test_the_same_unknown_tool_twice_in_a_row_ends_the_answer() -> None:
    twice = chat(answer(*unknown(1, "shell"), *unknown(1, "shell")))
    assert step(twice) == Stop("the model asked twice for a tool that does not exist: shell")
    for segments in (
        [*unknown(1, "shell")],
        [*unknown(1, "shell"), *unknown(1, "bash")],
        [*unknown(1, "shell"), *round_of(OK), *unknown(1, "shell")],
    ):
        assert step(chat(answer(*segments))) == AskModel(tools_on=True)


def test_a_call_without_any_tools_ends_the_answer() -> None:
    assert step(chat(answer(*unknown(1, "shell"))), Catalogue()) == Stop(
        "the model asked for a tool, but there are none"
    )
    assert step(chat(answer(*round_of(OK))), Catalogue()) == AskModel(tools_on=True)
    resumed = Note(resumption(Notice("Unable to complete task", "the model asked for a tool")))
    assert step(chat(answer(*unknown(1, "shell"), resumed)), Catalogue()) == AskModel(tools_on=True)


@pytest.mark.parametrize("limits", [limits_with(per_message=1), limits_with(per_session=1)])
def test_calls_in_the_reply_to_a_request_without_tools_end_the_answer(limits: Limits) -> None:
    over = Result("refused", MESSAGE)
    asks_on = [*round_of(OK), *round_of(over)]
    assert step(chat(answer(*round_of(OK, over))), limits=limits) == AskModel(tools_on=False)
    assert step(chat(answer(*asks_on)), limits=limits) == Stop(
        "the model kept asking for tools after reaching the limit of tool calls"
    )
    resumed = Note(resumption(Notice("Unable to complete task", "x")))
    assert step(chat(answer(*asks_on, resumed)), limits=limits) == AskModel(tools_on=False)


def test_calls_although_tools_were_never_on_end_the_answer() -> None:
    over = Result("refused", MESSAGE)
    assert step(chat(answer(*round_of(over))), limits=limits_with(per_message=0)) == Stop(
        "the model kept asking for tools after reaching the limit of tool calls"
    )


def test_an_unknown_tool_gets_the_names_and_the_nearest_one() -> None:
    asks = chat(answer(asked(1, name="web_serch"), asked(2, name="zzz")))
    assert refused(asks) == [
        (
            "call_1",
            (
                "Unknown tool 'web_serch'. Did you mean web_search? Available tools: read_file, "
                "web_search"
            ),
        ),
        ("call_2", "Unknown tool 'zzz'. Available tools: read_file, web_search"),
    ]
    assert refused(chat(answer(asked(1))), catalogue=Catalogue()) == [
        ("call_1", "Unknown tool 'web_search'. Available tools: none")
    ]


def test_five_of_seven_calls_in_one_reply_may_run() -> None:
    text = "Too many tool calls (7) - max allowed: 5"
    seven = chat(answer(*(asked(n) for n in range(1, 8))))
    assert refused(seven) == [("call_6", text), ("call_7", text)]
    rest = [asked(n, None, Result("refused", text)) for n in (6, 7)]
    five = [asked(n) for n in range(1, 6)]
    assert step(chat(answer(*five, *rest))) == AwaitChoices(tuple(five))


ORDER = [
    ("Unknown tool", asked(1, name="nowhere", arguments="[")),
    ("is blocked by the pattern 'read'", asked(1, name="read_file", arguments="[")),
    ("is denied by the rule '*'", asked(1, name="web_search", arguments="[")),
    ("Invalid arguments: ", asked(1, name="other", arguments="[]")),
    (
        "Invalid arguments: Missing required parameter 'query'",
        asked(1, name="other", arguments="{}"),
    ),
    ("Too many tool calls (1) - max allowed: 0", asked(1, name="other")),
]


@pytest.mark.parametrize(("text", "proposal"), ORDER)
def test_the_checks_run_in_this_order(text: str, proposal: Proposal) -> None:
    limits = limits_with(per_message=0, max_tools_per_request=0, blocked=("read",))
    rules = Rules(deny=(Pattern("*_*"), Pattern("*")))
    catalogue = Catalogue.of([*(t for _, t in TOOLS.tools), tool("other")])
    free = rules if "denied" in text else Rules()
    ((_, body),) = refused(chat(answer(proposal)), catalogue=catalogue, limits=limits, rules=free)
    assert text.replace("'*'", "'*_*'") in body


@pytest.mark.parametrize(
    "arguments", ["[]", "{", "null", '{"a":1,"a":1}', '{"a":1e999}', '{"query":1}']
)
def test_a_refusal_says_once_that_arguments_are_invalid(arguments: str) -> None:
    ((_, body),) = refused(chat(answer(asked(1, arguments=arguments))))
    assert body.startswith("Invalid arguments: ")
    assert body.count("Invalid arguments") == 1


def test_a_blocked_word_refuses_without_asking_and_only_as_a_whole_word() -> None:
    names = ["rm", "rm_file", "format", "confirm"]
    catalogue = Catalogue.of([tool(name) for name in names])
    calls = [asked(n, name=name) for n, name in enumerate(names, 1)]
    assert refused(
        chat(answer(*calls)), catalogue=catalogue, limits=limits_with(blocked=("rm",))
    ) == [
        ("call_1", "Tool rm is blocked by the pattern 'rm'"),
        ("call_2", "Tool rm_file is blocked by the pattern 'rm'"),
    ]


def test_declined_comes_before_everything() -> None:
    declined = asked(1, "yn", name="nowhere")
    assert refused(chat(answer(declined))) == [("call_1", "The user declined this call.")]


def test_limits_are_checked_again_before_an_approved_call_runs() -> None:
    marked = asked(1, "ya")
    assert refused(
        chat(answer(marked)), limits=limits_with(per_session=0), view=view(yes(marked))
    ) == [("call_1", SESSION)]


def test_nothing_runs_until_every_call_of_the_round_is_decided() -> None:
    first, second = asked(1, "ya"), asked(2)
    known = view(yes(first))
    assert step(chat(answer(first, second)), view=known) == AwaitChoices((second,))
    declined = asked(2, "yn")
    assert refused(chat(answer(first, declined)), view=known) == [
        ("call_2", "The user declined this call.")
    ]
    settled = asked(2, "yn", REFUSED)
    assert step(chat(answer(first, settled)), view=known) == RunTools((first,))


def test_an_unreadable_call_delays_the_others() -> None:
    first, broken = asked(1, "ya"), Broken("proposal", "❓: {nope")
    assert step(chat(answer(first, broken)), view=view(yes(first))) == AwaitChoices((broken,))
    declined = Broken("proposal", "❓:[yn] {nope", "yn")
    assert step(chat(answer(first, declined)), view=view(yes(first))) == RunTools((first,))
    assert step(chat(answer(ran(1), declined))) == AskModel(tools_on=True)


NOTICE = Notice("Unable to complete task", "all tool calls failed in 3 replies in a row")


def test_an_answer_that_ends_in_a_notice_is_resumed_and_counts_from_there() -> None:
    failed = [*round_of(FAILED), *round_of(FAILED), *round_of(FAILED)]
    assert step(chat(answer(*failed, Note(NOTICE.text)))) == Resume()
    again = chat(answer(*failed, Note(resumption(NOTICE))))
    assert step(again) == AskModel(tools_on=True)
    worse = chat(answer(*failed, Note(resumption(NOTICE)), *round_of(FAILED), *round_of(FAILED)))
    assert step(worse) == AskModel(tools_on=True)
    ten = [s for _ in range(10) for s in round_of(OK)]
    assert stop_reason(limits_with(), answer(*ten, Note(resumption(NOTICE)))) is None
    assert step(
        chat(answer(*ten, Note(resumption(NOTICE)))), limits=limits_with(per_message=10)
    ) == AskModel(False)


@pytest.mark.parametrize("question", ["", " ", "\n🔒: only a note", "\n\u00a0\n", "\n\u2003\u2028"])
def test_a_blank_question_asks_nothing(question: str) -> None:
    assert step(parse(f"💬: {question}\n")) == AwaitQuestion()


def test_each_simple_step() -> None:
    assert step(parse("💬: q\n")) == StartAnswer()
    assert step(parse("💬: q\n🤖:[A]\n")) == AskModel(tools_on=True)
    assert step(parse("💬: q\n🤖:[A]\n🔒: my note\n")) == AskModel(tools_on=True)
    assert step(parse("💬: q\n🤖:[A]\n🧠:[a:b]\n> hm\n")) == Complete()
    assert step(parse("💬: q\n🤖:[A]\ntext\n🔒: my note\n")) == Complete()
    assert step(parse("🤖:[A]\n")) == AskModel(tools_on=True)
    assert step(parse("🤖:\n🤖:\ntext\n")) == Complete()
    assert step(chat(Answer(None, (ran(1), Note("mine"))))) == AskModel(tools_on=True)


@pytest.mark.parametrize(
    ("per_message", "per_session", "left"),
    [(None, None, None), (3, None, 2), (None, 3, 1), (3, 3, 1), (1, 9, 0), (0, None, 0)],
)
def test_the_calls_left_are_the_smaller_of_the_messages_and_the_sessions(
    per_message: int | None, per_session: int | None, left: int | None
) -> None:
    limits = limits_with(per_message=per_message, per_session=per_session)
    transcript = chat(answer(ran(1)), answer(ran(2)))
    assert calls_left(limits, transcript.exchanges[-1].answers, transcript) == left
