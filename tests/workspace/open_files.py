"""An editor with files open in it, as a fake of the port."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from parley.workspace.editor_files import Applied, OpenText


@dataclass
class FakeEditor:
    """Open texts by path; `saves` as in the setting."""

    texts: dict[Path, OpenText] = field(default_factory=dict)
    saves: bool = True
    moved: list[tuple[Path, Path]] = field(default_factory=list)

    async def text(self, path: Path) -> OpenText | None:
        return self.texts.get(path)

    async def apply(self, path: Path, before: str, text: str) -> Applied:
        opened = self.texts.get(path)
        if opened is None or hashlib.sha256(opened.text.encode()).hexdigest() != before:
            return "changed"
        is_saved = self.saves and not opened.is_modified
        self.texts[path] = OpenText(text, not is_saved)
        if is_saved:
            _write(path, text)
        return "saved" if is_saved else "unsaved"

    async def move(self, path: Path, target: Path) -> None:
        self.moved.append((path, target))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")
