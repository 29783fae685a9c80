"""`:ParleyFind` lists the chats of a folder in which other things lie, too."""

from __future__ import annotations

import os
from pathlib import Path

from tests.nvim.counting import MARKER
from tests.nvim.harness import Child, child

PICK = "vim.ui.select = function(items, opts) _G.picked = vim.tbl_map(opts.format_item, items) end"


def fill(folder: Path) -> None:
    """A chat, and what an enemy or an accident leaves beside it."""
    folder.mkdir(parents=True)
    (folder / "good.md").write_text(f"{MARKER}a good question\n", encoding="utf-8")
    (folder / "dangling.md").symlink_to(folder / "gone.md")
    os.mkfifo(folder / "pipe.md")
    hostile = "a: !!timestamp foo\nb: !!bool maybe\nc: !!python/object/apply:os.abort []\nd: ["
    text = f"---\n{hostile}\n---\n\n{MARKER}below hostile YAML\n"
    (folder / "hostile.md").write_text(text, encoding="utf-8")
    (folder / "closed.md").symlink_to("/proc/self/mem")  # a file that not even root can read at its start


def picked(nvim: Child) -> list[str]:
    nvim.lua("_G.picked = nil")
    nvim.lua(PICK)
    nvim.command("ParleyFind")
    nvim.until(lambda: nvim.lua("return _G.picked ~= nil"), "the list of chats")
    chosen: list[str] = nvim.lua("return _G.picked")
    return chosen


def test_pipes_dangling_links_files_beyond_reading_and_hostile_yaml_hide_no_chat(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data" / "parley" / "chats"
    fill(folder)
    with child(tmp_path) as nvim:
        items = picked(nvim)
        assert len(items) == 3, items
        for expected in ("a good question", "below hostile YAML", "closed.md: Input/output error"):
            assert [item for item in items if expected in item], (expected, items)
        (folder / "later.md").write_text(f"{MARKER}asked later\n", encoding="utf-8")
        assert "asked later" in picked(nvim)[0]  # the host is alive
        assert nvim.lua("return require('parley.host').state().stderr") == []
