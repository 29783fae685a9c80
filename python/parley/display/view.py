"""What is drawn in a chat's buffer in addition to its text: waiting calls, and problems. Pure.

Knows rows, chunks of text with their highlight groups, and diagnostics, but nothing about windows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from difflib import unified_diff
from pathlib import PurePath
from typing import Any

from parley.chat.front_matter import read_front_matter
from parley.chat.grammar import PROMPT
from parley.chat.references import language_of
from parley.chat.rounds import rounds
from parley.chat.transcript import CHOICES, YES, Broken, Exchange, Problem, Proposal, Transcript
from parley.display.diff_rows import changed_files, diff_chunks, rows_of
from parley.display.summary import (
    Chunks,
    as_json,
    decoded_arguments,
    extent,
    is_long,
    legible_line,
    long_arguments,
    long_values,
    shown_line,
    shown_path,
    summary,
)
from parley.frozen import frozen
from parley.policy.approval import Approvals, Lapse, LedgerView, Standing, is_declined
from parley.policy.choice import Scope, open_calls
from parley.policy.doubts import OUTDATED, Sighting, caution, sighting
from parley.policy.missing_references import problems as lack_problems
from parley.policy.permissions import Memory, memory_of
from parley.policy.previews import CallPreview, FilePreview, Previews
from parley.settings.values import Keys
from parley.text import contained, legible
from parley.tools.catalogue import Catalogue, Tool
from parley.tools.line_diff import DiffRow
from parley.tools.schema import check_arguments, check_call

CHOOSE = PROMPT + "yA/ya/yo/yO): "
_CHOOSE_ONE = PROMPT + "yA/ya): "
"""The prompt below a single call, for which `yo` and `yO` would mean the same as `ya` and `yA`."""
_KEYS = Keys()
_MEANINGS: dict[Scope, tuple[str, str]] = {
    "letter": ("{ya} all {count} · {yo} this", " · {yA}/{yO} and remember"),
    "case": ("{ya} this · {yA} all {count}", " and remember"),
}
"""The keys' meanings when several calls are waiting; the second part is for calls that a capital
letter remembers.
"""
_MEANING_OF_ONE: dict[Memory, str] = {
    "tool": "{ya} yes · {yA} and remember",
    "arguments": "{ya} yes · {yA} and remember this command",
    "nothing": "{ya} yes",
}
_WITHOUT_KEYS = ":ParleyApprove with one of these, or yn"
_DETAILS, _DIFF_TAB = "K details", ", then d: diff tab"
_LONGEST_PATH = 1000
_MOST_LINES = 40
"""How many first and last lines of a long argument are drawn: more than any window can show."""
_LONGEST_ROW = 600
"""The maximum number of characters of a diff's row."""
PREVIEW = "a preview: the server decides what it writes"
TAKEN_BACK = "is marked [{}], but that approval was undone: choose again"
NOT_HERE = "is marked [{}], but that choice was not made here for this exact call, so it counts as undecided"
CHANGED = "the definition of {} has changed since {}: K shows the changes"
COLLECTED = "it runs as a task on its server. :ParleyRespond collects the result"
_SINCE = {
    "approved": "you approved this call",
    "remembered": "you remembered it",
    "allowed": "you allowed it",
    "proposed": "the model made this call",
}


@frozen
class ChatView:
    """A chat with all facts that are known when it is drawn; the catalogue is None until the
    servers have started.
    """

    transcript: Transcript
    catalogue: Catalogue | None
    ledger: LedgerView
    missing: Sequence[Problem] = ()
    """Problems with the files next to the chat."""
    previews: Previews = field(default_factory=dict)
    """What the waiting calls would do to files."""
    approvals: Approvals = field(init=False, repr=False, compare=False)
    """The approvals of all calls, because the calls' runs are counted; without tools until these
    are known.
    """

    def __post_init__(self) -> None:
        approvals = Approvals(
            self.transcript, self.catalogue or Catalogue(), self.ledger, self.previews
        )
        object.__setattr__(self, "approvals", approvals)

    def standing(self, call: Proposal | Broken) -> Standing:
        """The standing of a call without a result."""
        if isinstance(call, Broken):
            return "declined" if call.choice in ("yn", "yN") else "undecided"
        return self.approvals.standing(call) if self.catalogue is not None else self._guess(call)

    def _guess(self, call: Proposal) -> Standing:
        """Guess the standing by id and arguments, without the tools' definitions; only for display,
        never for running a call."""
        if is_declined(call):
            return "declined"
        if self.approvals.task(call):
            return "pending"
        same = [
            e
            for e in self.ledger.entries
            if (e.key.id, e.key.arguments) == (call.call.id, call.call.arguments)
        ]
        if call.choice in YES and any(e.state == "live" for e in same):
            return "approved"
        return "may have run" if self.approvals.starts(call) else "undecided"

    def memory(self, call: Proposal) -> Memory:
        """What a capital letter on a call would remember; a guess while the tools are unknown."""
        tool = self.catalogue.get(call.call.name) if self.catalogue else None
        return memory_of(tool, self.approvals.preview(call)) if tool else "tool"

    def lapsed(self, call: Proposal | Broken) -> Lapse | None:
        """The approval that a changed definition has invalidated."""
        return None if isinstance(call, Broken) else self.approvals.lapsed(call)

    def rule(self, call: Proposal) -> str:
        """The rule by which a call was approved; "" if there is none."""
        return self.approvals.rule(call)

    def sighting(self, call: Proposal) -> Sighting:
        """A call's sighting: what the user sees when it is drawn."""
        return sighting(call, self.approvals)

    def waiting(self) -> Iterator[tuple[Exchange, list[Proposal | Broken]]]:
        """The exchanges that have waiting calls, each with its waiting calls."""
        for exchange in self.transcript.exchanges:
            undecided = [
                c for c in open_calls(exchange) if self.standing(c) in ("undecided", "may have run")
            ]
            if undecided:
                yield exchange, undecided


