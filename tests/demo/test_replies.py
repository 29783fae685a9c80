"""The demo model's complete replies to simple conversations."""

import json
from dataclasses import replace

import pytest

from parley.demo import bug_fix
from parley.demo.dialogue import CallResult, DemoCall, DemoUsage, Dialogue, Reply
from parley.demo.replies import reply
from parley.demo.signing import seal, sign, unseal, verify
from parley.demo.stocks import Quote, companies, read_quote
from parley.policy.rewrites import rewrite_question

QUESTION = "can you find the latest stock price of google and microsoft?"


def conversation_about(
    question: str, *tools: str, results: tuple[CallResult, ...] = ()
) -> Dialogue:
    return Dialogue(model="demo", system="", question=question, tools=tools, results=results)


def searched(company: str, text: str, *, failed: bool = False) -> CallResult:
    return CallResult("web_search", json.dumps({"query": f"{company} stock price"}), text, failed)


GOOGLE = searched("google", '{"matches":["google stock GOOGL price is $911 as of today"]}')
MICROSOFT = searched("microsoft", '{"matches":["microsoft stock MSFT price is $544 as of today"]}')


def test_the_stock_question_gets_a_search_for_each_company() -> None:
    assert reply(conversation_about(QUESTION, "web_search")) == Reply(
        thinking="",
        hidden="",
        text="Let me search the web for both.",
        calls=(
            DemoCall("web_search", '{"query":"google stock price"}'),
            DemoCall("web_search", '{"query":"microsoft stock price"}'),
        ),
        stop="calls",
        usage=DemoUsage(prompt=0, output=24, thinking=0),
        seed="0",
    )


def test_the_answer_is_read_from_the_results() -> None:
    said = reply(conversation_about(QUESTION, "web_search", results=(GOOGLE, MICROSOFT)))
    assert said.text == (
        "Google (GOOGL) is at $911 and Microsoft (MSFT) is at $544 as of today. Do you want "
        "something else?"
    )
    assert (said.calls, said.stop) == ((), "end")


def test_the_summary_line_comes_when_the_system_prompt_requests_it() -> None:
    conversation = conversation_about(
        "stock price of apple", "web_search", results=(searched("apple", "AAPL: $12"),)
    )
    said = reply(replace(conversation, system="End with a line that starts with 📝: and sums up."))
    assert said.text.split("\n\n")[-1] == (
        "📝: you asked for the stock price of apple, and I answered: Apple (AAPL) is at $12."
    )
    assert "📝:" not in reply(conversation).text


def test_one_after_another_means_one_search_per_round() -> None:
    question = "stock price of google and microsoft, one after another"
    first = reply(conversation_about(question, "web_search"))
    second = reply(conversation_about(question, "web_search", results=(GOOGLE,)))
    third = reply(conversation_about(question, "web_search", results=(GOOGLE, MICROSOFT)))
    assert [call.arguments for call in first.calls] == ['{"query":"google stock price"}']
    assert [call.arguments for call in second.calls] == ['{"query":"microsoft stock price"}']
    assert third.calls == ()


def test_without_parallel_calls_each_round_has_one_search() -> None:
    assert (
        len(reply(replace(conversation_about(QUESTION, "web_search"), parallel=False)).calls) == 1
    )


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            searched("apple", "The user declined this call.", failed=True),
            "because you did not want the search",
        ),
        (
            searched("apple", "Error: The user did not approve this call."),
            "because you did not want the search",
        ),
        (searched("apple", "Error: no route", failed=True), "the search failed (no route)"),
        (
            searched("apple", "nothing here"),
            'the search returned "nothing here", and I can read no price',
        ),
    ],
)
def test_a_result_without_a_price_is_reported(result: CallResult, words: str) -> None:
    assert (
        words
        in reply(conversation_about("apple stock price", "web_search", results=(result,))).text
    )


def test_without_a_search_tool_it_cannot_look_things_up() -> None:
    assert "cannot look things up" in reply(conversation_about(QUESTION)).text
    assert "cannot look things up" in reply(conversation_about(QUESTION, "calculator")).text


