"""An agent of another program asks Parley for files and a command in Neovim: keys decide."""

from __future__ import annotations

from pathlib import Path

from tests.acp.agent_runs import AgentRun
from tests.nvim.harness import child
from tests.nvim.test_acp import Place, asked
from tests.nvim.test_rows import shown

UNSAVED = "one\ntwo\nthree"


def test_an_agent_works_on_the_text_of_the_buffer(tmp_path: Path) -> None:
    place = Place(tmp_path)
    path = str(place.root / "a.txt")
    steps = [
        {"request": "fs/read_text_file", "params": {"path": path}},
        {"request": "fs/write_text_file", "params": {"path": path, "content": "one\n2\nthree\n"}},
        {"terminal": {"command": "echo hi >b.txt && cat b.txt"}, "then": ["wait_for_exit"]},
        {"say": "The end."},
    ]
    place.run = AgentRun(tmp_path / "agent", {"prompts": [steps]})
    environ = {"PARLEY_LEAST_SEEN_S": "0"}
    (tmp_path / "nvim").mkdir()
    with child(tmp_path / "nvim", init=place.settings(), env=environ, width=80) as nvim:
        nvim.command(f"cd {place.root} | edit a.txt | set hidden")
        nvim.nvim.current.buffer[:] = UNSAVED.split("\n")
        buffer = nvim.nvim.current.buffer
        asked(nvim)
        assert '❓ read_file(path: "a.txt")' in "\n".join(shown(nvim))
        nvim.keys("ya")
        nvim.until_screen("❓ write_file(a.txt) +1 −1")
        nvim.until_screen(">> Please choose")
        nvim.until_idle()
        assert "a.txt has unsaved changes" in nvim.screen()
        assert (place.file, buffer[:]) == ("one\ntwo\n", UNSAVED.split("\n"))
        nvim.keys("ya")
        nvim.until_screen("❓ run_command(")
        nvim.until_screen(">> Please choose")
        nvim.until_idle()
        assert buffer[:] == ["one", "2", "three"]
        assert place.file == "one\ntwo\n"
        assert not (place.root / "b.txt").exists()
        nvim.keys("ya")
        nvim.until_screen("The end.")
        nvim.until_idle()
        read, written, made, end = place.run.answers()
        assert read == {"content": f"{UNSAVED}\n"}
        assert (written, end["exitCode"]) == ({}, 0)
        assert made["terminalId"]
        assert (place.root / "b.txt").read_text() == "hi\n"
        nvim.command("ParleyRevert")
        nvim.until(lambda: not (place.root / "b.txt").exists(), "the revert of the command")
        nvim.until(lambda: buffer[:] == UNSAVED.split("\n"), "the revert of the change")