def drawing(view: ChatView, keys: Keys = _KEYS) -> dict[str, Any]:
    """The tables that Lua draws, by kind; rows and columns count from 0."""
    waiting = list(view.waiting())
    return {
        "waiting": [
            {"start": exchange.span.start, "stop": exchange.span.end} for exchange, _ in waiting
        ],
        "proposals": [
            drawn
            for exchange, calls in waiting
            for drawn in _proposals(view, exchange, calls, keys)
        ],
        "problems": [_problem(problem) for problem in problems(view)],
    }


def _proposals(
    view: ChatView, exchange: Exchange, calls: Sequence[Proposal | Broken], keys: Keys
) -> list[dict[str, Any]]:
    """The drawings of an exchange's waiting calls, numbered like the rows of the reply's calls; the
    last drawing also has the prompt.
    """
    reply = rounds(exchange.answers[-1])[-1]
    of_reply: list[Proposal | Broken] = [*reply.proposals, *reply.broken]
    rows = sorted(call.span.start for call in of_reply)
    drawn = [call_drawing(view, call, rows.index(call.span.start) + 1, len(rows)) for call in calls]
    drawn[-1]["prompt"] = [
        [(prompt(len(calls)), "ParleyPrompt")],
        [(meanings(view, calls, keys, has_diff_tab=True), "ParleyHint")],
    ]
    return drawn


def call_drawing(
    view: ChatView, call: Proposal | Broken, number: int, calls: int
) -> dict[str, Any]:
    """The drawing of a waiting call: its row, and the notes and blocks to draw below all rows, with
    the call's number if its reply has several calls.
    """
    problem = _approval(view, call)
    name = f"call {number}: " if calls > 1 else ""
    note: list[Chunks] = (
        [[(f"  {name}", "ParleyNote"), (legible_line(problem.message), "ParleyNote", "")]]
        if problem
        else []
    )
    preview = None if isinstance(call, Broken) else view.approvals.preview(call)
    changes = preview.changes if preview else ()
    files, is_whole = changed_files(preview)
    sandbox = preview.sandbox if preview else ""
    row = summary(call, view.catalogue, files, is_whole=is_whole, sandbox=sandbox)
    note += [
        [(f"  {name}", "ParleyNote"), (legible_line(text), "ParleyNote", "")]
        for text in _remarks(preview)
    ]
    blocks = [block for change in changes for block in _diff_block(change, name)]
    if not (isinstance(call, Broken) or (changes and is_whole)):
        blocks += _blocks(call, name)
    return {"row": call.span.start, "lines": [row], "notes": note, "blocks": blocks}


def _remarks(preview: CallPreview | None) -> Iterator[str]:
    """The remarks on a call's preview, for the user."""
    if preview is None:
        return
    if preview.guard:
        yield preview.guard
    yield from preview.notes
    if preview.changes and not preview.is_binding:
        yield PREVIEW


def _diff_block(change: FilePreview, name: str) -> Iterator[dict[str, Any]]:
    """A file's diff, with as many first and last rows as a window may show; `core` has only the
    changed lines, for a window with less room.
    """
    rows = rows_of(change)
    if not rows:
        return
    path = shown_path(change.moved_to or change.path)
    yield {
        "title": [(f"  {name}", "ParleyArgument"), (path, "ParleyArgument", "", "tail")],
        **_ends(rows),
        "core": _ends(rows_of(change, context=0)),
    }


