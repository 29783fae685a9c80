"""`parley changes` and `parley revert`: the files that a chat's calls changed, and the way back."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parley.chat.reader import parse
from parley.chat.transcript import Transcript
from parley.cli.exits import COMPLETE, FAILED
from parley.cli.terminal import complain, emit, remark, say, say_line
from parley.display.file_changes_text import (
    calls_text,
    counts_text,
    old_path,
    shown_path,
    state_text,
)
from parley.errors import ParleyError
from parley.policy.file_changes import CallPlace, FileChanges, by_file, of_exchange, places
from parley.policy.reverts import ChangeHistory
from parley.runtime.reverting import Reverter, RevertOutcome, reverter
from parley.storage.content import text_of
from parley.storage.ledger import shell_ledger
from parley.tools.line_diff import counts, diff_rows, unified_diff


def changes(arguments: argparse.Namespace) -> int:
    """List the files that a chat's calls changed."""
    with shell_ledger(os.environ) as ledger:
        known = reverter(ledger, os.environ, arguments.file) if ledger else None
        histories = asyncio.run(known.histories()) if known else []
        transcript = _transcript(arguments.file, is_needed=not histories)
        if known is None or not histories:
            if not arguments.json and not arguments.diff:
                say_line("No changes yet.")
            return COMPLETE
        where = _places(known, transcript, histories)
        for file in by_file(histories):
            _tell(file, known, where, arguments)
    return COMPLETE


def _transcript(path: str, *, is_needed: bool) -> Transcript:
    """The chat; an empty one if it was deleted, but its changes are known."""
    try:
        return parse(text_of(Path(path)))
    except ParleyError:
        if is_needed:
            raise
        return Transcript()


def _places(
    known: Reverter, transcript: Transcript, histories: Sequence[ChangeHistory]
) -> Mapping[int, CallPlace]:
    return places(transcript, [each.change for each in histories], known.changes.calls())


def _tell(
    file: FileChanges,
    known: Reverter,
    where: Mapping[int, CallPlace],
    arguments: argparse.Namespace,
) -> None:
    texts, problem = asyncio.run(_texts(known, file))
    added, removed = counts(diff_rows(*texts)) if file.standing else (0, 0)
    path, moved_from = shown_path(file), old_path(file)
    if arguments.json:
        facts: dict[str, Any] = {
            "path": path,
            "moved_from": moved_from,
            "root": str(file.last.root),
            "state": _state(file),
            "added": added,
            "removed": removed,
            "problem": problem,
            "calls": [_call(history, where) for history in file.histories],
        }
        if arguments.diff:
            facts["diff"] = "\n".join(_diff(file, texts))
        emit("changed_file", **facts)
    elif arguments.diff:
        if problem:
            remark(f"{path}: {problem}")
        for line in _diff(file, texts):
            say(line)
    else:
        counted = counts_text(added, removed) if file.standing and not problem else ""
        words = (path, counted, state_text(file), calls_text(file, where), problem)
        say_line("  ".join(filter(None, words)))


async def _texts(known: Reverter, file: FileChanges) -> tuple[tuple[str | None, str | None], str]:
    """The texts before and after or, if they are not known, why."""
    try:
        return await known.texts(file), ""
    except ParleyError as error:
        return (None, None), str(error)


def _diff(file: FileChanges, texts: tuple[str | None, str | None]) -> list[str]:
    if not file.standing:
        return []
    path = shown_path(file)
    return unified_diff(*texts, old_path(file) or path, path)


def _state(file: FileChanges) -> str:
    if not file.standing:
        return "reverted"
    return "partly reverted" if file.reverted else "standing"


def _call(history: ChangeHistory, where: Mapping[int, CallPlace]) -> dict[str, Any]:
    change, place = history.change, where[history.change.number]
    return {
        "call": change.call_id,
        "exchange": place.exchange,
        "tool": place.tool,
        "at": change.at,
        "is_reverted": history.is_reverted,
    }


