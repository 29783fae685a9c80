"""A reply that breaks off is replaced in the buffer, under the cursor that follows it."""

from __future__ import annotations

from pathlib import Path

from tests.faulty_server import BEGUN, SAYS, Part, Response
from tests.nvim.test_thinking import BOUND_S, MARKER, editor, serving

QUESTION = f"{MARKER} the capital of France?"
ANSWER = "🤖:[Claude]\n\n{}\n\n💬: "
NOTICE = "🔒: [Interrupted: anthropic broke off the connection]"


def broken(*pieces: str) -> Response:
    parts: list[Part] = [*SAYS["anthropic"](*pieces)[: BEGUN["anthropic"] - 1 + len(pieces)], "cut"]
    return Response(parts)


def test_one_undo_removes_the_new_reply_and_the_old_one(tmp_path: Path) -> None:
    whole = Response(SAYS["anthropic"]("Paris", " is it."))
    halves = broken("A city\n\n", "on the Seine,\n", "half"), broken("Short")
    with (
        serving(halves[0], whole, *halves) as server,
        editor(tmp_path, "Claude", server.url) as nvim,
    ):
        nvim.edit("elsewhere/chat.md", f"{QUESTION}\n")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        for requests, text in (
            (2, "Paris is it."),
            (4, f"A city\n\non the Seine,\nhalf\n\n{NOTICE}"),
        ):
            nvim.keys("<C-g><C-g>")
            nvim.until_text(f"{text}\n\n💬:", BOUND_S)
            nvim.until_idle(BOUND_S)
            assert nvim.text() == f"{QUESTION}\n\n{ANSWER.format(text)}"
            assert nvim.cursor[0] == len(nvim.lines())
            assert "went wrong" not in nvim.messages()
            assert len(server.requests) == requests
            nvim.keys("u")
            assert nvim.text() == QUESTION