def _ends(rows: list[DiffRow]) -> dict[str, Any]:
    """The first and last rows of a diff, and the number of all rows."""
    head, tail = rows[:_MOST_LINES], rows[_MOST_LINES:][-_MOST_LINES:]
    return {
        "head": [diff_chunks(row, _LONGEST_ROW) for row in head],
        "tail": [diff_chunks(row, _LONGEST_ROW) for row in tail],
        "count": len(rows),
    }


def prompt(calls: int) -> str:
    """The prompt below this many waiting calls."""
    return CHOOSE if calls > 1 else _CHOOSE_ONE


def meanings(
    view: ChatView, calls: Sequence[Proposal | Broken], keys: Keys, *, has_diff_tab: bool = False
) -> str:
    """The meanings of the choice keys for these calls, as the user has mapped the keys.

    With `has_diff_tab`, the screen can show the change of a single file as a diff in a tab page.
    """
    known = [call for call in calls if isinstance(call, Proposal)]
    previews = filter(None, map(view.approvals.preview, known))
    has_diff_tab = has_diff_tab and any(preview.is_one_text for preview in previews)
    details = _DETAILS + (_DIFF_TAB if has_diff_tab else "")
    if not keys.choices.enabled:
        return f"{_WITHOUT_KEYS} · {details}"
    memories = {view.memory(call) for call in known}
    if len(calls) > 1:
        text, remember = _MEANINGS[keys.scope]
        text += "" if memories == {"nothing"} else remember
    else:
        text = _MEANING_OF_ONE[next(iter(memories), "tool")]
    names = {choice: getattr(keys.choices, choice) or choice for choice in CHOICES}
    return f"{text.format(count=len(calls), **names)} · {names['yn']} no · {details}"


def _blocks(call: Proposal, name: str) -> Iterator[dict[str, Any]]:
    """A call's long arguments, with as many first and last lines as a window may show."""
    for argument, lines, brief in long_arguments(call.call.arguments):
        head, tail = lines[:_MOST_LINES], lines[_MOST_LINES:][-_MOST_LINES:]
        yield {
            "title": [(f"  {name}{argument}:", "ParleyArgument")],
            "head": [_line(line) for line in head],
            "tail": [_line(line) for line in tail],
            "count": len(lines),
            "brief": brief,
        }


def _line(line: str) -> Chunks:
    return [("  │ ", "ParleyHint"), (shown_line(line), "ParleyValue", "")]


def problems(view: ChatView) -> list[Problem]:
    """All problems in a chat."""
    front = (
        read_front_matter(view.transcript.front_matter) if view.transcript.front_matter else None
    )
    approvals = [p for _, calls in view.waiting() for call in calls if (p := _approval(view, call))]
    lacking = lack_problems(view.transcript, view.ledger.warnings)
    return [
        *(front.problems if front else ()),
        *view.transcript.problems,
        *view.missing,
        *lacking,
        *approvals,
        *_tasks(view),
    ]


def _tasks(view: ChatView) -> Iterator[Problem]:
    """Hints on how to collect the results of calls that still run on their servers."""
    calls = (call for exchange in view.transcript.exchanges for call in open_calls(exchange))
    for call in calls:
        if isinstance(call, Proposal) and call.task and view.standing(call) == "pending":
            yield Problem(call.span.start, 0, "hint", COLLECTED)


def _approval(view: ChatView, call: Proposal | Broken) -> Problem | None:
    if isinstance(call, Broken):
        return None
    tool = view.catalogue.get(call.call.name) if view.catalogue else None
    arguments = call.call.arguments
    if invalid := check_call(arguments, tool) if tool else check_arguments(arguments, {}):
        return Problem(call.span.start, 0, "error", f"this call cannot run: {invalid}")
    if view.standing(call) == "may have run":
        return Problem(call.span.start, 0, "warning", caution(call, view.approvals))
    if view.approvals.is_outdated(call):
        return Problem(call.span.start, 0, "warning", OUTDATED)
    if lapse := view.lapsed(call):
        name = f"{tool.server}/{tool.name}" if tool else call.call.name
        message = CHANGED.format(legible_line(name), _SINCE[lapse.since])
        return Problem(call.span.start, 0, "warning", message)
    if call.choice in YES:
        message = TAKEN_BACK if view.approvals.was_taken_back(call) else NOT_HERE
        return Problem(call.span.start, 0, "warning", f"this call {message.format(call.choice)}")
    return None


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "row": problem.line,
        "col": problem.column,
        "severity": problem.severity,
        "message": problem.message,
    }