def revert(arguments: argparse.Namespace) -> int:
    """Revert the changes that a chat's calls made to files."""
    transcript = parse(text_of(Path(arguments.file)))
    if (number := arguments.exchange) is not None and number > len(transcript.exchanges):
        raise ParleyError(
            f"{arguments.file}: there is no exchange {number}: it has {len(transcript.exchanges)}"
        )
    with _reverter(arguments.file) as known:
        if known is None:
            return _tell_nothing([], arguments)
        return asyncio.run(_revert(known, transcript, arguments))


@contextmanager
def _reverter(path: str) -> Iterator[Reverter | None]:
    """The chat's reverter, while no turn runs in the chat. Raises BusyError."""
    with shell_ledger(os.environ) as ledger:
        if ledger is None:
            yield None
            return
        with ledger.chat(path).lease():
            yield reverter(ledger, os.environ, path)


async def _revert(known: Reverter, transcript: Transcript, arguments: argparse.Namespace) -> int:
    histories = await known.histories()
    where = _places(known, transcript, histories)
    chosen = _chosen(histories, where, arguments)
    wanted = [each for each in chosen if each.is_reverted == arguments.repeat]
    if not wanted:
        return _tell_nothing(chosen, arguments)
    changes = [change for each in histories for change in (each.change, each.last)]
    roots = {path: change.root for change in changes for path in (change.path, change.place)}
    outcome = await known.revert(wanted)
    return _report(outcome, roots, arguments)


def _chosen(
    histories: Sequence[ChangeHistory],
    where: Mapping[int, CallPlace],
    arguments: argparse.Namespace,
) -> Sequence[ChangeHistory]:
    """The changes that the arguments name; by default, those of the last exchange with changes to
    revert or, for `--repeat`, of the last reverted exchange.
    """
    chosen = histories
    if arguments.path:
        chosen = _of_path(histories, arguments.path)
    if arguments.exchange is not None:
        return of_exchange(chosen, where, arguments.exchange)
    if arguments.path:
        return chosen
    fitting = [each for each in chosen if each.is_reverted == arguments.repeat]
    if not fitting:
        return chosen
    last = max(fitting, key=lambda history: history.last.number).change
    exchange = where[last.number].exchange
    found = of_exchange(fitting, where, exchange)
    if exchange:
        return found
    return [history for history in found if history.change.call_id == last.call_id]


def _of_path(histories: Sequence[ChangeHistory], path: str) -> Sequence[ChangeHistory]:
    """The changes of a file, named from the working directory or from the root."""
    for file in by_file(histories):
        names = {each.change.place for each in file.histories} | {file.first.path, file.place}
        if {Path(os.path.realpath(path)), file.last.root / path} & names:
            return file.histories
    raise ParleyError(f"no call in this chat changed {path}")


def _tell_nothing(chosen: Sequence[ChangeHistory], arguments: argparse.Namespace) -> int:
    """Say why there is nothing to do, which is no error."""
    if not chosen:
        text = f"nothing to {'repeat' if arguments.repeat else 'revert'}"
    elif arguments.repeat:
        text = "nothing to repeat: no change was reverted"
    else:
        text = "all changes are already reverted. --repeat repeats them"
    (remark if arguments.json else say_line)(text)
    return COMPLETE


def _report(
    outcome: RevertOutcome, roots: Mapping[Path, Path], arguments: argparse.Namespace
) -> int:
    word = "repeated" if arguments.repeat else "reverted"
    done = [(path, word) for path in outcome.reverted]
    left = [(conflict.path, "changed since") for conflict in outcome.conflicts]
    for path, what in (*done, *left):
        root = roots.get(path, path.parent)
        shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        if arguments.json:
            emit("revert", path=shown, root=str(root), outcome=what)
        elif what == word:
            say_line(f"{word} {shown}")
        if what != word:
            complain(
                f"{shown} has changed since, so it was not {word}. "
                "`parley changes --diff` shows the calls' changes"
            )
    for text in outcome.remarks:
        remark(text)
    for text in outcome.problems:
        complain(text)
    return FAILED if outcome.conflicts or outcome.problems else COMPLETE
