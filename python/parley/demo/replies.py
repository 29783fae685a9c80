"""The demo model: a pure function from a conversation to a reply, based on a table of questions.

The first row whose question is asked makes the reply. Rows see the question, the offered tools and
the results since the question; rows know nothing about wire formats.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

from parley.demo.bug_fix import BUG, FIXED, SEARCH, TESTS, file_with_bug, has_passed, is_asked
from parley.demo.dialogue import CallResult, DemoCall, DemoUsage, Dialogue, Reply, Stop, tokens
from parley.demo.named import IN_TURN, due, named
from parley.demo.stocks import companies, query_for, query_of, read_quote
from parley.demo.text_tools import call_text
from parley.frozen import frozen

SUMMARY_MARK = "📝:"
_WORDS = "the file is the conversation and every word can be changed by hand"
_WHO = (
    "I am the demo model: a small program on your own machine that answers by simple rules. "
    "I need no key and no network, and I know nothing of my own."
)
_TRY = (
    'Try "can you find the latest stock price of google and microsoft?", "think about it", '
    '"write 100 words", "say: anything", or `call NAME {"argument": "value"}` with a tool\'s name.'
)
_NO_RULE = f"I have no rule for that question. {_WHO}\n\n{_TRY}"
_NO_SEARCH = (
    "I cannot look things up: no search tool was offered to me, and I know no prices by heart."
)
_THOUGHTS = """\
First: what is asked? {}

Then: what do I know?

    nothing

So I say that."""


@frozen
class Draft:
    """A proposed reply; `summary` is used if the system prompt asks for a summary line, and `query`
    is a web search."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()
    thoughts: str = ""
    summary: str = ""
    query: str = ""


Find = Callable[[Dialogue], Any]
"""Finds a kind of question: its match, calls, companies or pictures; falsy if it is not asked."""

Make = Callable[[Dialogue, Any], Draft]
"""Drafts the reply to a question from the conversation and the value that `Find` returned."""


def reply(conversation: Dialogue) -> Reply:
    """The demo model's next reply; equal conversations yield equal replies."""
    draft = next(make(conversation, found) for find, make in TABLE if (found := find(conversation)))
    thinks = conversation.thinking == "on" or (
        conversation.thinking == "asked" and _THINK(conversation)
    )
    thinking = (draft.thoughts or _passing_thought(conversation)) if thinks else ""
    hidden = thinking if _HIDDEN(conversation) else ""
    answer = _within_limit(
        conversation, "" if hidden else thinking, hidden, *_text_and_calls(draft, conversation)
    )
    return replace(answer, query=draft.query)


def _text_and_calls(draft: Draft, conversation: Dialogue) -> tuple[str, tuple[DemoCall, ...]]:
    """The text and the calls; if the provider's own calls cannot be used, the calls are part of the
    text.
    """
    text = _with_summary(draft, conversation)
    if not conversation.syntax:
        return text, draft.calls
    calls = "\n".join(call_text(call, conversation.syntax) for call in draft.calls)
    return "\n\n".join(filter(None, (text, calls))), ()


def _asks(pattern: str) -> Find:
    """A question that contains a pattern in any case; a dot also matches the end of a line."""
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda conversation: compiled.search(conversation.question)


def _says(text: str, summary: str = "") -> Make:
    r"""A fixed text, with the pattern's groups in place of `\1`."""
    return lambda _, match: Draft(match.expand(text), summary=summary)


def _search_the_web(_: Dialogue, match: re.Match[str]) -> Draft:
    query = match[1].strip()
    text = f"I have searched the web for “{query}”, and found a page about it."
    return Draft(text, query=query, summary=f"I searched the web for “{query}”.")


def _write(_: Dialogue, match: re.Match[str]) -> Draft:
    return Draft(" ".join(islice(cycle(_WORDS.split()), int(match[1]))) or "Nothing.")


def _named_tools(conversation: Dialogue, calls: tuple[DemoCall, ...]) -> Draft:
    """Calls the tools with exactly these arguments, then reports the results."""
    if now := due(conversation):
        word = "Now I call" if conversation.results else "I call"
        return Draft(f"{word} {_list([call.name for call in now])}.", now)
    if conversation.results:
        text = "\n\n".join(_report(result) for result in conversation.results)
        return Draft(text, summary="you had me call a tool, and I told you what it returned.")
    have = (
        f"I have: {', '.join(conversation.tools)}."
        if conversation.tools
        else "No tools were offered to me."
    )
    return Draft(f"I have no tool named {_list([call.name for call in calls])}. {have}")


def _pictures(_: Dialogue, pictures: tuple[str, ...]) -> Draft:
    """Lists the pictures' types; the model cannot see the pictures themselves."""
    return Draft(f"I am shown {_list(pictures)}.", summary="you showed me something.")