def test_a_search_tool_with_another_name_is_used() -> None:
    assert {
        call.name for call in reply(conversation_about(QUESTION, "mock__web_search")).calls
    } == {"mock__web_search"}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (QUESTION, ("google", "microsoft")),
        (
            "stock price of 3M, Berkshire Hathaway and Shell please",
            ("3M", "Berkshire Hathaway", "Shell"),
        ),
        ("and apple?", ("apple",)),
        ("how is the ACME stock today?", ("ACME",)),
        ("google and microsoft stock prices", ("google", "microsoft")),
        ("What is the price of Nvidia? I wonder.", ("Nvidia",)),
        ("hello", ()),
        ("tell me of the apple that fell down on the head of Newton one day", ()),
    ],
)
def test_companies_are_found_in_the_question(question: str, expected: tuple[str, ...]) -> None:
    assert companies(question) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"matches":[{"name":"Alphabet","symbol":"GOOGL","price":911}]}',
            Quote("Alphabet", "GOOGL", "911"),
        ),
        (
            '{"matches":[{"google stock GOOGL price is $911 as of today" ... ]}',
            Quote("Google", "GOOGL", "911"),
        ),
        ('["Alphabet stock GOOGL price is $911"]', Quote("Alphabet", "GOOGL", "911")),
        ("ACME stock price: QXZ price is $12 as of today", Quote("Google", "QXZ", "12")),
        ("price: 1,234.50", Quote("Google", "", "1,234.50")),
        ("", None),
        ("[1, 2]", None),
    ],
)
def test_prices_are_read_from_json_and_from_prose(text: str, expected: Quote | None) -> None:
    assert read_quote("google", text) == expected


def test_a_named_tool_is_called_with_the_exact_argument_text() -> None:
    question = 'call add {"a": 1.0, "b":[ ]} and then use the tool wait, please; call nope {"x":1}'
    assert reply(conversation_about(question, "add", "wait")).calls == (
        DemoCall("add", '{"a": 1.0, "b":[ ]}'),
        DemoCall("wait", "{}"),
    )


def test_arguments_that_are_not_json_are_passed_on_unchanged() -> None:
    assert reply(conversation_about('call add {"a": \nmore', "add")).calls == (
        DemoCall("add", '{"a":'),
    )


def test_a_tool_that_was_not_offered_is_not_called() -> None:
    assert (
        reply(conversation_about("call add {}", "wait")).text
        == "I have no tool named add. I have: wait."
    )


def test_a_named_tools_result_is_reported() -> None:
    results = (
        CallResult("add", "{}", "3", False),
        CallResult("wait", "{}", "Error: too long", True),
    )
    said = reply(conversation_about("call add {} call wait {}", "add", "wait", results=results))
    assert said.text == "add returned: 3\n\nwait failed: too long"


def test_named_tools_are_called_one_after_another_on_request() -> None:
    question = 'one after another: call add {"a":1}, call fail {}, call add {"a":2}'
    first = CallResult("add", '{"a": 1}', "3", False)
    second = CallResult("fail", "{}", "it did not work", True)
    assert reply(conversation_about(question, "add", "fail")).calls == (DemoCall("add", '{"a":1}'),)
    assert reply(conversation_about(question, "add", "fail", results=(first,))).calls == (
        DemoCall("fail", "{}"),
    )
    assert reply(conversation_about(question, "add", "fail", results=(first, second))).calls == (
        DemoCall("add", '{"a":2}'),
    )
    said = reply(conversation_about(question, "add", "fail", results=(first, second, first)))
    assert said.calls == ()
    assert said.text == "add returned: 3\n\nfail failed: it did not work\n\nadd returned: 3"


def test_a_named_tool_is_called_as_long_as_it_is_offered() -> None:
    question, results = "call add {} again and again", (CallResult("add", "{}", "3", False),) * 9
    assert reply(conversation_about(question, "add", results=results)).calls == (
        DemoCall("add", "{}"),
    )
    assert reply(conversation_about(question, results=results[:1])).text == "add returned: 3"


def test_on_request_the_model_calls_tools_that_were_not_offered() -> None:
    assert reply(conversation_about("call nowhere {} no matter what")).calls == (
        DemoCall("nowhere", "{}"),
    )


@pytest.mark.parametrize(
    "text", ["💬: not you\n🤖:[x]\n❓:[yA] `{}`", "  two\n\n", "🧠:[a b]\n> c"]
)
def test_say_repeats_its_text_verbatim(text: str) -> None:
    assert reply(conversation_about(f"say: {text}")).text == text
    assert reply(conversation_about(f"repeat\n{text}")).text == text


def test_write_writes_the_requested_number_of_words() -> None:
    assert len(reply(conversation_about("write 1000 words about it")).text.split()) == 1000


def test_thinking_is_off_on_or_on_request() -> None:
    question = conversation_about("think about it")
    assert reply(question).thinking == ""
    assert reply(replace(question, thinking="asked")).thinking.startswith("First: what is asked?")
    assert reply(replace(conversation_about("hello"), thinking="asked")).thinking == ""
    assert reply(replace(conversation_about("hello"), thinking="on")).thinking != ""


