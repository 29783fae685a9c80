"""The files that a pattern in a question includes, and a line that lists the files left out.

Pictures match only if the pattern ends with a picture's file extension.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from parley.chat.references import (
    ReferenceText,
)
from parley.media import TYPES
from parley.storage.bounds import MORE, LeftOutError, RoomLeft
from parley.storage.patterns import files, is_dotted
from parley.storage.reference_files import (
    NamedPicture,
    text_only,
    text_or_picture,
)
from parley.text import counted, visible

INSIDE = "only patterns inside the working directory are read"
IS_HIDDEN = "hidden, so not read"
NO_HIDDEN = "a pattern does not match hidden files. Name each of them"
_PICTURES = (*(f".{kind}" for kind in TYPES), ".jpeg")


def matching(folder: Path, pattern: str, room: RoomLeft) -> Sequence[ReferenceText | NamedPicture]:
    """The texts that match a pattern, and a line that lists the files left out.

    Pictures match only if the pattern ends with a picture's file extension, because they are large
    and `src/*` means text.
    """
    texts, left = list[ReferenceText | NamedPicture](), Counter[str]()
    read = text_or_picture if pattern.lower().endswith(_PICTURES) else text_only
    if is_dotted("/".join(part for part in pattern.split("/") if part not in (".", ".."))):
        return [missing(pattern, NO_HIDDEN)]
    try:
        for name in files(folder, pattern, room.looks):
            path = (folder / name).resolve()
            if not path.is_relative_to(folder) or is_dotted(path.relative_to(folder).as_posix()):
                left["outside the working directory or hidden"] += 1
            elif not room.open():
                left[MORE] += 1
            else:
                try:
                    texts.append(read(path, name, room))
                except LeftOutError as error:
                    left[error.kind] += 1
    except ValueError:
        return [missing(pattern, INSIDE)]
    texts.sort(key=lambda text: text.title if isinstance(text, ReferenceText) else text.name)
    if reasons := list(_left_out(left, room)):
        kind: Literal["partial", "missing"] = "partial" if texts else "missing"
        why = f"left out: {', '.join(reasons)}{_how_to_narrow(left, room)}"
        texts.append(ReferenceText(visible(pattern), visible(why), kind))
    return texts or [missing(pattern, "no file matches")]


def _left_out(left: Counter[str], room: RoomLeft) -> Iterator[str]:
    for kind, count in sorted(left.items()):
        if kind != MORE:
            yield f"{counted(count, 'file')} ({kind})"
    if room.looks.closed:
        yield f"{counted(room.looks.closed, 'folder')} (cannot be read)"
    if count := left[MORE]:
        yield f"{counted(count, 'more file')} ({room.most()})"
    if room.looks.ended == "names":
        yield f"everything beyond the first {room.bounds.names} file and folder names"
    if room.looks.ended == "time":
        yield f"everything not found within {room.bounds.seconds:g} seconds"


def _how_to_narrow(left: Counter[str], room: RoomLeft) -> str:
    if not (left[MORE] or room.looks.ended):
        return ""
    return ". Give a folder, or a pattern that matches fewer files, such as src/*.py"


def missing(name: str, why: str) -> ReferenceText:
    return ReferenceText(visible(name), visible(why), "missing")
