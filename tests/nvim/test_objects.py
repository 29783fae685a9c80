"""A chat's text objects, with Vim's operators and in Visual mode."""

from __future__ import annotations

import time

import pytest

from tests.nvim.harness import Child
from tests.nvim.test_keys import WAIT

CALL = '{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}'
CHAT = f"""\
---
topic: t
---

💬: one é

🤖:[Demo]

text

```lua
💡 code

more
```

❓:[ya] `{CALL}`

🛠️: [f][c1]

````
```
a result
````

after the call

💬:

  two
lines

🤖: said beside

❓: `{CALL}`

❓: `broken

💬: """.split("\n")


def row_of(text: str, start: int = 0) -> int:
    """The row (from 1) of the first line with this start."""
    return next(row for row, line in enumerate(CHAT[start:], start + 1) if line.startswith(text))


def rows(first: int, last: int) -> str:
    """Whole lines as in a register, by their rows."""
    return "".join(f"{line}\n" for line in CHAT[first - 1 : last])


@pytest.fixture
def chat(plain: Child) -> Child:
    """The chat, with nothing yanked."""
    plain.lua("vim.fn.setreg('\"', 'nothing')")
    plain.edit("objects.md", "\n".join(CHAT))
    plain.until(lambda: plain.lua("return vim.fn.maparg('iq', 'o') ~= ''"), "the objects")
    plain.lua("_G.asked = {}")
    return plain


def yanked(chat: Child, row: int, keys: str) -> str:
    chat.command(str(row))
    chat.keys(keys)
    chat.until_open()
    text: str = chat.nvim.funcs.getreg('"')
    return text


ONE, TWO, BROKEN = row_of("💬: one"), row_of("💬:", 20), row_of("❓: `broken")
FIRST, SECOND = row_of("🤖:[Demo]"), row_of("🤖: said")
BLOCK, HEAD, LAST = row_of("```lua"), row_of("🛠️"), len(CHAT)
CASES = {
    "a question": (ONE, "aq", rows(ONE, FIRST - 1)),
    "the question of an answer": (BLOCK, "aq", rows(ONE, FIRST - 1)),
    "what is asked, beside its marker": (ONE, "iq", "one é"),
    "what is asked, below its marker": (TWO, "iq", "  two\nlines\n"),
    "an answer": (BLOCK, "ar", rows(FIRST, TWO - 1)),
    "the answer of a question": (ONE, "ar", rows(FIRST, TWO - 1)),
    "what is answered": (FIRST, "ir", rows(FIRST + 2, TWO - 2)),
    "what is answered beside the marker": (SECOND, "ir", rows(SECOND, BROKEN)[len("🤖: ") : -1]),
    "a code block": (BLOCK + 2, "ac", rows(BLOCK, BLOCK + 4)),
    "a code block, from its first line": (BLOCK, "ac", rows(BLOCK, BLOCK + 4)),
    "a code block, from its last line": (BLOCK + 4, "ac", rows(BLOCK, BLOCK + 4)),
    "the code in it": (BLOCK + 2, "ic", "💡 code\n\nmore\n"),
    "the body of a result": (HEAD + 4, "ic", "```\na result\n"),
    "a call with its result": (HEAD - 2, "aT", rows(HEAD - 2, HEAD + 6)),
    "a call, from its result": (HEAD + 4, "aT", rows(HEAD - 2, HEAD + 6)),
    "what is called": (HEAD + 4, "iT", CALL),
    "a call without a result": (SECOND + 2, "aT", rows(SECOND + 2, SECOND + 3)),
    "a call that cannot be read": (BROKEN, "aT", rows(BROKEN, BROKEN + 1)),
}
NONE = {
    "no question above the first": (1, "aq"),
    "no answer yet": (LAST, "ar"),
    "nothing asked yet": (LAST, "iq"),
    "no call": (ONE, "aT"),
    "no call behind its result": (HEAD + 7, "aT"),
    "nothing called that can be read": (BROKEN, "iT"),
    "no code block": (FIRST + 2, "ac"),
    "no code block below one": (HEAD + 7, "ic"),
}


@pytest.mark.parametrize("how", ["y{}", "v{}y", "V{}y"])
@pytest.mark.parametrize(("row", "keys", "text"), CASES.values(), ids=CASES)
def test_an_object_follows_its_markers(
    chat: Child, how: str, row: int, keys: str, text: str
) -> None:
    assert yanked(chat, row, how.format(keys)) == text


