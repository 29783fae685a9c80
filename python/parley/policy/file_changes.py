"""The files that a chat's calls have changed, each with its changes and their exchanges. Pure.

Knows digests and the chat's calls; does not know contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from parley.chat.transcript import Transcript
from parley.frozen import frozen
from parley.policy.reverts import ChangeHistory, RecordedChange


@frozen
class ChangingCall:
    """The call that made a change, as the ledger knows it."""

    server: str
    tool: str
    arguments: str
    run: int
    """Its number, from 1, among the runs in this chat with the same id and arguments."""


@frozen
class CallPlace:
    """Where a change comes from, for the user."""

    exchange: int
    """The exchange's number, from 1; 0 if the chat no longer contains the call."""
    tool: str
    """The tool's name; "" if nothing is known about the call."""


@frozen
class FileChanges:
    """A file's changes, in their order; the file keeps its identity when a call moves it."""

    histories: tuple[ChangeHistory, ...]

    @property
    def number(self) -> int:
        """The number of the first change, which identifies the file."""
        return self.histories[0].change.number

    @property
    def last(self) -> RecordedChange:
        """The last change, or the last revert."""
        return max((each.last for each in self.histories), key=lambda change: change.number)

    @property
    def place(self) -> Path:
        """Where the file is."""
        return self.last.place

    @property
    def after(self) -> str:
        """The digest of the content that the file should have."""
        return self.last.after

    @property
    def standing(self) -> tuple[ChangeHistory, ...]:
        """The changes that no revert has taken back."""
        return tuple(each for each in self.histories if not each.is_reverted)

    @property
    def reverted(self) -> tuple[ChangeHistory, ...]:
        """The changes that a revert has taken back."""
        return tuple(each for each in self.histories if each.is_reverted)

    @property
    def first(self) -> RecordedChange:
        """The first change that stands or, if no change stands, the first one."""
        return (self.standing or self.histories)[0].change


def by_file(histories: Iterable[ChangeHistory]) -> list[FileChanges]:
    """The changes of each file; the files that changed last come first."""
    groups, at = list[list[ChangeHistory]](), dict[Path, list[ChangeHistory]]()
    for history in histories:
        change = history.change
        if (group := at.pop(change.path, None)) is None:
            groups.append(group := [])
        group.append(history)
        at[change.place] = group
    files = [FileChanges(tuple(group)) for group in groups]
    return sorted(files, key=lambda file: -file.last.number)


def places(
    transcript: Transcript, changes: Iterable[RecordedChange], calls: Mapping[int, ChangingCall]
) -> dict[int, CallPlace]:
    """The place of each change, by the change's number. Ids may repeat in a chat."""
    exact, by_id = defaultdict[tuple[str, str], list[int]](list), defaultdict[str, list[int]](list)
    names = dict[str, str]()
    for number, exchange in enumerate(transcript.exchanges, 1):
        for call in (p.call for a in exchange.answers for p in a.calls if p.result or p.mark):
            exact[call.id, call.arguments].append(number)
            by_id[call.id].append(number)
            names[call.id] = call.name
    found = dict[int, CallPlace]()
    for change in changes:
        known = calls.get(change.number) or ChangingCall("", names.get(change.call_id, ""), "", 1)
        numbers = exact.get((change.call_id, known.arguments)) or by_id.get(change.call_id) or [0]
        found[change.number] = CallPlace(numbers[min(known.run, len(numbers)) - 1], known.tool)
    return found


def of_exchange(
    histories: Iterable[ChangeHistory], where: Mapping[int, CallPlace], exchange: int
) -> list[ChangeHistory]:
    """The changes that an exchange's calls made."""
    return [each for each in histories if where[each.change.number].exchange == exchange]


def not_made(changes: Sequence[RecordedChange], now: Mapping[Path, str]) -> Collection[int]:
    """The numbers of the changes that were recorded, but not made, because the process was killed.

    The next change of the same file shows it or, if there is none, the digest of its content `now`.
    A move that was killed half-way leaves the file with both names. Then the call's change stands,
    so that a revert removes the new name.
    """
    out, does_stand = set[int](), dict[int, bool]()
    for at, change in enumerate(changes):
        stands = change.reverts is None or not does_stand.get(change.reverts, True)
        does_stand[change.number] = stands
        if change.state == "begun" and not _is_made(change, changes[at + 1 :], now, stands=stands):
            out.add(change.number)
    return out


def _is_made(
    change: RecordedChange,
    later: Sequence[RecordedChange],
    now: Mapping[Path, str],
    *,
    stands: bool,
) -> bool:
    names = (change.path, change.place)
    following = next((each for each in later if each.path in names), None)
    if not change.moved_to:
        found = following.before if following else now[change.path]
        return found != change.before or change.before == change.after
    if following:
        return following.path == change.place
    if now[change.path] == change.before and now[change.place] == change.after:
        return stands
    return now[change.place] == change.after
