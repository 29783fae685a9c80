"""Plays the sessions of the moving pictures, shot by shot; `screens.py` draws them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from parley.nvim.demo import BUG_QUESTION
from tests.nvim.harness import Child
from tests.nvim.picture import Shot, frame
from tests.workspace.trees import work_tree

STOCKS = "can you find the latest stock price of google and microsoft?"
CART = """def total(items):
    \"\"\"The price of all items.\"\"\"
    return sum(price for price, count in items)
"""
CART_TEST = """import unittest

from cart import total


class CartTest(unittest.TestCase):
    def test_each_piece_has_its_price(self):
        self.assertEqual(total([(5, 2), (3, 1)]), 13)
"""
_FASTEST_S, _MOST = 0.12, 14


def shot(neovim: Child, keys: str, caption: str, seconds: float) -> Shot:
    """The present screen."""
    neovim.screen()
    return Shot(frame(neovim), keys, caption, seconds)


def typed(neovim: Child, text: str, keys: str, caption: str) -> Iterator[Shot]:
    """Shots while the user types."""
    for start in range(0, len(text), 5):
        neovim.keys(text[start : start + 5].replace("<", "<lt>"))
        neovim.until_screen(text[: start + 5].split("\n")[-1][-20:].rstrip())
        yield shot(neovim, keys, caption, _FASTEST_S)


def streamed(neovim: Child, end: str, caption: str) -> Iterator[Shot]:
    """Shots while text arrives, until the screen shows the end; each differs from the last one."""
    before, shots = neovim.screen(), 0
    until = time.monotonic() + 30
    while end not in before:
        assert time.monotonic() < until, f"{end!r} did not appear:\n{neovim.report()}"
        neovim.lua("vim.wait(80)")
        now = neovim.screen()
        if now != before and shots < _MOST:
            yield shot(neovim, "", caption, 2 * _FASTEST_S)
            shots += 1
        before = now


def opened(neovim: Child, topic: str) -> None:
    """A new chat, with the cursor in its question."""
    neovim.edit("chat.md", f"---\ntopic: {topic}\n---\n\n💬: ")
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.keys("G$a")
    neovim.until(lambda: neovim.nvim.api.get_mode()["mode"] == "i", "Insert mode")


def asking(neovim: Child) -> Iterator[Shot]:
    """A question, two calls that wait, and the answer."""
    opened(neovim, "stock prices")
    ask = "A chat is a Markdown file. Write a question"
    yield shot(neovim, "", ask, 1)
    yield from typed(neovim, STOCKS, "", ask)
    yield shot(neovim, "<C-g><C-g>", "asks the model", 1.2)
    neovim.keys("<Esc><C-g><C-g>")
    yield from streamed(neovim, "Please choose", "The answer arrives in the file")
    neovim.until_waiting()
    yield shot(neovim, "", "Two tool calls wait. Nothing runs without your yes", 4.5)
    yield shot(neovim, "yA", "approves both, and remembers the tool in this chat", 1.6)
    neovim.keys("yA")
    yield from streamed(neovim, "something else?", "The calls run, and the answer continues")
    neovim.until(lambda: neovim.lines()[-1] == "💬: ", "the next question")
    neovim.until_idle()
    yield shot(neovim, "", "The file has it all: question, calls, results, answer", 4)


def editing(neovim: Child) -> Iterator[Shot]:
    """A proposed edit as a diff, the changed file, and the way back."""
    files = {"cart.py": CART, "test_cart.py": CART_TEST, ".gitignore": "__pycache__/\n"}
    root = work_tree(neovim.home / "shop", files)
    neovim.command(f"cd {root} | edit cart.py | belowright 18split")
    opened(neovim, "the cart")
    yield shot(neovim, "", "A file above, a chat below", 1)
    yield from typed(neovim, BUG_QUESTION, "", "A file above, a chat below")
    yield shot(neovim, "<C-g><C-g>", "asks the model", 1.2)
    neovim.keys("<Esc><C-g><C-g>")
    yield from streamed(
        neovim, "Please choose", "The model searches the project, which a rule allows"
    )
    neovim.until_waiting()
    yield shot(neovim, "", "It proposes an edit, which you see as a diff", 4.5)
    yield shot(neovim, "ya", "approves this edit", 1.2)
    neovim.keys("ya")
    yield from streamed(neovim, "run_command(", "Parley changes the file")
    neovim.until_waiting()
    yield shot(neovim, "", "The file above has changed. Now the tests wait for a yes", 3)
    yield shot(neovim, "ya", "runs the tests, in a sandbox", 1.2)
    neovim.keys("ya")
    yield from streamed(neovim, "the tests pass", "The tests run")
    neovim.until(lambda: neovim.lines()[-1] == "💬: ", "the next question")
    neovim.until_idle()
    yield shot(neovim, "", "Done", 2.5)
    yield shot(neovim, ":ParleyRevert", "takes the edit back, even weeks later", 1.8)
    neovim.command("ParleyRevert")
    neovim.until_screen("sum(price for price")
    yield shot(neovim, "", "The file above is as before", 3.5)
