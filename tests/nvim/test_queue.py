"""Questions below a running answer are queued: on the screen, and in the requests to the provider."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from parley.nvim.editor import Editor
from parley.nvim.mirror import BufferText, Mirror
from parley.nvim.queue import Place, Queue
from tests.nvim.hanging_model import HangingModel, hanging_model
from tests.nvim.harness import Child, child

LONG = "write 300 words"
STOCKS = "find the latest stock price of google"
PROVIDER = """require('parley').setup({
  safety = { rate_limit_per_minute = 100000 },
  mcp = { mock = true },
  providers = { ['local'] = { kind = 'openai', base_url = '%s/v1', api = 'chat' } },
  agents = { { name = 'Slow', provider = 'local', model = '%s' } },
  agent = 'Slow',
  mcp = { mock = true },
})"""
_number = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[HangingModel]:
    with hanging_model() as model:
        yield model


@pytest.fixture
def model(server: HangingModel) -> HangingModel:
    """A model that answers only after the test says `go`."""
    server.go.clear()
    server.asked.clear()
    return server


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory, server: HangingModel) -> Iterator[Child]:
    init = PROVIDER % (server.url, "held")
    with child(tmp_path_factory.mktemp("queue"), init=init, width=80, height=24) as nvim:
        yield nvim


@pytest.fixture
def nvim(neovim: Child, model: HangingModel) -> Iterator[Child]:
    neovim.clear()
    yield neovim
    assert not neovim.blocked()


def begin(nvim: Child, model: HangingModel, question: str = LONG) -> Path:
    """Ask, and return when the model has received the request."""
    path = nvim.edit(f"queue-{next(_number)}.md", f"💬: {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys("<C-g><C-g>")
    nvim.until(lambda: model.asked and "🤖:" in nvim.text(), "the question")
    return path


def queue(nvim: Child, question: str) -> None:
    """Type a question at the end, and press the key there, still in Insert mode."""
    nvim.keys(f"Go<CR>💬: {question}<C-g><C-g>")
    nvim.until_screen(f"queued 💬: {question[:8]}")


def is_seen(nvim: Child) -> bool:
    return "queued 💬:" in nvim.screen()


def questions(nvim: Child) -> list[str]:
    """The text of each line that starts a question or its answer."""
    return [line for line in nvim.lines() if line.startswith(("💬:", "🤖:"))]


def test_questions_below_a_running_answer_are_marked_as_queued_and_asked_in_order(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model)
    queue(nvim, "say: three")
    nvim.keys("kkO<CR>💬: say: two<CR><Esc>k<C-g><C-g>")
    nvim.until_screen("queued 💬: say: two")
    assert "queued 💬: say: three" in nvim.screen()
    assert "Parley will ask it when the answer above is complete" in nvim.messages()
    model.go.set()
    nvim.until(lambda: len(questions(nvim)) == 7, "all answers")
    nvim.until_idle()
    said = ["💬: say: two", "🤖:[Slow]", "💬: say: three", "🤖:[Slow]", "💬: "]
    assert questions(nvim) == [f"💬: {LONG}", "🤖:[Slow]", *said]
    assert nvim.lines()[-3] == "three"
    assert len(nvim.text().split()) > 300
    assert not is_seen(nvim)


def test_the_key_on_the_running_question_still_says_that_a_turn_runs(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model)
    queue(nvim, "say: two")
    nvim.keys("gg<C-g><C-g>")
    nvim.until(lambda: "a turn is running in this chat" in nvim.messages(), "the message")
    assert "queued 💬: say: two" in nvim.screen()
    nvim.keys("<C-g>x")
    nvim.until_idle()


def test_the_key_on_a_queued_question_removes_it_from_the_queue(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model)
    queue(nvim, "say: two")
    queue(nvim, "say: three")
    nvim.keys("<C-g><C-g>")
    nvim.until(lambda: "removed from the queue" in nvim.messages(), "the message")
    nvim.until(lambda: "queued 💬: say: three" not in nvim.screen(), "no mark")
    model.go.set()
    nvim.until(lambda: len(questions(nvim)) == 5, "the second answer")
    nvim.until_idle()
    assert questions(nvim)[2:] == ["💬: say: two", "🤖:[Slow]", "💬: say: three"]


def test_a_stop_leaves_queued_questions_unasked_and_says_so(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model)
    queue(nvim, "say: two")
    queue(nvim, "say: three")
    nvim.keys("<C-g>x")
    nvim.until(lambda: "2 queued questions were not asked" in nvim.messages(), "the message")
    nvim.until_idle()
    assert not is_seen(nvim)
    assert questions(nvim)[1:] == ["🤖:[Slow]", "💬: say: two", "💬: say: three"]
    nvim.keys("<C-g><C-g>")
    model.go.set()
    nvim.until(lambda: len(questions(nvim)) == 6, "the answer to the last")
    nvim.until_idle()
    assert questions(nvim)[2:] == ["💬: say: two", "💬: say: three", "🤖:[Slow]", "💬: "]


def test_a_queued_questions_text_can_be_edited_and_a_deleted_one_is_not_asked(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model)
    queue(nvim, "say: two")
    queue(nvim, "say: three")
    nvim.keys("dd")
    nvim.until(lambda: "say: three" not in nvim.screen(), "the deletion")
    nvim.keys("kA and a half<Esc>")
    nvim.until_screen("queued 💬: say: two and a half")
    nvim.keys("gg")
    model.go.set()
    nvim.until(lambda: len(questions(nvim)) == 5, "the answer")
    nvim.until_idle()
    assert "two and a half" in nvim.lines()[nvim.lines().index("💬: say: two and a half") + 4]
    assert nvim.cursor[0] == 1  # the cursor was not in the question


def test_undo_removes_a_queued_question(nvim: Child, model: HangingModel) -> None:
    begin(nvim, model)
    nvim.keys("Go<CR>💬: say: two<Esc>")
    nvim.keys("<C-g><C-g>")
    nvim.until_screen("queued 💬: say: two")
    nvim.keys(":silent! g/say: two/d<CR>")
    nvim.until(lambda: not is_seen(nvim), "no mark")
    nvim.keys("u")
    nvim.until_screen("queued 💬: say: two")
    nvim.keys("<C-r>")
    nvim.until(lambda: not is_seen(nvim), "no mark")
    model.go.set()
    nvim.until(lambda: len(questions(nvim)) == 3, "the answer")
    nvim.until_idle()
    assert questions(nvim)[:2] == [f"💬: {LONG}", "🤖:[Slow]"]
    assert "say: two" not in nvim.text()


def test_a_queued_question_stays_queued_while_calls_wait_and_follows_their_answer(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model, STOCKS)
    queue(nvim, "say: two")
    model.go.set()
    nvim.until_waiting()
    nvim.until_screen("queued 💬: say: two")
    assert questions(nvim) == [f"💬: {STOCKS}", "🤖:[Slow]", "💬: say: two"]
    nvim.command("ParleyApprove ya")
    nvim.until(lambda: len(questions(nvim)) == 5, "the answers")
    nvim.until_idle()
    assert questions(nvim)[2:] == ["💬: say: two", "🤖:[Slow]", "💬: "]


def test_after_neovim_was_killed_nothing_is_asked_automatically(
    tmp_path: Path, model: HangingModel
) -> None:
    (tmp_path / "slow").mkdir()
    with child(tmp_path / "slow", init=PROVIDER % (model.url, "hanging")) as nvim:
        path = nvim.edit("killed.md", "💬: one\n")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        nvim.keys("<C-g><C-g>")
        nvim.until(lambda: model.asked, "the request")
        queue(nvim, "two")
        nvim.command("write")
        os.kill(nvim.pid, signal.SIGKILL)
    assert "💬: two\n" in path.read_text(encoding="utf-8")
    assert "queued" not in path.read_text(encoding="utf-8")
    with child(tmp_path / "slow", init=PROVIDER % (model.url, "hanging")) as nvim:
        nvim.command(f"edit {path}")
        nvim.until(lambda: nvim.variable("parley_agent") == "Slow", "a look at the chat")
        assert not is_seen(nvim)
        nvim.keys("G<C-g><C-g>")
        nvim.until(lambda: len(model.asked) > 1, "the request of the key")
        assert len(model.asked) == 2
        assert nvim.messages().count("queued") == 0
        nvim.keys("<C-g>x")
        nvim.until_idle()


def test_an_error_leaves_a_queued_question_unasked(tmp_path: Path, model: HangingModel) -> None:
    with child(tmp_path, init=PROVIDER % (model.url, "refusing")) as nvim:
        nvim.edit("error.md", "💬: one\n")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        nvim.keys("<C-g><C-g>")
        nvim.until(lambda: model.asked, "the request")
        queue(nvim, "two")
        model.go.set()
        nvim.until(lambda: "1 queued question was not asked" in nvim.messages(), "the message")
        nvim.until_idle()
        assert not is_seen(nvim)
        assert questions(nvim)[2:] == ["💬: two"]
        assert len(model.asked) == 1


def test_the_mark_is_visible_on_a_question_that_fills_the_window_and_without_wrapping(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model)
    queue(nvim, f"say: and on {'x' * 70}")
    nvim.command("setlocal nowrap")
    nvim.keys("A and a long end<Esc>0")
    nvim.until_screen("queued 💬: say: and on xxx")
    nvim.keys("<C-g>x")
    nvim.until_idle()


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_reloaded_chat_has_no_queue(nvim: Child, model: HangingModel, is_waiting: bool) -> None:
    path = begin(nvim, model, STOCKS)
    queue(nvim, "say: two")
    if is_waiting:
        model.go.set()
        nvim.until_waiting()
    path.write_text("before\n\n" + nvim.text() + "\n", encoding="utf-8")
    nvim.command("edit!")
    nvim.until(lambda: not is_seen(nvim), "no mark")
    nvim.until(lambda: "1 queued question was not asked" in nvim.messages(), "the message")
    nvim.until_idle()
    assert questions(nvim)[-1] == "💬: say: two"
    nvim.command("normal! G")
    nvim.keys("<C-g><C-g>")
    nvim.until(lambda: "🤖:[Slow]" in nvim.text().partition("💬: say: two")[2], "an answer")


def test_a_closed_chat_asks_nothing_more(nvim: Child, model: HangingModel) -> None:
    begin(nvim, model)
    queue(nvim, "say: two")
    nvim.command("bwipeout!")
    nvim.until(lambda: "the buffer was closed" in nvim.messages(), "the message")
    model.go.set()
    begin(nvim, model, "say: another")
    nvim.until(lambda: nvim.lines()[-3:] == ["another", "", "💬: "], "the answer")
    assert len(model.asked) == 2


def test_the_window_with_its_cursor_in_a_queued_question_follows_the_answer(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model, "write 60 words")
    nvim.keys("Go<CR>💬: write 900 words<CR>of two lines<C-g><C-g>")
    nvim.until_screen("queued 💬: write 900 words")
    nvim.keys("<Esc><C-w>s")
    nvim.command("enew")
    model.go.set()
    lower = nvim.lua("return vim.fn.win_getid(2)")
    nvim.until(
        lambda: nvim.nvim.eval(f"getbufline(winbufnr({lower}), '$')") == ["💬: "], "the answers"
    )
    nvim.until(
        lambda: "changed by" in nvim.screen() and "\n💬:\n" in nvim.screen(), "the end of them"
    )


def test_a_queued_question_is_visible_in_both_windows_on_its_chat(
    nvim: Child, model: HangingModel
) -> None:
    begin(nvim, model)
    nvim.keys("<C-w>s")
    queue(nvim, "say: two")
    nvim.until(lambda: nvim.screen().count("queued 💬: say: two") == 2, "two marks")
    nvim.keys("<Esc><C-w>jG<C-g><C-g>")
    nvim.until(lambda: not is_seen(nvim), "no mark")
    nvim.keys("<C-g>x")
    nvim.until_idle()


async def test_an_answer_that_grows_before_the_reply_is_read_hides_no_question() -> None:
    lines = ["💬: one", "", "🤖:[Slow]", "", "💬: two"]
    mirror = Mirror(lambda: 0.0)
    mirror.put(9, BufferText.of(lines))

    class Growing:
        """An editor whose answer has two more lines when the caller of a request resumes."""

        async def ask(
            self, *_: object, on_reply: Callable[[dict[str, Any]], None]
        ) -> dict[str, Any]:
            reply = {
                "change": {"tick": 9, "since": 9, "count": 5},
                "row": 4,
                "above": 2,
                "marks": [],
            }
            on_reply(reply)
            mirror.put(10, BufferText.of([*lines[:4], "", "", lines[4]]))
            return reply

    queue = Queue(cast(Editor, Growing()), mirror, 1)
    assert await queue.place(1, 2) == Place(0, (), is_below=True)
