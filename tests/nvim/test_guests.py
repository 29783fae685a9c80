"""Servers that nobody here wrote, from a real Neovim: listed, approved, called, the result in the chat."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from parley.media import kind_of
from tests.e2e.test_guest_servers import GUESTS, LOCAL, NPM, SdkSession
from tests.nvim.harness import Child, child
from tests.nvim.test_details import floating
from tests.nvim.test_servers import prompted, setup, tools
from tests.nvim.test_turn import MARKER, ask, complete

BOUND_S = 50.0

pytestmark = pytest.mark.skipif(
    not (GUESTS / ".stamp").exists(), reason="the servers of others are not installed: make guests"
)


def table(guest: SdkSession, folder: Path) -> dict[str, Any]:
    settings = guest.settings(folder)
    return {"command": settings.command, "args": list(settings.args), "env": dict(settings.env)}


@contextmanager
def served() -> Iterator[str]:
    """The address of a server over Streamable HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command, env = [str(NPM / "mcp-server-everything"), "streamableHttp"], {**os.environ, "PORT": str(port)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert any(b"listening on port" in line for line in process.stderr)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with all of them at once."""
    home = tmp_path_factory.mktemp("guests")
    (home / "note.txt").write_text("what the note says\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", home], check=True)
    with served() as url:
        local = {guest.server: table(guest, home) for guest in LOCAL}
        with child(home, init=setup({**local, "net": {"url": url}}, agent="Demo-OpenAI")) as nvim:
            nvim.command(f"cd {home}")
            tools(nvim, "net: ready")
            for name in local:
                nvim.until_text(f"{name}: ready", BOUND_S)
            yield nvim


@pytest.fixture
def desk(neovim: Child) -> Child:
    neovim.lua("vim.cmd('silent! %bwipeout!') vim.cmd('silent! only!')")
    return neovim


def result_of(nvim: Child, call: str) -> str:
    """The chat after a call that was approved."""
    ask(nvim, call, f"{call.split()[1]}.md")
    nvim.until_waiting(BOUND_S)
    nvim.until_idle(BOUND_S)
    nvim.keys("K")
    nvim.until(lambda: floating(nvim), "all of the call")
    nvim.keys("ya")
    nvim.until_text("\U0001f6e0\ufe0f:", BOUND_S)
    complete(nvim)
    return nvim.text()


@pytest.mark.parametrize("guest", LOCAL, ids=lambda guest: guest.server)
def test_a_server_over_stdio_is_called(desk: Child, guest: SdkSession) -> None:
    arguments = json.dumps(guest.arguments).replace("~", str(desk.home))
    is_one_of_two = guest.server in ("everything", "nushell", "nushell-next")
    tool = f"{guest.server}__{guest.tool}" if is_one_of_two else guest.tool
    assert guest.result in result_of(desk, f"call {tool} {arguments}")


def test_a_server_over_http_is_called(desk: Child) -> None:
    assert "Echo: over the net" in result_of(desk, 'call net__echo {"message": "over the net"}')


def next_request(nvim: Child, agent: str) -> str:
    """The request of another question, as the page shows it."""
    nvim.command(f"ParleyAgent {agent}")
    nvim.until(lambda: nvim.variable("parley_agent") == agent, "the agent")
    nvim.command("ParleyRequest")
    nvim.until(lambda: "request" in nvim.name and '"messages"' in nvim.text(), "the page")
    page = nvim.text()
    nvim.command("bwipeout!")
    return page


def test_the_next_request_has_a_picture_for_a_model_that_sees_and_words_for_another(desk: Child) -> None:
    text = result_of(desk, "call everything__get-tiny-image {}")
    assert "It shows me image/png." in text
    (picture,) = (desk.home / "everything__get-tiny-image.assets").iterdir()
    assert f"(everything__get-tiny-image.assets/{picture.name})" in text
    assert kind_of(picture.read_bytes()) == "png"
    desk.until_screen("image/png")
    desk.keys("GAand now?<Esc>")
    start = f'"url": "data:image/png;base64,{b64encode(picture.read_bytes()).decode()[:30]}'
    assert start in next_request(desk, "Demo-OpenAI")
    desk.command("ParleyAgent Demo-Text")
    desk.command("normal! G$")
    desk.command("ParleyRespond")
    desk.until(
        lambda: "demo-text sees no pictures: it is sent words for them" in desk.messages(), "the reason"
    )
    complete(desk)
    desk.keys("GAand now?<Esc>")
    in_words = next_request(desk, "Demo-Text")
    assert "[image image/png, " in in_words
    assert "data:image" not in in_words
    desk.command("ParleyAgent Demo-OpenAI")


def test_a_resource_is_brought_into_the_question_once(desk: Child) -> None:
    reference = "@@everything:demo://resource/static/document/features.md@@"
    ask(desk, f"hello: see {reference}", "resource.md")
    complete(desk)
    question = desk.text().partition("\n\U0001f916:")[0]
    assert question.startswith(f"{MARKER} hello: see {reference}\n")
    assert question.count("# Everything Server - Features") == 1
    desk.command("1")
    desk.command("ParleyRespond!")
    desk.until_idle(BOUND_S)
    complete(desk)
    assert desk.text().partition("\n\U0001f916:")[0] == question


def test_a_prompt_becomes_the_question(desk: Child) -> None:
    desk.edit("prompt.md", f"{MARKER} \n")
    desk.command("ParleyPrompt everything/args-prompt city=Paris")
    assert desk.until_text("Paris", BOUND_S).startswith(f"{MARKER} ")


def test_what_is_for_the_user_alone_stands_in_a_note(desk: Child) -> None:
    arguments = '{"messageType": "success", "includeImage": true}'
    text = result_of(desk, f"call everything__get-annotated-message {arguments}")
    assert "`(the output was shown to the user only)`" in text
    _, _, note = text.partition(
        "for you alone, from everything/get-annotated-message; the model is not sent it:"
    )
    assert note.startswith("\n\n![image/png ")
    assert "Operation completed successfully" in note
    assert text.count("Operation completed successfully") == 1  # the model does not repeat it


def test_a_form_is_filled_in(desk: Child) -> None:
    ask(desk, "call everything__trigger-elicitation-request {}", "form.md")
    desk.until_waiting(BOUND_S)
    desk.until_idle(BOUND_S)
    desk.keys("ya")
    prompted(desk, "2: Answer")
    desk.keys("1<CR>")
    desk.until_text("declined", BOUND_S)
    complete(desk)
