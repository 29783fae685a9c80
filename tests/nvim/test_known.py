"""Lua's constants, known before the host runs, are Python's."""

from __future__ import annotations

import pytest

from parley.chat.grammar import MARKERS, SUMMARY
from parley.chat.references import LIVE
from parley.paths import chats_folder, config_path
from parley.settings.values import Settings
from parley.tools.known_servers import KNOWN_SERVERS
from tests.nvim.harness import Child


def test_its_markers_are_those_of_the_grammar(plain: Child) -> None:
    markers = (*MARKERS.items(), ("summary", SUMMARY))
    spelled = {kind: marker.partition(":")[0] for kind, marker in markers}
    assert plain.lua("return require('parley.known').markers") == spelled


@pytest.mark.parametrize("folder", ["", "/somewhere"])
def test_its_file_of_settings_is_that_of_the_host(plain: Child, folder: str) -> None:
    before = plain.lua("return vim.env.XDG_CONFIG_HOME")
    plain.lua("vim.env.XDG_CONFIG_HOME = ...", folder)
    environ = {"XDG_CONFIG_HOME": folder, "HOME": plain.lua("return vim.env.HOME")}
    assert plain.lua("return require('parley.known').config()") == str(config_path(environ))
    plain.lua("vim.env.XDG_CONFIG_HOME = ...", before)


@pytest.mark.parametrize("folder", ["", "/somewhere"])
def test_its_folder_of_chats_is_that_of_the_shell(plain: Child, folder: str) -> None:
    before = plain.lua("return vim.env.XDG_DATA_HOME")
    plain.lua("vim.env.XDG_DATA_HOME = ...", folder)
    environ = {"XDG_DATA_HOME": folder, "HOME": plain.lua("return vim.env.HOME")}
    assert plain.lua("return require('parley.known').chats()") == str(chats_folder(environ))
    plain.lua("vim.env.XDG_DATA_HOME = ...", before)


def test_its_names_of_what_is_no_file_are_those_of_the_references(plain: Child) -> None:
    assert plain.lua("return require('parley.known').live") == list(LIVE)


def test_the_known_servers_are_those_of_the_host(plain: Child) -> None:
    assert plain.lua("return require('parley.known').servers") == list(KNOWN_SERVERS)


def test_its_defaults_are_those_of_the_settings(plain: Child) -> None:
    assert plain.lua("return require('parley.known').start_insert") is Settings().start_insert


@pytest.mark.parametrize(
    ("line", "is_question"),
    [("💬: x", True), ("💬\ufe0f: x", True), ("💬 x", False), (" 💬: x", False), ("🤖: x", False)],
)
def test_a_marker_may_have_a_variation_selector(plain: Child, line: str, is_question: bool) -> None:
    assert plain.lua("return require('parley.known').is(..., 'question')", line) is is_question