def details(
    call: Proposal, tool: Tool | None, before: str | None = None, preview: CallPreview | None = None
) -> list[str]:
    """The whole call, as Markdown for a float; `before` is the definition that an invalidated
    approval was for. A call that others ran has no `tool` of ours."""
    lines = [f"`{legible_line(f'{tool.server}/{tool.name}' if tool else call.call.name)}`", ""]
    lines += [f"Run by the {call.ran_by}: there was nothing to decide.", ""] if call.ran_by else []
    sandbox = [preview.sandbox] if preview and preview.sandbox else []
    lines += [legible_line(remark) for remark in (*sandbox, *_remarks(preview))]
    for change in preview.changes if preview else ():
        lines += _whole_diff(change)
    try:
        arguments = decoded_arguments(call.call.arguments)
        if short := {name: value for name, value in arguments.items() if not is_long(value)}:
            # As text, because JSON syntax may conceal the quotes that distinguish "true" from true.
            lines += _block("Arguments", as_json(short, "").split("\n"))
        for name, value in long_values(arguments):
            if not is_long(value):
                lines += _block(name, [as_json(value)])
                continue
            end = "" if value.endswith("\n") else ", no newline at the end"
            title = f"{name}, {extent(value)}{end}"
            lines += _code(title, value.removesuffix("\n").split("\n"), _language(short.values()))
    except ValueError:
        lines += _block("Arguments, not a JSON object", [call.call.arguments])
    if call.result is not None:
        body = call.result.body
        lines += _code(f"Result: {call.result.status}, {extent(body)}", body.split("\n"))
    if tool is None:
        return lines if call.ran_by else [*lines, "No server offers this tool now."]
    if before is not None:
        lines += changes(before, tool.definition)
    if tool.description or tool.label != tool.name:
        about = [tool.label, *tool.description.strip().split("\n")]
        title = "Description" if tool.is_own else "The server's description"
        lines += _block(title, [line for line in about if line])
    lines += _json("Annotations", dict(tool.annotations)) if tool.annotations else []
    return lines + _json("Parameters", dict(tool.input_schema))


def _whole_diff(change: FilePreview) -> list[str]:
    """A file's whole diff, in a fence that its lines cannot close."""
    path = legible_line(change.path)
    path = f"{path} → {legible_line(change.moved_to)}" if change.moved_to else path
    rows = rows_of(change)
    shown = [
        row.text if row.sign == "@" else f"{row.sign}{shown_line(row.text, None)}" for row in rows
    ]
    return _fenced(path, shown, "diff") if shown else [f"**{path}**"]


def _json(title: str, value: Any) -> list[str]:
    return _block(title, json.dumps(value, indent=2, ensure_ascii=False).split("\n"), "json")


def _block(title: str, lines: list[str], language: str = "text") -> list[str]:
    """Lines from outside, in a fence that they cannot close because their backticks are escaped."""
    return [f"**{title}**", f"```{language}", *(contained(legible(line)) for line in lines), "```"]


def _code(title: str, lines: list[str], language: str = "text") -> list[str]:
    """Lines from outside with their backticks unchanged, in a fence that is longer than any run of
    these backticks.
    """
    return _fenced(title, [shown_line(line, None) for line in lines], language)


def _fenced(title: str, lines: list[str], language: str) -> list[str]:
    """Lines in a fence that is longer than any run of backticks in them."""
    ticks = "`" * max(
        3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    )
    return [f"**{title}**", f"{ticks}{language}", *lines, ticks]


def _language(values: Iterable[Any]) -> str:
    """The language of a text, derived from the extension of the first file name in another
    argument.
    """
    names = (
        PurePath(value) for value in values if isinstance(value, str) and len(value) < _LONGEST_PATH
    )
    return next((language for name in names if (language := language_of(name.name))), "text")


def changes(before: str, now: str) -> list[str]:
    """The changes to a tool's definition, as a diff without hidden characters."""
    if not before:
        return ["**The definition has changed; the old definition is no longer known**", ""]
    delta = unified_diff(_definition(before), _definition(now), n=1, lineterm="")
    diff = [line for line in delta if not line.startswith(("---", "+++", "@@"))]
    return ["**The definition has changed (- old, + new)**", "```diff", *diff, "```"]


def _definition(canonical: str) -> list[str]:
    """A definition as lines of JSON, with the server's identity and the description's lines
    expanded."""
    fields = json.loads(canonical)
    fields["identity"] = json.loads(fields["identity"] or "null")
    fields["description"] = fields["description"].split("\n")
    text = json.dumps(fields, indent=2, ensure_ascii=False, sort_keys=True)
    return [contained(legible(line)) for line in text.split("\n")]
