"""The reports of an agent about its calls during one prompt, and the call that it asks about.

Receives the updates in the order of their arrival, as plain JSON, and limits the kept data. Knows
neither the connection nor the user's choices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from parley.chat.transcript import ToolCall
from parley.frozen import frozen
from parley.text import one_line
from parley.tools.agent_calls import FileDiff, call_arguments, kind_of_call
from parley.tools.results import Outcome, outcome

MOST_CALLS = 500
"""The maximum number of a prompt's calls that are kept; the oldest call is forgotten first."""
MOST_OF_A_CALL = 2_000_000
"""The maximum size of one call's update in bytes; for a larger update, only its title, kind and
state are kept."""
MOST_IN_ALL = 32_000_000
_LONGEST_ID = 1_000
_TITLE_SHOWN = 300
_MOST_PATHS = 50
_MOST_PIECES = 1_000
_ENDED = ("completed", "failed")


@frozen
class RanByAgent:
    """A call that the agent ran by its own rules, with its outcome. With `is_known`, it was reported
    when it began."""

    call: ToolCall
    outcome: Outcome
    is_known: bool = False


@frozen
class AgentCallBegan:
    """A call that the agent runs by its own rules, and that has not ended yet."""

    call: ToolCall


@frozen
class AskedCallEnded:
    """Calls that the agent has asked about, by Parley's ids, have this outcome."""

    ids: tuple[str, ...]
    outcome: Outcome
    begun: ToolCall | None = None
    """The call as the agent reported it when the call began, before the agent asked."""


CallNews: TypeAlias = RanByAgent | AskedCallEnded | None


@dataclass(slots=True)
class _Record:
    """One call, as far as it is known."""

    title: str = ""
    kind: str = "other"
    raw: object = None
    content: list[Any] = field(default_factory=list)
    output: object = None
    paths: tuple[str, ...] = ()
    status: str = "pending"
    own_ids: list[str] = field(default_factory=list)
    begun: ToolCall | None = None
    """The call as it was reported when it began."""
    was_running: bool = False
    """Whether it ran at the last look at the calls that run."""
    size: int = 0
    printed: list[str] = field(default_factory=list)
    """What a command printed in the agent's own terminal, in pieces."""
    exit_code: int | None = None

    @property
    def is_expected(self) -> bool:
        """Whether the chat has the call, so that its outcome must arrive."""
        return bool(self.own_ids) or self.begun is not None

    def shed(self) -> None:
        """Forget the contents; the outcome can still be reported."""
        self.raw, self.content, self.output, self.printed = None, [], None, []
        self.begun = self.begun and replace(self.begun, arguments="{}")
        self.size = 0


class AgentRecords:
    """The calls of one prompt. `next_id` makes an id that no other call of any chat has, because the
    agent's own ids may repeat."""

    def __init__(
        self,
        next_id: Callable[[], str],
        max_bytes: int,
        terminal_text: Callable[[str], str] = lambda _: "",
    ) -> None:
        """`max_bytes` limits each result. `terminal_text` returns the output of the terminal with
        an id."""
        self._next_id = next_id
        self._max_bytes = max_bytes
        self._terminal_text = terminal_text
        self._records: dict[str, _Record] = {}

    def take(self, update: Mapping[str, Any]) -> CallNews:
        """Note a `tool_call` or a `tool_call_update`; returns the fact that has become certain."""
        record = self._merged(update)
        if record is None or record.status not in _ENDED:
            return None
        return self._ended(record)

    def ask(self, update: Mapping[str, Any]) -> ToolCall | None:
        """The call that a permission request is about; None if it cannot be shown in full."""
        size = size_of(update)
        record = self._merged(update)
        if record is None or size > MOST_OF_A_CALL:
            return None
        own = self._next_id()
        call = _call(record, own)
        if call is not None:
            record.own_ids.append(own)
        return call

    def begun(self) -> Iterator[AgentCallBegan]:
        """The calls that run now and ran at the last look, and about which the agent has not asked;
        each is returned once."""
        for record in self._records.values():
            if record.status != "in_progress" or record.is_expected:
                continue
            if record.was_running:
                record.begun = self._own_call(record)
                yield AgentCallBegan(record.begun)
            record.was_running = True

    def unfinished(self) -> Iterator[RanByAgent]:
        """The calls without an outcome at the prompt's end, except those that the agent has only
        asked about."""
        for record in list(self._records.values()):
            is_shown = record.begun is not None or not record.own_ids
            if record.status not in _ENDED and is_shown:
                record.status = "failed"
                record.content, record.output = [], None
                yield self._ran(record, "The agent ended its turn without reporting an outcome.")

    def _ended(self, record: _Record) -> CallNews:
        if record.own_ids:
            own_ids, record.own_ids = tuple(record.own_ids), []
            begun, record.begun = record.begun, None
            return AskedCallEnded(own_ids, self._outcome(record), begun)
        return self._ran(record)

    def _ran(self, record: _Record, text: str = "") -> RanByAgent:
        call, made = record.begun or self._own_call(record), self._outcome(record)
        is_known, record.begun = record.begun is not None, None
        return RanByAgent(call, replace(made, text=text) if text else made, is_known)

    def _own_call(self, record: _Record) -> ToolCall:
        own = self._next_id()
        short = ToolCall(own, record.kind, call_arguments(record.title, None, ()))
        return _call(record, own) or short

    def _outcome(self, record: _Record) -> Outcome:
        blocks = list(_blocks(record, self._terminal_text))
        structured = None if isinstance(record.output, str) else record.output
        status = "ok" if record.status == "completed" else "error"
        made = outcome(status, blocks, structured, max_bytes=self._max_bytes)  # type: ignore[arg-type]
        record.content, record.output = [], None  # it may be large, and is not needed again
        record.printed, record.exit_code = [], None
        return made

    def _merged(self, update: Mapping[str, Any]) -> _Record | None:
        """The record with the update's fields; None without an id of a usual length."""
        match update.get("toolCallId"):
            case str(call_id) if len(call_id) <= _LONGEST_ID:
                pass
            case _:
                return None
        known = self._records.get(call_id)
        is_new = update.get("sessionUpdate") == "tool_call" and known and known.status in _ENDED
        record = self._records.setdefault(call_id, _Record()) if not is_new else _Record()
        self._records.pop(call_id, None)
        self._records[call_id] = record
        _merge(record, update)
        self._forget()
        return record

    def _forget(self) -> None:
        """Forget the oldest calls if there are too many; of a call that the chat has, forget only
        the contents."""
        total = sum(record.size for record in self._records.values())
        for call_id, record in list(self._records.items())[:-1]:
            if len(self._records) <= MOST_CALLS and total <= MOST_IN_ALL:
                return
            total -= record.size
            if record.is_expected:
                record.shed()
            else:
                del self._records[call_id]


