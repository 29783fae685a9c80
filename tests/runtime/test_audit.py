"""The record of a turn's calls; their requests are tested with the ports."""

from __future__ import annotations

from parley.chat.transcript import Proposal, Result
from parley.engine import CallBegan, CallEnded
from parley.nvim.pages import log_page
from parley.policy.facts import Approved
from parley.runtime.asyncio_ports import Callbacks
from parley.runtime.audit import AuditedObserver
from parley.runtime.totals import ToolTotals, totals
from parley.tools.catalogue import Tool
from tests.chats import SEARCH, call, key
from tests.ledgers import open_ledger

FOUND = Result("ok", "a page")


def test_a_call_that_others_ran_is_recorded_as_such_and_not_as_approved() -> None:
    chat = open_ledger().chat("chat.md")
    own, others = Proposal(call(1), "ya"), Proposal(call(1), ran_by="provider")
    chat.record(Approved(((key(own), "ya"),), "key"))
    assert chat.start(key(own))
    observer = AuditedObserver(Callbacks(), chat)
    for proposal, tool in ((own, SEARCH), (others, Tool("anthropic", "web_search"))):
        observer.on_event(CallBegan(proposal, tool))
        observer.on_event(CallEnded(proposal, FOUND))
    calls = [facts for _, kind, facts in chat.history() if kind == "call"]
    assert [(facts["tool"], facts["rule"], facts.get("ran_by")) for facts in calls] == [
        ("demo/web_search", "key", None),
        ("anthropic/web_search", "", "provider"),
    ]
    rows = [line for line in log_page("chat.md", chat.history(), []) if " ran " in line]
    assert [row.partition(" 6 B")[2] for row in rows] == [", by the provider", ", by key"]


def test_the_totals_list_its_tool_with_the_providers_name() -> None:
    chat = open_ledger().chat("chat.md")
    observer, others = AuditedObserver(Callbacks(), chat), Proposal(call(1), ran_by="agent")
    observer.on_event(CallBegan(others, Tool("claude", "Read")))
    observer.on_event(CallEnded(others, Result("error", "no such file")))
    (sums,) = totals(chat.history()).tools.items()
    assert sums == ("claude/Read", ToolTotals(1, 0, 1, 0, sums[1].seconds))
