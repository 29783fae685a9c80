"""Without an editor, no file is open."""

from __future__ import annotations

import asyncio
from pathlib import Path

from parley.workspace.editor_files import EditorFiles, NoEditor


def test_without_an_editor_each_file_is_changed_on_disk(tmp_path: Path) -> None:
    async def use(editor: EditorFiles) -> list[object]:
        await editor.move(tmp_path, tmp_path)
        return [await editor.text(tmp_path), await editor.apply(tmp_path, "", "")]

    assert asyncio.run(use(NoEditor())) == [None, "changed"]
