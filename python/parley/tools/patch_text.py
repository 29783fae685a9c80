"""Patches in the text format of Codex's `apply_patch` tool: several files, without line numbers.

Applies them as that tool does: openai/codex, codex-rs/apply-patch/src, parser.rs and
seek_sequence.rs, 2026-11-24. Knows neither files nor other tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from parley.frozen import frozen
from parley.tools.line_runs import first_run
from parley.tools.text_edits import EditError


@frozen
class Hunk:
    """Lines to replace, and the new lines. `context` is a line above them, such as the head of a
    function; None if there is none.
    """

    context: str | None
    old: tuple[str, ...]
    new: tuple[str, ...]
    is_at_end: bool = False


@frozen
class PatchedFile:
    """The part of a patch for one file. With `to`, the file gets another path. `added` is the text of
    a new file. A file with neither text nor hunks is deleted.
    """

    path: str
    added: str | None = None
    hunks: tuple[Hunk, ...] = ()
    to: str = ""


def patched_files(patch: str) -> list[PatchedFile]:
    """The files of a patch. Raises ValueError if the patch is malformed."""
    lines = [line.removesuffix("\r") for line in patch.strip().split("\n")]
    if re.fullmatch(r"<<(['\"]?)EOF\1", lines[0]) and lines[-1].endswith("EOF"):
        lines = lines[1:-1]
    if len(lines) < 3 or lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        raise ValueError("not a patch")
    reader = _Reader(lines[1:-1])
    files = list[PatchedFile]()
    while reader.line is not None:
        files.append(reader.file())
    return files


def patched(text: str, hunks: Sequence[Hunk]) -> tuple[str, bool]:
    """The text after the hunks, and whether all their lines were found exactly and in one place.
    Raises EditError.
    """
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    at, is_sure = 0, True
    changes = list[tuple[int, int, tuple[str, ...]]]()
    for hunk in hunks:
        if hunk.context is not None:
            at, is_exact = _index_of(lines, (hunk.context,), at, is_at_end=False)
            at, is_sure = at + 1, is_sure and is_exact
        if not hunk.old:
            end = len(lines) - (1 if lines and not lines[-1] else 0)
            changes.append((end, 0, hunk.new))
            continue
        old, new = hunk.old, hunk.new
        try:
            at, is_exact = _index_of(lines, old, at, is_at_end=hunk.is_at_end)
        except EditError:
            if old[-1] or len(old) == 1:
                raise
            old, new = old[:-1], new[:-1] if new and not new[-1] else new
            at, is_exact = _index_of(lines, old, at, is_at_end=hunk.is_at_end)
        is_sure = is_sure and is_exact
        changes.append((at, len(old), new))
        at += len(old)
    for start, size, new in sorted(changes, key=lambda change: change[0])[::-1]:
        lines[start : start + size] = new
    return "".join(f"{line}\n" for line in lines), is_sure


_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _AT_END = "*** Move to: ", "*** End of File"


class _Reader:
    """Reads the lines of a patch one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self._lines, self._at = lines, 0

    @property
    def line(self) -> str | None:
        """The next line; None at the end."""
        return self._lines[self._at] if self._at < len(self._lines) else None

    def file(self) -> PatchedFile:
        head = (self.line or "").strip()
        self._at += 1
        if head.startswith(_ADD):
            added = list[str]()
            while (line := self.line) is not None and line.startswith("+"):
                added.append(f"{line[1:]}\n")
                self._at += 1
            return PatchedFile(head.removeprefix(_ADD), "".join(added))
        if head.startswith(_DELETE):
            return PatchedFile(head.removeprefix(_DELETE))
        if head.startswith(_UPDATE):
            return self._update(head.removeprefix(_UPDATE))
        raise ValueError("unknown part of a patch")

    def _update(self, path: str) -> PatchedFile:
        to = ""
        if (line := self.line) is not None and line.startswith(_MOVE):
            to = line.removeprefix(_MOVE)
            self._at += 1
        hunks = list[Hunk]()
        while (line := self.line) is not None and not line.startswith("*"):
            if line.strip():
                hunks.append(self._hunk(is_first=not hunks))
            else:
                self._at += 1
        if not hunks:
            raise ValueError("a changed file without changes")
        return PatchedFile(path, None, tuple(hunks), to)

    def _hunk(self, *, is_first: bool) -> Hunk:
        context, head = None, self.line or ""
        if head == "@@" or head.startswith("@@ "):
            context = head[3:] or None
            self._at += 1
        elif not is_first:
            raise ValueError("a hunk without @@")
        old, new, is_at_end = list[str](), list[str](), False
        start = self._at
        while (line := self.line) is not None and not is_at_end:
            sign, rest = line[:1], line[1:]
            if line == _AT_END and self._at > start:
                is_at_end = True
            elif sign not in ("", " ", "-", "+"):
                break
            else:
                old += [rest] * (sign != "+")
                new += [rest] * (sign != "-")
            self._at += 1
        if self._at == start:
            raise ValueError("a hunk without lines")
        return Hunk(context, tuple(old), tuple(new), is_at_end)


_ASCII = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a", " "),
        **dict.fromkeys("\u202f\u205f\u3000", " "),
    }
)
_KEYS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    str.strip,
    lambda line: line.strip().translate(_ASCII),
)


def _index_of(
    lines: Sequence[str], part: Sequence[str], start: int, *, is_at_end: bool
) -> tuple[int, bool]:
    """The index of lines, and whether they are exactly the same and in no other place below `start`."""
    if is_at_end:
        start = max(0, len(lines) - len(part))
    for key in _KEYS:
        keyed, keys = list(map(key, lines)), list(map(key, part))
        if (at := first_run(keyed, keys, start)) >= 0:
            return at, key is str and first_run(keyed, keys, at + 1) < 0
    shown = "\n".join(line[:200] for line in part[:10])
    raise EditError(f"the patch has lines that are not in the file. Quote them exactly:\n{shown}")