def _merge(record: _Record, update: Mapping[str, Any]) -> None:
    match update.get("title"):
        case str(title):
            record.title = one_line(title[: 4 * _TITLE_SHOWN], _TITLE_SHOWN)
    if update.get("kind") is not None:
        record.kind = kind_of_call(update["kind"])
    match update.get("status"):
        case "pending" | "in_progress" | "completed" | "failed" as status:
            record.status = status
    size = size_of(update)
    if size > MOST_OF_A_CALL:
        return
    record.size = max(record.size, size)
    if update.get("rawInput") is not None:
        record.raw = update["rawInput"]
    if update.get("rawOutput") is not None:
        record.output = update["rawOutput"]
    match update.get("content"):
        case [*content]:
            record.content = content
    match update.get("locations"):
        case [*locations]:
            record.paths = tuple(_paths(locations))
    match update.get("_meta"):
        case dict() as meta:
            _merge_terminal(record, meta)


# Codex sends the output of its own terminals in these fields, and so do agents for Zed:
# codex-acp 2.6.0, seen 2026-11-26.
def _merge_terminal(record: _Record, meta: Mapping[str, Any]) -> None:
    for name in ("terminal_output", "terminal_output_delta"):
        match meta.get(name):
            case {"data": str(data)} if record.size <= MOST_OF_A_CALL:
                record.printed.append(data)
                record.size += len(data)
                if len(record.printed) > _MOST_PIECES:
                    record.printed = ["".join(record.printed)]
    match meta.get("terminal_exit"):
        case {"exit_code": int(code)}:
            record.exit_code = code


def _paths(locations: list[Any]) -> Iterator[str]:
    for location in locations[:_MOST_PATHS]:
        match location:
            case {"path": str(path)} if path:
                yield path


def _call(record: _Record, own: str) -> ToolCall | None:
    """The call with everything that is known about it; None if it cannot be written."""
    diffs = [diff for block in record.content if (diff := _diff(block))]
    try:
        text = call_arguments(record.title, record.raw, diffs, () if diffs else record.paths)
    except (ValueError, RecursionError):
        return None
    return ToolCall(own, record.kind, text) if len(text) <= MOST_OF_A_CALL else None


def _diff(block: Any) -> FileDiff | None:
    match block:
        case {"type": "diff", "path": str(path), "newText": str(new)} if path:
            old = block.get("oldText")
            return {"path": path, "oldText": old if isinstance(old, str) else None, "newText": new}
    return None


def _blocks(record: _Record, terminal_text: Callable[[str], str]) -> Iterator[Any]:
    """The blocks of a call's outcome, in the form of results; a diff is already in the call."""
    for block in record.content:
        match block:
            case {"type": "content", "content": content}:
                yield content
            case {"type": "diff", "path": str(path)}:
                yield {"type": "text", "text": f"changed {one_line(path)}"}
            case {"type": "terminal", "terminalId": str(name)}:
                if shown := terminal_text(name) or _printed(record):
                    yield {"type": "text", "text": shown}
    if not record.content and isinstance(record.output, str) and record.output:
        yield {"type": "text", "text": record.output}


def _printed(record: _Record) -> str:
    """What a command printed in the agent's own terminal, and its exit code if that is not 0."""
    text = "".join(record.printed)
    end = f"[exit code {record.exit_code}]" if record.exit_code else ""
    return f"{text.removesuffix(chr(10))}\n{end}".strip("\n") if end else text


def size_of(update: Mapping[str, Any]) -> int:
    """The size of an update in characters of JSON; a value that is too deep counts as too large for
    a call."""
    try:
        return len(json.dumps(update))
    except (ValueError, RecursionError):
        return MOST_OF_A_CALL + 1