def _stocks(conversation: Dialogue, names: tuple[str, ...]) -> Draft:
    """The original example: a search for each company, then an answer from the results."""
    known = {query_of(result): result for result in conversation.results}
    missing = [company for company in names if query_for(company) not in known]
    tool = _search_tool(conversation)
    if missing and tool is not None:
        return _searches(conversation, missing, tool)
    return _prices(names, known) if known else Draft(_NO_SEARCH)


def _rewrite(_: Dialogue, match: re.Match[str]) -> Draft:
    code = f"{match['fence']}{match['info']}\n{match['lines'].upper()}\n{match['fence']}"
    return Draft(f"I can only write the lines in upper case.\n\n{code}", summary="I rewrote lines.")


def _fix(conversation: Dialogue, _: bool) -> Draft:
    """Searches for the bug, edits its file, runs the tests and reports, one call in each round."""
    results = {result.name: result for result in conversation.results}
    if failed := next((result for result in results.values() if _is_bad(result)), None):
        return Draft(_unfinished(failed))
    if (searched := results.get("search_text")) is None:
        return _step(conversation, "Let me look for the bug.", "search_text", {"pattern": SEARCH})
    path = file_with_bug(searched.text)
    if not path:
        return Draft(f"No file contains `{BUG}`, the only bug that I know.")
    if "edit_file" not in results:
        text = f"The total in {path} ignores how many pieces of an item are in the cart."
        edit = {"path": path, "edits": [{"old": BUG, "new": FIXED}]}
        return _step(conversation, text, "edit_file", edit)
    back = "`:ParleyRevert` takes the change back."
    if "run_command" not in conversation.tools:
        return Draft(f"I have fixed {path}, but I have no tool to run the tests. {back}")
    if (ran := results.get("run_command")) is None:
        text = "Now let me run the tests."
        return _step(conversation, text, "run_command", {"command": TESTS})
    outcome = "and the tests pass" if has_passed(ran.text) else "but the tests fail"
    return Draft(
        f"I have fixed {path}, {outcome}. {back}",
        summary=f"you had me fix a bug in {path}, {outcome}.",
    )


def _step(conversation: Dialogue, text: str, tool: str, arguments: object) -> Draft:
    if tool not in conversation.tools:
        return Draft(f"I cannot fix it: no tool `{tool}` was offered to me.")
    return Draft(text, (DemoCall(tool, _compact(arguments)),))


def _is_bad(result: CallResult) -> bool:
    return result.failed or _is_refusal(result.text)


def _unfinished(result: CallResult) -> str:
    if not _is_refusal(result.text):
        return _report(result)
    if result.name == "run_command":
        return "You did not want the tests to run, so I do not know whether the fix works."
    return "You did not want that, so I have changed nothing."


def _think(conversation: Dialogue, _: re.Match[str]) -> Draft:
    return Draft(
        "I have thought about it, and I still know nothing of my own.",
        thoughts=_THOUGHTS.format(" ".join(conversation.question.split())[:200]),
        summary="you had me think.",
    )


_REWRITE = (
    r"\n\nRewrite these lines\. .*\n\n(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<lines>.*)\n"
    r"(?P=fence)\s*\Z"
)
_THINK = _asks(r"\bthink\b")
_FOR = _asks(r"\bsearch the web for (\w[^\n?!]{0,200})")
_HIDDEN = _asks(r"\bredacted\b")
_SAY = r"\A\s*(?:say|repeat)(?: after me(?=[: \n]))?+(?::[ \n]?|[ \n])(.*\S.*)"
_STATUS = r"\bsingle, clear, natural sentence\b"
_QUERY = r'(?-i:query)\W+(\w(?:[^"\\}]*[^"\\}\s])?)'
_EXCHANGE = r"(?-i:\bone exchange of a longer conversation\b.*?\nUser:\n)([^\n]{0,60})"

TABLE: tuple[tuple[Find, Make], ...] = (
    # separate requests: a status line about a tool call, a summary of one exchange
    (_asks(rf"\A(?=.*{_STATUS}).*?{_QUERY}"), _says(r"Searching for \1...")),
    (_asks(_STATUS), _says("Working on it...")),
    (_asks(_EXCHANGE), _says(r"you said “\1”, and I answered.")),
    # the user's questions
    (_asks(_REWRITE), _rewrite),
    (_asks(_SAY), _says(r"\1")),
    (lambda conversation: conversation.searches and _FOR(conversation), _search_the_web),
    (_asks(r"\bwrite (\d{1,6}) (?:words|tokens)\b"), _write),
    (lambda conversation: named(conversation.question), _named_tools),
    (lambda conversation: is_asked(conversation.question), _fix),
    (lambda conversation: companies(conversation.question), _stocks),
    (lambda conversation: conversation.pictures, _pictures),
    (_asks(r"\b(?:who|what) are you\b|\bhelp\b|\bwhat can you do\b"), _says(f"{_WHO}\n\n{_TRY}")),
    (
        _asks(r"\A\s*(?:hi|hello|hey|good (?:morning|evening))\b"),
        _says(f"Hello! {_WHO}", "you said hello, and I said who I am."),
    ),
    (_THINK, _think),
    (_asks(""), _says(_NO_RULE, "you asked something that I cannot answer.")),
)


