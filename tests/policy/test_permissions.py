"""Permissions: what they allow, in which order they count, and what no capital letter remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.transcript import Proposal, Result
from parley.policy.approval import Approvals, Decision, Lapse, LedgerView
from parley.policy.doubts import why_asked
from parley.policy.permissions import (
    Permission,
    exact,
    memory_of,
    offers,
    permission_for,
    reason,
    remembering,
)
from parley.policy.plan import AwaitChoices, Decide, Settle, Step
from parley.policy.previews import CallPreview, FilePreview
from parley.policy.rules import Pattern, Rules
from parley.tools.catalogue import Catalogue, Tool, canonical
from parley.tools.server_settings import ServerSettings
from tests.chats import (
    SEARCH,
    TOOLS,
    answer,
    asked,
    chat,
    ran,
    step,
    tool,
    view,
    yes,
)
from tests.defaults import limits_with
from tests.examples import examples

ROOT, OTHER = "/home/me/project", "/home/me/other"
CHAT = "/home/me/chats/one.md"
OWN = ServerSettings("workspace", builtin=True, cwd=ROOT).identity
COMMAND = Tool("workspace", "run_command", identity=OWN)
WRITE = Tool("workspace", "write_file", identity=OWN)
DELETE = Tool("workspace", "delete_file", identity=OWN)
DESTROYS = tool(annotations={"destructiveHint": True})


def allows(of: Tool = SEARCH, **more: Any) -> Permission:
    return Permission(of.server, of.name, of.digest, **({"number": 7} | more))


def knowing(*permissions: Permission, known: LedgerView | None = None) -> LedgerView:
    return replace(known or view(wrote=(asked(2),)), permissions=permissions)


def only(of: Tool) -> Catalogue:
    return Catalogue.of([of])


# --- The order ------------------------------------------------------------------------------------

ORDER = ["blocked", "denied", "ask", "remembered", "permission", "auto"]


def outcome(made: Step) -> str:
    match made:
        case Settle(((_, Result(body=body)),)):
            return "blocked" if "is blocked" in body else "denied"
        case Decide((Decision(rule=rule),)):
            return "remembered" if rule == "memory" else rule
        case AwaitChoices():
            return "ask"
        case _:
            return repr(made)


@examples(64)
@given(st.sets(st.sampled_from(ORDER)))
def test_the_first_of_blocked_denied_ask_remembered_permission_and_auto_decides(
    present: set[str],
) -> None:
    def of(name: str) -> tuple[Pattern, ...]:
        return (Pattern("*/*"),) if name in present else ()

    first = replace(ran(1), choice="yA" if "remembered" in present else "ya")
    known = view(yes(asked(1), choice=first.choice or "ya", state="used"), wrote=(asked(2),))
    made = step(
        chat(answer(first), answer(asked(2))),
        view=knowing(*[allows()] * ("permission" in present), known=known),
        rules=Rules(of("auto"), of("denied"), ask=of("ask")),
        limits=limits_with(blocked=("web_search",) if "blocked" in present else ()),
    )
    assert outcome(made) == next((name for name in ORDER if name in present), "ask")


def test_a_permission_names_itself_in_the_decision() -> None:
    made = step(chat(answer(asked(2))), view=knowing(allows(root=ROOT)))
    why = f"permission 7 allows demo/web_search in {ROOT}"
    assert made == Decide((Decision(asked(2), "permission", why),))
    these = reason(allows(arguments="{}", chat=CHAT))
    assert these == f"permission 7 allows demo/web_search with these arguments in the chat {CHAT}"


@pytest.mark.parametrize("expression", ["(", "x"])
def test_a_call_that_always_asks_says_so(expression: str) -> None:
    """A flawed expression covers any value."""
    rules = Rules(ask=(Pattern("demo/*", {"query": expression}),))
    known = knowing(allows())
    transcript = chat(answer(asked(2)))
    assert step(transcript, view=known, rules=rules) == AwaitChoices((asked(2),))
    why = why_asked(asked(2), Approvals(transcript, TOOLS, known), rules)
    assert why == f"approval.ask has {rules.ask[0]}"
    other = Rules(ask=(Pattern("demo/*", {"query": "y"}),))
    assert isinstance(step(transcript, view=known, rules=other), Decide)


# --- What a permission covers ---------------------------------------------------------------------

NOT_COVERED = {
    "another server": (allows(), tool(server="other")),
    "another tool": (allows(), tool("read_file")),
    "another definition": (allows(), tool(description="Now deletes.")),
    "other arguments": (allows(arguments='{"query":"y"}'), SEARCH),
    "a tool that destroys": (allows(DESTROYS), DESTROYS),
    "a project's server, if the permission is for every folder": (
        allows(tool(of_project=True)),
        tool(of_project=True),
    ),
}


@pytest.mark.parametrize("case", NOT_COVERED)
def test_a_permission_does_not_cover(case: str) -> None:
    permission, of = NOT_COVERED[case]
    made = step(chat(answer(asked(2))), only(of), view=knowing(permission))
    assert made == AwaitChoices((asked(2),)) or isinstance(made, Settle)
    assert permission_for([permission], of, '{"query":"x"}', memory_of(of, None)) is None


def test_a_permission_covers_the_same_values_in_another_spelling() -> None:
    permission = allows(arguments=exact('{"query":"x"}'))
    assert permission_for([permission], SEARCH, ' {"query": "\\u0078"}', "tool") == permission
    assert permission_for([permission], SEARCH, '{"query":"x","query":"x"}', "tool") is None
    assert exact("[1]") is None
    assert exact("") == "{}"


@examples(40)
@given(*[st.sampled_from(["", CHAT, "/b.md"])] * 2, *[st.sampled_from(["", ROOT, OTHER])] * 2)
def test_a_permission_applies_only_in_its_chat_and_its_project(
    chat_of: str, here: str, root: str, project: str
) -> None:
    applies = allows(chat=chat_of, root=root).applies_in(here, project)
    assert applies == (chat_of in ("", here) and root in ("", project))


def test_a_permission_does_not_decide_on_a_call_that_no_model_proposed_here() -> None:
    known = knowing(allows(), known=view())
    assert step(chat(answer(asked(2))), view=known) == AwaitChoices((asked(2),))


def test_a_permission_never_replaces_the_yes_to_guarded_paths() -> None:
    guarded = CallPreview(guard="the file may contain secrets")
    previews = {("call_2", "web_search", '{"query":"x"}'): guarded}
    made = step(chat(answer(asked(2))), view=knowing(allows()), previews=previews)
    assert made == AwaitChoices((asked(2),))


def test_a_changed_definition_makes_a_permission_void_and_the_user_is_told() -> None:
    older = tool(description="Older.")
    known = knowing(allows(older))
    approvals = Approvals(chat(answer(asked(2))), TOOLS, known)
    assert approvals.lapsed(asked(2)) == Lapse(older.digest, "allowed")
    why = why_asked(asked(2), approvals, Rules())
    assert why == "the tool's definition has changed since you allowed the tool"
    both = knowing(allows(older), allows())
    assert Approvals(chat(answer(asked(2))), TOOLS, both).lapsed(asked(2)) is None
    others = knowing(allows(older, arguments='{"query":"y"}'))
    assert Approvals(chat(answer(asked(2))), TOOLS, others).lapsed(asked(2)) is None


# --- What is never remembered ---------------------------------------------------------------------


def run(number: int, command: str) -> Proposal:
    return asked(number, name="run_command", arguments=f'{{"command":"{command}"}}')


def test_a_capital_letter_on_a_command_remembers_only_that_command() -> None:
    first = replace(run(1, "make"), choice="yO", result=Result("ok", "done"))
    for command, is_remembered in (("make", True), ("make install", False)):
        later = run(2, command)
        known = view(yes(first, COMMAND, choice="yO", state="used"), wrote=(later,))
        transcript = chat(answer(first), answer(later))
        made = step(transcript, only(COMMAND), view=known)
        assert isinstance(made, Decide if is_remembered else AwaitChoices)
        why = why_asked(later, Approvals(transcript, only(COMMAND), known), Rules())
        assert why == "no rule allows it, and no choice is remembered for this command"


def test_a_rule_allows_a_command_only_with_an_expression_for_it() -> None:
    make = run(2, "make")
    for args, is_allowed in (
        ({}, False),
        ({"directory": ".*"}, False),
        ({"command": "make"}, True),
    ):
        rules = Rules(auto=(Pattern("workspace/*", args),))
        made = step(chat(answer(make)), only(COMMAND), view=view(wrote=(make,)), rules=rules)
        assert isinstance(made, Decide) == is_allowed
    imitation = Tool("workspace", "run_command", identity=canonical({"command": "x"}))
    assert Rules(auto=(Pattern("workspace/*"),)).allowed(imitation, make.call.arguments)


def overwriting(before: str | None) -> CallPreview:
    return CallPreview((FilePreview("a", before, "new"),))


@pytest.mark.parametrize(
    ("of", "preview", "memory"),
    [
        (SEARCH, None, "tool"),
        (tool(annotations={"readOnlyHint": False}), None, "tool"),
        (tool(annotations={"destructiveHint": "true"}), None, "tool"),
        (DESTROYS, None, "nothing"),
        (COMMAND, None, "arguments"),
        (DELETE, None, "nothing"),
        (replace(DELETE, name="move_file"), None, "nothing"),
        (replace(DELETE, name="edit_file"), None, "tool"),
        (replace(DELETE, identity="{}"), None, "tool"),
        (replace(DELETE, server="other"), None, "tool"),
        (WRITE, None, "nothing"),
        (WRITE, CallPreview(), "nothing"),
        (WRITE, overwriting("old"), "nothing"),
        (WRITE, overwriting(""), "nothing"),
        (WRITE, overwriting(None), "tool"),
    ],
)
def test_a_capital_letter_remembers(of: Tool, preview: CallPreview | None, memory: str) -> None:
    assert memory_of(of, preview) == memory


def test_a_tool_that_destroys_is_asked_about_even_if_a_chat_remembers_it() -> None:
    known = view(yes(asked(1), DESTROYS, choice="yA", state="used"), wrote=(asked(2),))
    transcript = chat(answer(replace(ran(1), choice="yA")), answer(asked(2)))
    assert step(transcript, only(DESTROYS), view=known) == AwaitChoices((asked(2),))
    why = why_asked(asked(2), Approvals(transcript, only(DESTROYS), known), Rules())
    assert (
        why
        == "no rule allows it, and no choice is remembered for a call that may destroy something"
    )
    exactly = knowing(allows(DESTROYS, arguments='{"query":"x"}'), known=known)
    assert isinstance(step(transcript, only(DESTROYS), view=exactly), Decide)


def test_the_message_after_a_capital_letter_names_the_command_that_widens_it() -> None:
    assert remembering([("web_search", "tool"), ("web_search", "tool")]) == (
        "remembered web_search in this chat (:ParleyAllow widens it)"
    )
    assert remembering([("a", "tool"), ("b", "tool"), ("run_command", "arguments")]) == (
        "remembered 2 tools in this chat; remembered this exact command in this chat "
        "(:ParleyAllow widens it)"
    )
    assert remembering([("drop", "nothing")]) == (
        "drop: approved this time only, because a call may destroy data"
    )


# --- What the user may give -----------------------------------------------------------------------


def titles(of: Tool, arguments: str = '{"query":"x"}') -> list[str]:
    return [offer.title for offer in offers(of, arguments, CHAT, ROOT)]


def test_the_offers_begin_with_the_narrowest() -> None:
    known = SEARCH.server, SEARCH.name, SEARCH.digest
    made = offers(SEARCH, '{"query": "x"}', CHAT, ROOT)
    assert [(each.title, each.permission) for each in made] == [
        ("This chat", Permission(*known, chat=CHAT)),
        (
            "This project, these arguments",
            Permission(*known, root=ROOT, arguments='{"query":"x"}'),
        ),
        ("This project, this tool", Permission(*known, root=ROOT)),
        ("Everywhere, this tool", Permission(*known)),
    ]


def test_only_these_arguments_are_offered_for_a_tool_that_may_destroy() -> None:
    exactly = ["This chat, these arguments", "This project, these arguments"]
    assert titles(COMMAND) == titles(DESTROYS) == exactly
    assert titles(DELETE) == titles(replace(DELETE, name="move_file")) == []
    assert titles(SEARCH, "[") == []
    in_one_folder = ["This chat", "This project, these arguments", "This project, this tool"]
    assert titles(tool(of_project=True)) == in_one_folder
    assert titles(WRITE) == [*in_one_folder, "Everywhere, this tool"]


def test_a_permission_everywhere_for_parleys_own_tool_applies_in_each_folder() -> None:
    elsewhere = ServerSettings("workspace", builtin=True, cwd=OTHER).identity
    reads = Tool("workspace", "read_file", identity=OWN)
    *_, anywhere = offers(reads, "{}", CHAT, ROOT)
    assert anywhere.permission.covers(replace(reads, identity=elsewhere), "{}", "tool")
    changed = replace(reads, description="Reads, and tells everybody.", identity=elsewhere)
    assert not anywhere.permission.covers(changed, "{}", "tool")
    impostor = Tool("workspace", "read_file", identity=canonical({"command": "x"}))
    assert not anywhere.permission.covers(impostor, "{}", "tool")


@examples(40)
@given(
    st.sampled_from([SEARCH, DESTROYS, COMMAND, WRITE, DELETE]),
    st.sampled_from(['{"query":"x"}', '{"query":"y"}']),
    st.sampled_from([None, overwriting("old"), overwriting(None)]),
)
def test_a_permission_for_a_call_that_may_destroy_covers_only_this_call(
    of: Tool, later: str, preview: CallPreview | None
) -> None:
    memory = memory_of(of, preview)
    for offer in offers(of, '{"query":"x"}', CHAT, ROOT):
        if offer.permission.covers(of, later, memory) and memory != "tool":
            assert later == '{"query":"x"}'
