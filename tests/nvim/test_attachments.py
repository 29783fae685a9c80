"""Pictures beside a chat in a real Neovim: asked about, shown in a request, exported."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from tests.nvim.harness import Child
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