def _search_tool(conversation: Dialogue) -> str | None:
    exact = [name for name in conversation.tools if name == "web_search"]
    return next((name for name in [*exact, *conversation.tools] if "search" in name), None)


def _searches(conversation: Dialogue, missing: list[str], tool: str) -> Draft:
    in_turn = IN_TURN.search(conversation.question) is not None or not conversation.parallel
    now = missing[:1] if in_turn else missing
    calls = tuple(DemoCall(tool, _compact({"query": query_for(company)})) for company in now)
    if conversation.results:
        text = f"Now {_list(now)}."
    else:
        names = {1: now[0], 2: "both"}.get(len(now), "all of them")
        text = f"Let me search the web for {names}."
    return Draft(
        text,
        calls,
        f"The price of {_list(now)} is wanted.\n\nI do not know it, so I search for it.",
    )


def _prices(names: tuple[str, ...], known: dict[str, CallResult]) -> Draft:
    results = [(company, known.get(query_for(company))) for company in names]
    quotes = [_quoted(company, result) for company, result in results if result is not None]
    prices = [text for is_price, text in quotes if is_price]
    parts = [f"{_list(prices)}{_as_of(known)}."] if prices else []
    parts += [text for is_price, text in quotes if not is_price]
    parts += [f"I could not look up {company}." for company, result in results if result is None]
    text = " ".join(parts)
    summary = f"you asked for the stock price of {_list(names)}, and I answered: {text}"
    return Draft(
        f"{text} Do you want something else?", (), "The results are in: I read the prices.", summary
    )


def _quoted(company: str, result: CallResult) -> tuple[bool, str]:
    """Whether a price was found, and the text about it."""
    if result.failed or _is_refusal(result.text):
        return False, _excuse(company, result)
    quote = read_quote(company, result.text)
    if quote is None:
        excerpt = " ".join(result.text.split())[:160]
        return (
            False,
            f'For {company} the search returned "{excerpt}", and I can read no price in that.',
        )
    name = f"{quote.name} ({quote.symbol})" if quote.symbol else quote.name
    return True, f"{name} is at ${quote.price}"


def _excuse(company: str, result: CallResult) -> str:
    reason = " ".join(result.text.removeprefix("Error: ").split())[:160]
    if _is_refusal(result.text):
        return f"I did not look up {company}, because you did not want the search."
    return f"I could not look up {company}: the search failed ({reason})."


def _is_refusal(text: str) -> bool:
    return text.removeprefix("Error: ").startswith(
        ("The user declined", "The user did not approve")
    )


def _as_of(known: dict[str, CallResult]) -> str:
    return " as of today" if any("as of today" in result.text for result in known.values()) else ""


def _report(result: CallResult) -> str:
    if _is_refusal(result.text):
        return f"You did not want {result.name} to be called."
    if result.failed:
        return f"{result.name} failed: {result.text.removeprefix('Error: ')}"
    shown = f" It shows me {_list(result.pictures)}." if result.pictures else ""
    if result.text:
        return f"{result.name} returned: {result.text}{shown}"
    return f"{result.name} returned{shown.removeprefix(' It shows me') or ' nothing.'}"


def _passing_thought(conversation: Dialogue) -> str:
    return (
        "The results are here."
        if conversation.results
        else "A short question; I look for a rule that fits."
    )


def _with_summary(draft: Draft, conversation: Dialogue) -> str:
    if not draft.summary or draft.calls or SUMMARY_MARK not in conversation.system:
        return draft.text
    return f"{draft.text}\n\n{SUMMARY_MARK} {draft.summary}"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _compact(arguments: object) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _within_limit(
    conversation: Dialogue, thinking: str, hidden: str, text: str, calls: tuple[DemoCall, ...]
) -> Reply:
    """The reply, cut at the token limit, even in the middle of a word or a call's arguments."""
    room = 4 * conversation.limit if conversation.limit is not None else None
    pieces = (thinking, hidden, text, *(call.arguments for call in calls))
    parts: list[str] = []
    for piece in pieces:
        parts.append(piece if room is None else piece[:room])
        room = room and room - len(parts[-1])
    whole = tuple(parts) == pieces
    cut_calls = tuple(
        DemoCall(call.name, part)
        for call, part in zip(calls, parts[3:], strict=True)
        if part or whole
    )
    stop: Stop = ("calls" if calls else "end") if whole else "length"
    thought = tokens(parts[0] + parts[1])
    usage = DemoUsage(conversation.prompt_tokens, tokens("".join(parts)) or 1, thought)
    return Reply(parts[0], parts[1], parts[2], cut_calls, stop, usage, conversation.seed)
