"""Pictures beside a chat in a real Neovim: asked about, shown in a request, exported."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path

from parley.chat.attachments import attachment_of
from parley.mock_server import PIXEL
from tests.nvim.harness import Child, child
from tests.pictures import beside, png, question

CUT = f"data:image/png;base64,{b64encode(png()).decode()}"[:60]


def ask(nvim: Child, home: Path, name: str) -> Path:
    """A chat with a question about a picture beside it."""
    path = home / name
    picture = beside(path, png())
    nvim.edit(name, question(picture).removesuffix("\n"))
    return path


def test_a_question_about_a_picture_is_answered(nvim: Child, home: Path) -> None:
    ask(nvim, home, "picture.md")
    nvim.command("ParleyRespond")
    nvim.until_text("I am shown image/png.")
    nvim.until_idle()


def test_a_request_is_shown_without_its_bytes(nvim: Child, home: Path) -> None:
    ask(nvim, home, "asked.md")
    nvim.command("ParleyAgent Demo-OpenAI")
    nvim.command("ParleyRequest")
    nvim.until_text(f'"url": "{CUT}… (')
    assert b64encode(png()).decode() not in nvim.text()


def test_a_picture_that_is_gone_is_sent_in_words_and_said_so(nvim: Child, home: Path) -> None:
    ask(nvim, home, "gone.md")
    (home / "gone.assets").rename(home / "lost.assets")
    nvim.command("ParleyRespond")
    nvim.until(lambda: "no such file. It is sent in words" in nvim.messages(), "the reason")
    nvim.until_idle()
    assert "🔒:" not in nvim.text()


def test_a_page_has_the_picture_in_it(nvim: Child, home: Path) -> None:
    path = ask(nvim, home, "page.md")
    nvim.command("ParleyExport")
    page = path.with_suffix(".html")
    nvim.until(page.exists, "the page")
    nvim.until(lambda: "</html>" in page.read_text(encoding="utf-8"), "all of it")
    assert b64encode(png()).decode() in page.read_text(encoding="utf-8")


def test_an_attachment_that_is_gone_is_a_problem_on_its_line(nvim: Child, home: Path) -> None:
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
    command = '{sys.executable}', args = {{ '-m', 'parley.mock_server', '--extra' }}
  }} }} }} }})
"""


def test_a_server_that_returns_pictures_and_five_megabytes(tmp_path: Path) -> None:
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
        nvim.until_text("🔒: [Interrupted: the reply was cut at max_tokens]")
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
