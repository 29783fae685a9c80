"""Third-party servers in a real Neovim: listed, approved and called, with the result in the chat."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from parley.media import kind_of
from tests.e2e.test_guest_servers import LOCAL, NPM, PYPI, Guest
from tests.mcp.oauth_server import browser
from tests.nvim.harness import Child, child
from tests.nvim.test_details import floating
from tests.nvim.test_servers_page import prompted, setup, tools
from tests.nvim.test_turn import MARKER, ask, complete

ROOT = Path(__file__).parents[2]
BOUND_S = 50.0
LEARN = {"intent": "what there is", "learn": True}
CLUSTER = """
{"apiVersion": "v1", "kind": "Config", "current-context": "quiet",
 "clusters": [{"name": "quiet", "cluster": {"server": "http://127.0.0.1:9"}}],
 "contexts": [{"name": "quiet", "context": {"cluster": "quiet", "user": "nobody"}}],
 "users": [{"name": "nobody", "user": {}}]}
"""
AZURE = ("server", "start", "--namespace", "get_azure_bestpractices")
QUIET = {"HOME": "~", "AZURE_MCP_COLLECT_TELEMETRY": "false"}
LARGE = [
    Guest("mise", "list_commands", {}, '"bin": "mise"', ("mcp",), {"HOME": "~"}, program="mise"),
    Guest(
        "kubernetes",
        "configuration_view",
        {},
        "http://127.0.0.1:9",
        ("--kubeconfig", "~/cluster.json"),
        program="kubernetes-mcp-server",
    ),
    Guest(
        "desktop",
        "read_file",
        {"path": "~/note.txt"},
        "what the note says",
        env={"HOME": "~"},
        program="desktop-commander",
    ),
    Guest(
        "azure",
        "get_azure_bestpractices",
        LEARN,
        "get_azure_bestpractices_get",
        AZURE,
        QUIET,
        program="azmcp",
    ),
]
"""Servers that only this module tries: Rust, Go, TypeScript, C#. Each has one tool, because OpenAI
takes 128 in all.
"""
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
"""A browser's program; "" if there is none."""
DRIVEN = (
    "--headless",
    "--isolated",
    "--no-sandbox",
    *(("--executable-path", CHROMIUM) if CHROMIUM else ()),
)
BROWSER = Guest("playwright", "", {}, "", DRIVEN, {"HOME": "~"}, program="playwright-mcp")
needs_browser = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium is installed (apt install chromium)"
)
_ON_THE_WEB = ("browser_navigate", "browser_snapshot", "browser_evaluate")
NAMESAKES = ("everything", "nushell", "nushell-next", "mise", "desktop")
"""Servers with a tool that another server also has, which is named after both."""
FASTMCP = ("stateful", "stateless", "json", "events", "oauth")

pytestmark = pytest.mark.guests


def table(guest: Guest, folder: Path) -> dict[str, Any]:
    settings = guest.settings(folder)
    return {
        "command": settings.command,
        "args": list(settings.args),
        "env": dict(settings.env),
        "start_timeout_s": BOUND_S,
    }


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def served() -> Iterator[str]:
    """A server's address for Streamable HTTP."""
    port = free_port()
    command, env = (
        [str(NPM / "mcp-server-everything"), "streamableHttp"],
        {**os.environ, "PORT": str(port)},
    )
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert any(b"listening on port" in line for line in process.stderr)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


@contextmanager
def driven(folder: Path) -> Iterator[str]:
    """The address of a Streamable HTTP server that drives a browser, with its files in a folder."""
    port = free_port()
    command = [str(NPM / "playwright-mcp"), *DRIVEN, "--port", str(port)]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert any(b"Listening on" in line for line in process.stderr)
        yield f"http://localhost:{port}/mcp"  # the server accepts no other name for this host
        process.terminate()


