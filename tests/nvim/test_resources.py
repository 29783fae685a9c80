"""Resources of a server in a real Neovim: on the page of servers, and read by the model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import Child, child
from tests.nvim.test_servers import LONG_S, setup, tools

SERVER = str(Path(__file__).parents[1] / "mcp" / "resource_server.py")


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim with a server that has resources."""
    init = setup({"docs": {"command": sys.executable, "args": [SERVER]}})
    with child(tmp_path_factory.mktemp("resources"), init=init) as nvim:
        yield nvim


def test_the_page_of_servers_shows_what_they_list(neovim: Child) -> None:
    tools(neovim, "docs: ready")
    text = neovim.until_text("1 template: page://{name}/{part}", LONG_S)
    assert "6 resources: note://tea\n- note://tea  Of tea (text/markdown): What is said of tea.\n" in text
    neovim.until_screen("6 resources: note://tea")
    assert "What is said of tea" not in neovim.screen()
    neovim.command("/6 resources")
    neovim.keys("<CR>")
    neovim.until_screen("- note://tea  Of tea (text/markdown): What is said of tea.")
    neovim.keys("q")
