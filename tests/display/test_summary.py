"""A call's row and details if others ran it; `nvim/test_rows.py` has the rows of waiting calls."""

from __future__ import annotations

import pytest

from parley.chat.transcript import RUNNERS, Attachment, Proposal, Result, Runner
from parley.display.diff_rows import made_files
from parley.display.summary import Chunks, call_row, outcome
from parley.display.view import ChatView, details
from parley.nvim.folds import CallStart, folds
from parley.policy.approval import LedgerView
from tests.chats import SEARCH, TOOLS, answer, asked, call, chat

RAW = Attachment("40 kB", f"chat.assets/{'0' * 64}.txt")


def text(chunks: Chunks) -> str:
    return "".join(chunk[0] for chunk in chunks)


@pytest.mark.parametrize("ran_by", RUNNERS)
def test_a_row_names_those_who_ran_the_call_in_place_of_its_server(ran_by: Runner) -> None:
    row = call_row(Proposal(call(1), ran_by=ran_by), ("web_search", "demo"))
    assert text(row) == f'❓ web_search(query: "x") · run by the {ran_by}'
    assert text(call_row(asked(1), ("web_search", "demo"))) == '❓ web_search(query: "x") · demo'


def test_the_size_of_a_result_leaves_out_what_only_the_provider_understands() -> None:
    found = Proposal(call(1), result=Result("ok", "a page", (RAW,)), ran_by="provider")
    assert found.readable_result is not None
    assert outcome(found.readable_result, call_row(found, ()))[0] == " → 6 B, ok"
    of_agent = Proposal(call(1), result=found.result, ran_by="agent")
    assert of_agent.readable_result == found.result


def test_folds_of_such_calls_have_neither_a_tool_nor_changes_and_failures_stay_closed() -> None:
    failed = Proposal(call(2), result=Result("error", "no"), ran_by="agent")
    transcript = chat(answer(Proposal(call(1), ran_by="provider"), failed))
    found = list(folds(ChatView(transcript, TOOLS, LedgerView())))
    contents = [fold.content for fold in found]
    assert all(isinstance(each, CallStart) and not each.names for each in contents)
    assert [fold.is_open for fold in found] == [False, False]


def test_the_details_say_who_ran_the_call_and_describe_no_tool() -> None:
    lines = details(Proposal(call(1), result=Result("ok", "a page"), ran_by="provider"), None)
    assert lines[:3] == ["`web_search`", "", "Run by the provider: there was nothing to decide."]
    assert "a page" in lines
    assert "No server offers this tool now." not in lines
    assert "No server offers this tool now." in details(asked(1), None)
    assert lines != details(asked(1), SEARCH)


def test_only_the_result_of_an_own_call_says_what_it_changed() -> None:
    edit, made = call(1, "edit_file"), Result("ok", "changed a.py: +1 −2")
    (file,) = made_files(Proposal(edit, "ya", made))
    assert (file.path, file.added, file.removed) == ("a.py", 1, 2)
    assert made_files(Proposal(edit, result=made, ran_by="agent")) == ()