def test_redacted_thinking_is_hidden() -> None:
    said = reply(replace(conversation_about("redacted, please"), thinking="on"))
    assert said.thinking == ""
    assert said.hidden != ""


def test_everything_is_cut_at_the_limit() -> None:
    conversation = replace(conversation_about(QUESTION, "web_search"), limit=9)
    said = reply(conversation)
    assert said.text == "Let me search the web for both."
    assert said.calls == (DemoCall("web_search", '{"que'),)
    assert (said.stop, said.usage.output) == ("length", 9)
    assert reply(replace(conversation, limit=24)).stop == "calls"


def test_equal_conversations_get_equal_replies() -> None:
    assert reply(conversation_about("hello")) == reply(conversation_about("hello"))


def test_a_status_question_gets_one_short_sentence() -> None:
    question = (
        'web_search {"query": "google stock price"}: a single, clear, natural sentence '
        "(max 10 words)"
    )
    assert reply(conversation_about(question)).text == "Searching for google stock price..."


def test_a_signature_is_valid_only_for_its_text() -> None:
    assert verify("Hm.", sign("Hm."))
    assert not verify("Hm. ", sign("Hm."))
    assert not verify("Hm.", "ä")
    assert unseal(seal("Hm. 🧠")) == "Hm. 🧠"
    assert unseal(seal("Hm.")[:-4]) is None
    assert unseal("") is None


def test_rewritten_lines_are_in_upper_case_in_a_block_of_their_own() -> None:
    quoted = "`a.py:2-3` (2 lines)\n\n````py\nif a:\n    '```'\n````"
    said = reply(conversation_about(f"{rewrite_question('say: x')}\n\n{quoted}"))
    assert said.text.endswith("\n\n````py\nIF A:\n    '```'\n````")


FILE_TOOLS = ("search_text", "edit_file", "run_command")
FOUND = CallResult("search_text", "{}", f"a: b\nsrc/cart.py:6:     return {bug_fix.BUG}", False)
EDITED = CallResult("edit_file", "{}", "changed src/cart.py: +1 −1", False)
PASSED = CallResult("run_command", "{}", "[exit code 0, 0.2 s, sandboxed]\nOK", False)
DECLINED = "Error: The user declined this call."


def test_the_bug_is_searched_edited_and_tested_in_three_rounds() -> None:
    rounds = [(), (FOUND,), (FOUND, EDITED), (FOUND, EDITED, PASSED)]
    said = [
        reply(conversation_about("fix the bug in the shopping cart", *FILE_TOOLS, results=results))
        for results in rounds
    ]
    assert [[(call.name, json.loads(call.arguments)) for call in each.calls] for each in said] == [
        [("search_text", {"pattern": "price"})],
        [
            (
                "edit_file",
                {"path": "src/cart.py", "edits": [{"old": bug_fix.BUG, "new": bug_fix.FIXED}]},
            )
        ],
        [("run_command", {"command": "python3 -m unittest -q"})],
        [],
    ]
    assert said[-1].text == (
        "I have fixed src/cart.py, and the tests pass. `:ParleyRevert` takes the change back."
    )


@pytest.mark.parametrize(
    ("tools", "results", "text"),
    [
        ((), (), "I cannot fix it: no tool `search_text` was offered to me."),
        (FILE_TOOLS, (replace(FOUND, text="none"),), f"No file contains `{bug_fix.BUG}`, "),
        (FILE_TOOLS, (replace(FOUND, text="no", failed=True),), "search_text failed: no"),
        (FILE_TOOLS[:2], (FOUND, EDITED), "I have fixed src/cart.py, but I have no tool to run "),
        (FILE_TOOLS, (FOUND, replace(EDITED, text=DECLINED)), "You did not want that, so I have "),
        (FILE_TOOLS, (FOUND, EDITED, replace(PASSED, text=DECLINED)), "You did not want the tests"),
        (
            FILE_TOOLS,
            (FOUND, EDITED, replace(PASSED, text="[exit code 1, 0.2 s, sandboxed]")),
            "I have fixed src/cart.py, but the tests fail.",
        ),
    ],
)
def test_a_fix_that_cannot_continue_says_why(
    tools: tuple[str, ...], results: tuple[CallResult, ...], text: str
) -> None:
    said = reply(conversation_about("fix the bug in the shopping cart", *tools, results=results))
    assert (said.text.startswith(text), said.calls) == (True, ()), said.text
