"""Servers that fail in every way: the page shows each failure, and the chat stays usable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mcp_servers import table
from tests.nvim.harness import Child, child
from tests.nvim.test_details import floating
from tests.nvim.test_servers_page import server, setup, tools
from tests.nvim.test_turn import ask, complete

BOUND_S = 50.0
LONG = "x.y." * 32


def answering(answers: dict[str, Any]) -> dict[str, Any]:
    """A server that answers from a table."""
    settings = table(answers)
    return {"command": settings.command, "args": list(settings.args)}


SERVERS = {
    "gone": {"command": "no-such-program"},
    "unset": {"command": "echo", "args": ["${NO_SUCH_VARIABLE}"]},
    "dies": server("--die"),
    "mute": server("--mute", start_timeout_s=0.2),
    "broken": answering({"tools/list": {"tools": "none"}}),
    "part": answering(
        {"tools/list": {"tools": [{"name": "sound"}, {"name": "odd", "inputSchema": 5}]}}
    ),
    "nobody": {"url": "http://127.0.0.1:9/mcp"},
    "fake": server("--more"),
    "late": server(timeout_s=0.5),
    "many": server("--many"),
    "odd": server("--odd"),
}


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with all faulty servers."""
    home = tmp_path_factory.mktemp("faults")
    loop = {"result_max_bytes": 10_000}
    with child(
        home, init=setup(SERVERS, loop=loop, safety={"rate_limit_per_minute": 10_000})
    ) as nvim:
        nvim.command(f"cd {home}")
        tools(nvim, "fake: ready")
        yield nvim


@pytest.fixture
def desk(neovim: Child) -> Child:
    """The Neovim with only the server page open."""
    neovim.clear()
    return neovim


@pytest.mark.parametrize(
    "shown",
    [
        (
            "gone: failed, 0 tools\n\nError: mcp.servers.gone.command: no-such-program was not "
            "found or is not executable"
        ),
        "variable NO_SUCH_VARIABLE (in ${NO_SUCH_VARIABLE}) is not set",
        (
            "no licence found. If the server needs variables from your environment, set them in "
            "mcp.servers.dies."
        ),
        "Error: MCP server 'mute' was not ready within 0.2 s",
        (
            "## [x] broken: failed, 0 tools\n\nError: MCP server 'broken': it sent an invalid "
            "reply: tools: "
        ),
        (
            "## [x] part: ready, protocol 2025-11-25, 1 tool, ~18 tokens\n\nError: left out: tools "
            "with"
        ),
        "## [x] nobody: failed, 0 tools\n\nError: MCP server 'nobody': ",
        "## [x] many: ready, protocol 2025-06-18, 307 tools",
        f"- [x] {LONG} ~81  To {LONG}.",
        "- [x] strange ~37  To strange.",
    ],
)
def test_a_failing_server_is_explained_on_the_page(desk: Child, shown: str) -> None:
    tools(desk, "fake: ready")
    desk.until_text(shown, BOUND_S)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("fake__die {}", "ended during the call; its last output: about to die"),
        ("late__hang {}", "did not answer within 0.5 s"),
        ("fake__flood {}", "`{}`"),
        ("fake__junk {}", "`{}`"),
        ("spill {}", "`{}`"),
        ('huge {"bytes": 20000000}', "… [truncated: 19990000 bytes omitted]"),
        ("strange {}", "`{}`"),
        ("tool_299 {}", "`{}`"),
        ("odd__echo {}", "`{}`"),
        (f"{LONG.replace('.', '_')[:55]}", "`{}`"),
    ],
)
def test_a_failed_call_leaves_the_chat_usable(desk: Child, call: str, told: str) -> None:
    if call.startswith("x_y_"):
        ask(desk, "call nothing")  # the demo model then lists its tools
        complete(desk)
        call = (
            next(word for word in re.findall(r"[\w-]+", desk.text()) if word.startswith(call))
            + " {}"
        )
    ask(desk, f"call {call}")
    desk.until_waiting(BOUND_S)
    desk.until_idle(BOUND_S)
    if call.startswith("x_y_"):  # a name longer than its drawing
        desk.keys("K")
        desk.until(lambda: floating(desk), "all of the call")
    desk.keys("ya")
    desk.until(lambda: told in desk.text(), f"{told!r} in the text", BOUND_S)
    complete(desk)
    desk.keys("Gasay: still here<Esc><C-g><C-g>")
    desk.until_text("\n\nstill here", BOUND_S)
    complete(desk)


def test_changed_tools_are_available_for_the_next_question(desk: Child) -> None:
    ask(desk, "call fake__grow {}")
    desk.until_waiting(BOUND_S)
    desk.until_idle(BOUND_S)
    desk.keys("ya")
    complete(desk)
    desk.keys("Gacall grown {}<Esc><C-g><C-g>")
    desk.until(lambda: '"name":"grown"' in desk.text(), "the call of the new tool", BOUND_S)
    desk.until_waiting(BOUND_S)


def test_after_a_flood_on_stderr_the_page_shows_its_last_lines(desk: Child) -> None:
    ask(desk, "call many__flood {}")
    desk.until_waiting(BOUND_S)
    desk.until_idle(BOUND_S)
    desk.keys("ya")
    complete(desk)
    tools(desk, "stderr, 200 lines: noise 49999")
