"""Pictures in a chat's folder, in a real Neovim: in questions, requests and exports."""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from parley.chat.attachments import attachment_of, link
from parley.mock_server import PIXEL
from tests.nvim.harness import Child, child
from tests.pictures import beside, png, question

CUT = f"data:image/png;base64,{b64encode(png()).decode()}"[:60]


def ask(nvim: Child, home: Path, name: str) -> Path:
    """A chat with a question about a picture in its folder."""
    path = home / name
    picture = beside(path, png())
    nvim.edit(name, question(picture).removesuffix("\n"))
    return path


def test_a_question_about_a_picture_is_answered(nvim: Child, home: Path) -> None:
    ask(nvim, home, "picture.md")
    nvim.command("ParleyRespond")
    nvim.until_text("I am shown image/png.")
    nvim.until_idle()


def test_the_request_page_omits_a_pictures_bytes(nvim: Child, home: Path) -> None:
    ask(nvim, home, "asked.md")
    nvim.command("ParleyAgent Demo-OpenAI")
    nvim.command("ParleyRequest")
    nvim.until_text(f'"url": "{CUT}… (')
    assert b64encode(png()).decode() not in nvim.text()


def test_a_missing_picture_is_sent_in_words_and_reported(nvim: Child, home: Path) -> None:
    ask(nvim, home, "gone.md")
    (home / "gone.assets").rename(home / "lost.assets")
    nvim.command("ParleyRespond")
    nvim.until(lambda: "no such file. Parley sends text instead" in nvim.messages(), "the reason")
    nvim.until_idle()
    assert "🔒:" not in nvim.text()


def test_an_exported_page_contains_the_picture(nvim: Child, home: Path) -> None:
    path = ask(nvim, home, "page.md")
    nvim.command("ParleyExport")
    page = path.with_suffix(".html")
    nvim.until(page.exists, "the page")
    nvim.until(lambda: "</html>" in page.read_text(encoding="utf-8"), "all of it")
    assert b64encode(png()).decode() in page.read_text(encoding="utf-8")


def test_a_missing_attachment_is_a_problem_on_its_line(nvim: Child, home: Path) -> None:
    picture = beside(home / "problem.md", png())
    (home / picture.path).unlink()
    nvim.edit("problem.md", question(picture))
    nvim.until(lambda: nvim.lua("return #vim.diagnostic.get(0)"), "the problem")
    (problem,) = nvim.lua("return vim.diagnostic.get(0)")
    assert (problem["lnum"], problem["message"]) == (2, f"{picture.path}: no such file")


EXTRA = f"""
require('parley').setup({{
  status = {{ llm = false }}, agent = 'Demo', approval = {{ auto = {{ 'extra/*' }} }},
  mcp = {{ servers = {{ extra = {{
    command = {sys.executable!r}, args = {{ '-m', 'parley.mock_server', '--extra' }}
  }} }} }} }})
"""


def test_pictures_and_five_megabytes_from_a_server_become_attachments(tmp_path: Path) -> None:
    with child(tmp_path, init=EXTRA, env={"PARLEY_DEMO_PACE": "0"}) as nvim:
        nvim.edit("chat.md", "💬: call picture {}")
        nvim.command("ParleyRespond")
        nvim.until_text("picture returned image/png.")
        nvim.until_idle()
        nvim.until_screen("→ image/png 68 B, ok")
        picture = attachment_of(PIXEL, "chat.assets", "png")
        assert f"[{picture.label}]({picture.path})" in nvim.text()
        assert (tmp_path / picture.path).read_bytes() == PIXEL
        nvim.edit("long.md", '💬: call long {"bytes": 5000000}')
        nvim.command("ParleyRespond")
        nvim.until_text("🔒: [Interrupted: the reply was cut off at max_tokens]")
        nvim.until_idle()
        (whole,) = (tmp_path / "long.assets").iterdir()
        assert whole.stat().st_size == 5_000_000
        nvim.command("normal! gg")
        nvim.until_screen("102 kB of 5.0 MB, ok")
        call = next(line for line in nvim.lines() if line.startswith("❓:"))
        call_id = call.partition('"id":"')[2].partition('"')[0]
        ask = f'💬: call read_result {{"call": "{call_id}", "offset": 4999990}}'
        nvim.lua("vim.api.nvim_buf_set_lines(0, -2, -1, false, { ... }) vim.cmd('normal! G')", ask)
        nvim.command("ParleyRespond")
        nvim.until_text("[Characters 4999990 to 5000000 of 5000000; this is the end]")
        nvim.until_idle()


def test_a_command_puts_a_picture_into_the_question(nvim: Child, home: Path) -> None:
    (home / "my pic.png").write_bytes(png(3))
    nvim.edit("image.md", "💬: What is\nthis?")
    nvim.command(f"ParleyImage {home}/my pic.png")
    picture = attachment_of(png(3), "image.assets", "png")
    nvim.until(lambda: nvim.lines() == ["💬: What is", "this?", "", link(picture)], "the link")
    assert (home / picture.path).read_bytes() == png(3)
    nvim.keys("u")
    assert nvim.lines() == ["💬: What is", "this?"]


def test_a_file_that_is_not_a_picture_is_reported_and_not_attached(nvim: Child, home: Path) -> None:
    (home / "text.png").write_text("text", encoding="utf-8")
    nvim.edit("none.md", "💬: hm")
    nvim.command(f"ParleyImage {home}/text.png")
    nvim.until(lambda: "is not a picture that a model can see" in nvim.messages(), "the reason")
    nvim.command(f"ParleyImage {home}/nowhere.png")
    nvim.until(lambda: "No such file" in nvim.messages(), "the other reason")
    assert nvim.lines() == ["💬: hm"]
    assert not (home / "none.assets").exists()


@pytest.mark.parametrize("holds", [True, False])
def test_without_a_file_the_clipboards_picture_is_attached(tmp_path: Path, holds: bool) -> None:
    program = tmp_path / "bin" / "wl-paste"
    program.parent.mkdir()
    (tmp_path / "held.png").write_bytes(png(4))
    program.write_text(
        f"#!/bin/sh\n{f'cat {tmp_path}/held.png' if holds else 'exit 1'}\n", encoding="utf-8"
    )
    program.chmod(0o755)
    env = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "WAYLAND_DISPLAY": "wayland-0",
        "DISPLAY": "",
    }
    with child(tmp_path, env=env) as nvim:
        nvim.edit("chat.md", "💬: ")
        nvim.command("ParleyImage")
        if holds:
            picture = link(attachment_of(png(4), "chat.assets", "png"))
            nvim.until(lambda: nvim.lines() == ["💬:", "", picture], "the link")
        else:
            nvim.until(lambda: "the clipboard contains no picture" in nvim.messages(), "the reason")


def test_gf_on_a_link_opens_the_file(nvim: Child, home: Path) -> None:
    whole = beside(home / "goes.md", b"all of it\n", "txt")
    nvim.edit("goes.md", f"💬: q\n\n🤖:\n\n🛠️: [f][c] {link(whole)}\n\n`all…`")
    nvim.lua("vim.fn.search('goes.assets')")
    nvim.keys("gf")
    nvim.until(lambda: nvim.lines() == ["all of it"], "the file")