@pytest.mark.parametrize(("row", "keys"), NONE.values(), ids=NONE)
@pytest.mark.parametrize("operator", ["d", "c", "v"])
def test_without_an_object_nothing_happens(chat: Child, operator: str, row: int, keys: str) -> None:
    chat.command(str(row))
    chat.keys(f"{operator}{keys}")
    chat.until_open()
    assert chat.lines() == CHAT
    assert chat.nvim.api.get_mode()["mode"] == ("v" if operator == "v" else "n")
    assert chat.cursor == (row, 0)


@pytest.mark.parametrize(("row", "keys", "text"), CASES.values(), ids=CASES)
def test_with_an_exclusive_selection_objects_are_the_same(
    chat: Child, row: int, keys: str, text: str
) -> None:
    chat.command("set selection=exclusive")
    assert yanked(chat, row, f"y{keys}") == text


@pytest.mark.parametrize("keys", ["aq", "iq", "ar", "ac", "ic", "aT"])
def test_while_calls_wait_the_keys_are_vims_operator_and_an_object(chat: Child, keys: str) -> None:
    row = {"T": SECOND + 2, "c": BLOCK}.get(keys[1], ONE)
    before = yanked(chat, row, f"y{keys}")
    assert before != "nothing"
    chat.lua("vim.fn.setreg('\"', 'nothing')" + WAIT)
    assert yanked(chat, row, f"y{keys}") == before
    assert chat.lua("return _G.asked") == []


@pytest.mark.parametrize("keys", ["aq", "ar", "ac"])
def test_while_calls_wait_objects_work_at_a_persons_typing_speed(chat: Child, keys: str) -> None:
    before = yanked(chat, BLOCK, f"y{keys}")
    chat.lua("vim.o.timeoutlen = 120 vim.fn.setreg('\"', 'nothing')" + WAIT)
    chat.command(str(BLOCK))
    for key in f"y{keys}":
        chat.keys(key)
        time.sleep(0.03)  # this tests the pause: it is shorter than 'timeoutlen'
    chat.until_open()
    assert chat.nvim.funcs.getreg('"') == before != "nothing"
    assert chat.lua("return _G.asked") == []


def test_changing_a_question_keeps_the_marker_and_can_be_repeated(chat: Child) -> None:
    chat.command(str(ONE))
    chat.keys("ciqanother<Esc>")
    chat.until_open()
    assert chat.lines()[ONE - 1 : ONE + 2] == ["💬: another", "", "🤖:[Demo]"]
    chat.keys("u")
    chat.command(str(BLOCK + 1))
    chat.keys("dic")
    chat.command(str(HEAD - 3 + 4))
    chat.keys(".")
    chat.until_open()
    lines = chat.lines()
    assert lines[BLOCK - 1 : BLOCK + 1] == ["```lua", "```"]
    assert [line for line in lines if "````" in line] == ["````", "````"]
    assert lines.index("````") + 1 == len(lines) - 1 - lines[::-1].index("````")


def test_a_code_block_still_being_written_ends_with_the_answer(chat: Child) -> None:
    chat.nvim.api.buf_set_lines(0, BLOCK + 2, BLOCK + 4, True, ["last"])
    assert yanked(chat, BLOCK + 1, "yic") == "💡 code\n\nlast\n"


def test_only_lines_between_the_cursor_and_the_ends_are_read(chat: Child) -> None:
    chat.nvim.api.buf_set_lines(0, -1, -1, True, ["", "🤖:[Demo]", "", *["line"] * 20_000])
    chat.lua("""
        _G.read = 0
        local get = vim.api.nvim_buf_get_lines
        vim.api.nvim_buf_get_lines = function(...)
          local lines = get(...)
          _G.read = _G.read + #lines
          return lines
        end
    """)
    yanked(chat, BLOCK + 1, "yac")
    yanked(chat, ONE, "yaq")
    assert 0 < chat.lua("return _G.read") < 2000


def test_a_users_object_stays_and_the_letters_can_be_changed(chat: Child) -> None:
    chat.lua("""
        vim.keymap.set('o', 'ic', 'iw', { desc = 'mine' })
        require('parley').setup({ keys = { question_object = 'Q', call_object = false, code_object = 'c' } })
    """)
    described = chat.lua("""
        return vim.tbl_map(function(lhs)
          return vim.fn.maparg(lhs, 'o', false, true).desc or ''
        end, { 'ic', 'ac', 'aq', 'aQ', 'iT', 'ir' })
    """)
    chat.lua("vim.keymap.del('o', 'ic') require('parley').setup({})")
    assert described == [
        *(
            "mine",
            "Parley: whole code block",
            "",
            "Parley: whole question",
            "",
            "Parley: inner answer",
        )
    ]


def test_the_objects_exist_only_in_chats(chat: Child) -> None:
    chat.edit("notes.md", "# Notes\n")
    assert chat.lua("return vim.fn.maparg('iq', 'o') .. vim.fn.maparg('aq', 'x')") == ""
