"""The file of a new chat: Lua writes it before the host runs, as Python does for the shell."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from parley.chat.front_matter import read_front_matter
from parley.chat.new import new_text
from parley.chat.reader import parse
from parley.storage.chats import new_chat
from tests.nvim.harness import Child

ALONE = """
require('parley.host').when_ready = function(act) act() end
require('parley.host').notify = function() end
os.date = (function(date)
  return function(format) return date(format, 0) end
end)(os.date)
"""
"""Files are created at once, all of them in the first second of 1970."""
NEW = "require('parley.chat').new(...) return vim.api.nvim_buf_get_name(0)"
TOPICS = [
    *["", "a topic", "Why? How?", " in front", "behind ", "  ", "a,b; (c) / d + e - f"],
    *["it's", 'say "hi"', "'quoted'", '"quoted"', "a\\b", "`code`", "a\tb", "\x01", "\x1b[31m"],
    *["a: b", "a:b", "a:", "a: ", ": a", "# a", "a # b", "a #b", "<<", "=", "...", "---"],
    *["ünï", "é", "日本語", "😀 x", "💬: x", "a\u2028b", "a\u00a0b", "\ufeff"],
    *["yes", "No", "on", "true", "False", "null", "Null", "~", "y", "n"],
    *["1", "-1", "+1", "1.5", ".5", ".inf", "1e3", "0x10", "1_000", "12:30", "2024-01-01", "3rd"],
    *["- a", "-a", "? a", "?", "[a]", "{a}", "*a", "&a", "!a", "%a", "@a", "|", "> a", "a|b"],
]


@pytest.fixture(scope="module", autouse=True)
def alone(hostless: Child) -> None:
    """The Neovim without a host creates files at once."""
    hostless.lua(ALONE)


@pytest.mark.parametrize("topic", TOPICS, ids=ascii)
def test_lua_and_python_write_the_same_chat(plain: Child, topic: str) -> None:
    path = Path(plain.lua(NEW, topic))
    theirs = path.read_text(encoding="utf-8")
    ours = new_text(keys={"topic": topic} if topic else {})
    assert read_front_matter(parse(theirs).front_matter).keys == {"topic": topic}
    assert read_front_matter(parse(ours).front_matter).keys == {"topic": topic}
    is_topic = slice(1, 2)
    lines, others = theirs.split("\n"), ours.split("\n")
    assert (lines[is_topic] == others[is_topic]) or topic, "only the quotes of a topic may differ"
    del lines[is_topic], others[is_topic]
    assert lines == others


def test_lua_and_python_give_the_same_names_and_permissions(
    plain: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "parley" / "chats"
    plain.lua("require('parley').setup({ chat_dir = ... })", str(folder))
    strftime = time.strftime
    monkeypatch.setattr(time, "strftime", lambda name: strftime(name, time.localtime(0)))
    luas = [Path(plain.lua(NEW, "")) for _ in range(3)]
    pythons = [new_chat(tmp_path / "other" / "chats", new_text()) for _ in range(3)]
    assert [path.name for path in luas] == [path.name for path in pythons]
    for one, other in zip([folder, *luas], [pythons[0].parent, *pythons], strict=True):
        assert one.stat().st_mode == other.stat().st_mode


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that refuses files, even from root")
def test_a_chat_folder_that_refuses_a_new_file_is_named_with_the_reason(plain: Child) -> None:
    plain.lua("require('parley').setup({ chat_dir = '/proc' })")
    plain.lua(NEW, "")
    reason = "cannot create a chat in /proc: no such file or directory. Use :saveas FILE"
    plain.until(lambda: f"Parley: {reason}" in plain.messages(), "the message")