class Page(BaseHTTPRequestHandler):
    """A page with the number of lines that its path states."""

    def do_GET(self) -> None:
        lines = int(self.path[1:]) if self.path[1:].isdigit() else 0
        body = "".join(f"<p>line {number} of many</p>" for number in range(lines))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<title>Prices</title><h1>Prices</h1>{body}".encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of pages of every length."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def fastmcp() -> Iterator[dict[str, str]]:
    """The addresses of FastMCP servers, by the way each is created."""
    command = [PYPI / "python", ROOT / "tests" / "e2e" / "fastmcp_servers.py"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in FASTMCP]
        yield {way: url for way, url in lines}  # noqa: C416 - mypy sees lists in a dict() of them
        process.kill()


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with all servers at once, and a browser that follows redirects."""
    home = tmp_path_factory.mktemp("guests")
    (home / "note.txt").write_text("what the note says\n", encoding="utf-8")
    (home / "cluster.json").write_text(CLUSTER, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", home], check=True)
    (home / "web").mkdir()
    with served() as url, fastmcp() as urls, driven(home / "web") as web:
        local = {guest.server: table(guest, home) for guest in (*LOCAL, *LARGE, BROWSER)}
        for guest in LARGE:
            local[guest.server]["enabled_tools"] = [guest.tool]
        remote: dict[str, Any] = {way: {"url": url} for way, url in {"net": url, **urls}.items()}
        remote["web"] = {"url": web, "enabled_tools": list(_ON_THE_WEB)}
        init = setup({**local, **remote}, agent="Demo-OpenAI", tools={"budget_tokens": 1_000_000})
        with child(home, init=init, env=browser(tmp_path_factory.mktemp("desktop"))) as nvim:
            nvim.command(f"cd {home}")
            tools(nvim, "net: ready")
            for name in (*local, *remote):
                nvim.until_text(
                    f"{name}: failed, signed out" if name == "oauth" else f"{name}: ready", BOUND_S
                )
            yield nvim


@pytest.fixture
def desk(neovim: Child) -> Child:
    neovim.clear()
    return neovim


def result_of(nvim: Child, call: str) -> str:
    """The chat after an approved call."""
    ask(nvim, call, f"{call.split()[1]}.md")
    nvim.until_waiting(BOUND_S)
    nvim.until_idle(BOUND_S)
    nvim.keys("K")
    nvim.until(lambda: floating(nvim), "all of the call")
    nvim.keys("ya")
    nvim.until_text("\U0001f6e0\ufe0f:", BOUND_S)
    complete(nvim)
    return nvim.text()


@pytest.mark.parametrize("guest", [*LOCAL, *LARGE], ids=lambda guest: guest.server)
def test_a_server_over_stdio_is_called(desk: Child, guest: Guest) -> None:
    arguments = json.dumps(guest.arguments).replace("~", str(desk.home))
    tool = f"{guest.server}__{guest.tool}" if guest.server in NAMESAKES else guest.tool
    assert guest.result in result_of(desk, f"call {tool} {arguments}")


def test_a_browsers_tools_are_listed(desk: Child) -> None:
    tools(desk, "playwright: ready")
    assert "browser_take_screenshot" in desk.text()


@needs_browser
def test_a_browser_takes_a_picture_of_a_page(desk: Child, site: str) -> None:
    assert "Page Title: Prices" in result_of(
        desk, f'call playwright__browser_navigate {{"url": "{site}/3"}}'
    )
    result_of(desk, "call browser_take_screenshot {}")
    (picture,) = (desk.home / "browser_take_screenshot.assets").glob("*.png")
    assert kind_of(picture.read_bytes()) == "png"
    assert f"(browser_take_screenshot.assets/{picture.name})" in desk.text()


@needs_browser
def test_a_megabyte_page_arrives_over_http_and_the_browser_stays(desk: Child, site: str) -> None:
    result_of(desk, f'call web__browser_navigate {{"url": "{site}/30000"}}')
    assert "line 17 of many" in result_of(desk, "call web__browser_snapshot {}")
    (whole,) = (desk.home / "web__browser_snapshot.assets").glob("*.txt")
    assert whole.stat().st_size > 1 << 20
    assert "line 29999 of many" in whole.read_text(encoding="utf-8")
    call = 'call web__browser_evaluate {"function": "() => document.title"}'
    assert '"Prices"' in result_of(desk, call)


@pytest.mark.parametrize("way", FASTMCP)
def test_a_fastmcp_server_is_called(desk: Child, way: str) -> None:
    if way == "oauth":
        desk.command("ParleyLogin oauth")
        desk.until(lambda: "signed in to oauth" in desk.messages(), "the login", BOUND_S)
        tools(desk, "oauth: ready, signed in")
    assert '"parley":6' in result_of(desk, f'call {way}__sizes {{"words": ["parley"]}}')


def test_a_server_over_http_is_called(desk: Child) -> None:
    assert "Echo: over the net" in result_of(desk, 'call net__echo {"message": "over the net"}')


def next_request(nvim: Child, agent: str) -> str:
    """The request for another question, as the page shows it."""
    nvim.command(f"ParleyAgent {agent}")
    nvim.until(lambda: nvim.variable("parley_agent") == agent, "the agent")
    nvim.command("ParleyRequest")
    nvim.until(lambda: "request" in nvim.name and '"messages"' in nvim.text(), "the page")
    page = nvim.text()
    nvim.command("bwipeout!")
    return page


def test_the_next_request_has_a_picture_for_a_model_that_sees_and_words_for_others(
    desk: Child,
) -> None:
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
        lambda: "demo-text cannot see pictures, so Parley sends text instead" in desk.messages(),
        "the reason",
    )
    complete(desk)
    desk.keys("GAand now?<Esc>")
    in_words = next_request(desk, "Demo-Text")
    assert "[image image/png, " in in_words
    assert "data:image" not in in_words
    desk.command("ParleyAgent Demo-OpenAI")


def test_a_resource_is_included_in_the_question_once(desk: Child) -> None:
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


def test_the_model_reads_a_resource_that_a_result_names(desk: Child) -> None:
    tools(desk, "2 templates: demo://resource/dynamic/text/{resourceId}")
    desk.keys("q")
    text = result_of(desk, 'call everything__get-resource-links {"count": 2}')
    assert "[resource demo://resource/dynamic/text/2, Text Resource 2]" in text
    desk.keys(
        'GAcall everything__read_resource {"uri": "demo://resource/dynamic/text/2"}<Esc><C-g><C-g>'
    )
    desk.until_waiting(BOUND_S)
    desk.until_idle(BOUND_S)
    assert (
        'everything__read_resource(uri: "demo://resource/dynamic/text/2") · everything'
        in desk.screen()
    )
    desk.keys("ya")
    desk.until_text("Resource 2: This is a plaintext resource created at ", BOUND_S)
    complete(desk)
    assert "[error]" not in desk.text()


def test_a_prompt_becomes_the_question(desk: Child) -> None:
    desk.edit("prompt.md", f"{MARKER} \n")
    desk.command("ParleyPrompt everything/args-prompt city=Paris")
    assert desk.until_text("Paris", BOUND_S).startswith(f"{MARKER} ")


def test_content_for_the_user_alone_is_in_a_note(desk: Child) -> None:
    arguments = '{"messageType": "success", "includeImage": true}'
    text = result_of(desk, f"call everything__get-annotated-message {arguments}")
    assert "`(the output was shown to the user only)`" in text
    _, _, note = text.partition(
        "for you only, from everything/get-annotated-message; not sent to the model:"
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


def test_a_call_that_must_run_as_a_task_runs(desk: Child) -> None:
    text = result_of(desk, 'call everything__simulate-research-query {"topic":"moles"}')
    assert "# Research Report: moles" in text
    assert "[pending]" not in text
