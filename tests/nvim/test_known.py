"""Lua's constants, which are known before the host runs, equal Python's."""

from __future__ import annotations

import pytest

from parley.chat.grammar import MARKERS, SUMMARY
from parley.chat.references import LIVE
from parley.chat.transcript import RUNNERS
from parley.paths import chats_folder, config_path
from parley.settings.values import Settings
from parley.tools.known_servers import KNOWN_SERVERS
from tests.nvim.harness import Child


def test_luas_markers_match_the_grammar(plain: Child) -> None:
    markers = (*MARKERS.items(), ("summary", SUMMARY))
    spelled = {kind: marker.partition(":")[0] for kind, marker in markers}
    assert plain.lua("return require('parley.known').markers") == spelled


@pytest.mark.parametrize("folder", ["", "/somewhere"])
def test_luas_settings_file_matches_the_hosts(plain: Child, folder: str) -> None:
    before = plain.lua("return vim.env.XDG_CONFIG_HOME")
    plain.lua("vim.env.XDG_CONFIG_HOME = ...", folder)
    environ = {"XDG_CONFIG_HOME": folder, "HOME": plain.lua("return vim.env.HOME")}
    assert plain.lua("return require('parley.known').config()") == str(config_path(environ))
    plain.lua("vim.env.XDG_CONFIG_HOME = ...", before)


@pytest.mark.parametrize("folder", ["", "/somewhere"])
def test_luas_chat_folder_matches_the_shells(plain: Child, folder: str) -> None:
    before = plain.lua("return vim.env.XDG_DATA_HOME")
    plain.lua("vim.env.XDG_DATA_HOME = ...", folder)
    environ = {"XDG_DATA_HOME": folder, "HOME": plain.lua("return vim.env.HOME")}
    assert plain.lua("return require('parley.known').chats()") == str(chats_folder(environ))
    plain.lua("vim.env.XDG_DATA_HOME = ...", before)


def test_luas_words_for_those_who_ran_a_call_match_the_transcripts(plain: Child) -> None:
    assert plain.lua("return require('parley.known').runners") == list(RUNNERS)


def test_luas_names_that_are_not_files_match_the_references(plain: Child) -> None:
    assert plain.lua("return require('parley.known').live") == list(LIVE)


def test_luas_known_servers_match_the_hosts(plain: Child) -> None:
    assert plain.lua("return require('parley.known').servers") == list(KNOWN_SERVERS)


def test_luas_defaults_match_the_settings(plain: Child) -> None:
    assert plain.lua("return require('parley.known').start_insert") is Settings().start_insert


@pytest.mark.parametrize(
    ("line", "is_question"),
    [("💬: x", True), ("💬\ufe0f: x", True), ("💬 x", False), (" 💬: x", False), ("🤖: x", False)],
)
def test_a_marker_may_have_a_variation_selector(plain: Child, line: str, is_question: bool) -> None:
    assert plain.lua("return require('parley.known').is(..., 'question')", line) is is_question
