"""What calls have done to a file, in words: for the page of changes and the shell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from parley.policy.file_changes import CallPlace, FileChanges


def shown_path(file: FileChanges) -> str:
    """A file's path from the root."""
    return _from_root(file.place, file.last.root)


def old_path(file: FileChanges) -> str:
    """The path from the root before the standing changes; "" if it is the same."""
    if not file.standing or file.first.path == file.place:
        return ""
    return _from_root(file.first.path, file.last.root)


def _from_root(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def counts_text(added: int, removed: int) -> str:
    """The numbers of added and removed lines."""
    return f"+{added} −{removed}"


def state_text(file: FileChanges) -> str:
    """What the standing changes have done to a file, if it is not just another text."""
    if not file.standing:
        return "reverted"
    kinds = [
        "new" if not file.first.before else "",
        "deleted" if not file.after else "",
        f"moved from {old_path(file)}" if old_path(file) else "",
        "partly reverted" if file.reverted else "",
    ]
    return ", ".join(filter(None, kinds))


def calls_text(file: FileChanges, where: Mapping[int, CallPlace]) -> str:
    """The calls that changed a file, by exchange."""
    tools = dict[int, list[str]]()
    for place in (where[history.change.number] for history in file.histories):
        tools.setdefault(place.exchange, []).append(place.tool)
    return "; ".join(
        f"{exchange_text(number)}: {', '.join(_without_repeats(names)) or 'a call'}"
        for number, names in sorted(tools.items())
    )


def exchange_text(number: int) -> str:
    """An exchange by its number; 0 stands for a removed one."""
    return f"exchange {number}" if number else "removed from the chat"


def _without_repeats(names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name]
