"""The choice keys: their decisions, and Vim's own commands, which they leave unchanged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.nvim.harness import Child, child

TEXT = [
    "\U0001f4ac: one (two three) four",
    "",
    "\U0001f916:[Demo]",
    "",
    'say "hello there" now (and then)',
    "second line of it",
    "",
    '❓: `{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}`',
    '❓: `{"id":"call_2","type":"function","function":{"name":"g","arguments":"{}"}}`',
]
KEYS = ("yA", "ya", "yo", "yO", "yn", "yN")

REFUSALS = ("yn", "yN")


def press(nvim: Child, key: str, row: int = 8) -> None:
    """Type a choice on a row; declining gets an empty reason."""
    nvim.keys(key)
    if key == "yN" or (key == "yn" and row >= 7):
        nvim.until_screen("Reason (may be empty):")
        nvim.keys("<CR>")


STATE = """
local registers = {}
for _, name in ipairs({ '"', '0', 'a', 'A', 'q', '1', '-' }) do
  registers[name .. ' '] = { vim.fn.getreg(name), vim.fn.getregtype(name) }
end
return {
  lines = vim.api.nvim_buf_get_lines(0, 0, -1, true),
  cursor = vim.api.nvim_win_get_cursor(0),
  mode = vim.api.nvim_get_mode().mode,
  registers = registers,
  operatorfunc = vim.o.operatorfunc,
  plus = _G.plus,
}
"""
RESET = """
vim.g.clipboard = {
  name = 'none',
  copy = { ['+'] = function(lines) _G.plus = lines end, ['*'] = function(lines) _G.plus = lines end },
  paste = { ['+'] = function() return _G.plus end, ['*'] = function() return _G.plus end },
}
vim.api.nvim_buf_set_lines(0, 0, -1, true, ...)
_G.plus = { '' }
for _, name in ipairs({ '"', '0', 'a', 'q', '1', '-' }) do vim.fn.setreg(name, '') end
vim.fn.setreg('/', 'line')
vim.bo.filetype = 'markdown'
"""
WAIT = """
local buf = vim.api.nvim_get_current_buf()
_G.asked = {}
require('parley.chat').ask = function(method, arguments)
  table.insert(_G.asked, { method, arguments.key or '' })
end
require('parley.keys').chat(buf)
require('parley.view').draw(buf, vim.api.nvim_buf_get_changedtick(buf), {
  problems = {}, proposals = {}, folds = {}, texts = {},
  waiting = { { start = 0, stop = vim.api.nvim_buf_line_count(buf) } },
})
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim without Parley, to compare with."""
    with child(tmp_path_factory.mktemp("bare"), clean=True) as one:
        yield one


def prepare(nvim: Child, row: int, column: int = 0, setup: str = "") -> None:
    nvim.clear()
    nvim.lua(RESET, TEXT)
    nvim.lua(setup)
    nvim.nvim.api.win_set_cursor(0, (row, column))


def waiting(nvim: Child, row: int, column: int = 0, setup: str = "") -> None:
    prepare(nvim, row, column, setup)
    nvim.lua(WAIT)


def state_after(nvim: Child, keys: str) -> dict[str, Any]:
    """The visible state after Neovim has processed keys."""
    nvim.keys(keys)
    nvim.until_open()
    state: dict[str, Any] = nvim.lua(STATE)
    return state


AF = "vim.keymap.set('o', 'af', 'iw')"
AI = "vim.keymap.set('o', 'a', function() return 'a' .. vim.fn.getcharstr() end, { expr = true })"
YANK = "vim.keymap.set('n', 'y', '\"+y') vim.keymap.set('n', 'Y', 'y$')"
YANK_EXPR = "vim.keymap.set('n', 'y', function() return '\"ay' end, { expr = true })"
YANK_PLUG = "vim.keymap.set('n', '<Plug>(yank)', '\"ay') vim.keymap.set('n', 'y', '<Plug>(yank)')"
OWN = "vim.keymap.set('n', 'ya', '\"ayw') vim.keymap.set('n', 'yo', '<Cmd>let @a=1<CR>')"
SLOW = "vim.o.timeoutlen = 120"
UNNAMEDPLUS = "vim.o.clipboard = 'unnamedplus'"
SWAPPED = "vim.o.langmap = 'zy,yz'"
CYRILLIC = "vim.o.langmap = 'нy,фa,зp,цw'"
REMAPPED = "vim.o.langremap = true vim.o.langmap = 'нy,фa,зp,цw'"
UNIMPAIRED = "vim.keymap.set('n', 'yob', '<Cmd>let @a=1<CR>') vim.keymap.set('n', 'yop', 'op<Esc>')"
OC = "vim.keymap.set('o', 'oc', 'iw')"
PLUS = "vim.o.clipboard = 'unnamed'"

NATIVE = [
    ("yap", ""),
    ("yaw", ""),
    ("yas", ""),
    ("yip", ""),
    ('ya"', ""),
    ("ya(", ""),
    ("yab", ""),
    ("yiw", ""),
    ("y$", ""),
    ("yy", ""),
    ("yj", ""),
    ("3yaw", ""),
    ("y2aw", ""),
    ('"ayap', ""),
    ('"Ayaw', ""),
    ('"a2yaw', ""),
    ('2"ayaw', ""),
    ("vapy", ""),
    ("yafx", AF),
    ("yaw", AI),
    ("yob", UNIMPAIRED),
    ("yop", UNIMPAIRED),
    ("yoc", OC),
    ("yap", PLUS),
    ("yap", UNNAMEDPLUS),
    ("yap", YANK),
    ("yaw", YANK),
    ("yiw", YANK),
    ("yy", YANK),
    ("2yaw", YANK),
    ('"ayaw', YANK),
    ("Y", YANK),
    ("yap", YANK_EXPR),
    ("2yaw", YANK_PLUG),
    ("2yaw", OWN),
    ("2yo", OWN),
    ("zap", SWAPPED),
    ("zaw", SWAPPED),
    ("нфз", CYRILLIC),
    ("нфц", REMAPPED),
    ("yap", REMAPPED),
    ("yawp", ""),
    ("dapu", ""),
    ("yawx.", ""),
    ("x.yaw.", ""),
    ("qqyawq@q", ""),
    ('"ayn', ""),
    ("2yn", ""),
    (":normal yap<CR>", ""),
    (":normal yaw<CR>", ""),
    ("y<Esc>ix<Esc>", ""),
]


CLEAR = """
for _, mode in ipairs({ 'n', 'o' }) do
  for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
    if not vim.startswith(map.lhs, '<Plug>(Parley') and not vim.startswith(map.lhs, '<Plug>(parley') then
      vim.keymap.del(mode, map.lhs)
    end
  end
end
"""


@pytest.mark.parametrize(
    ("keys", "setup"), NATIVE, ids=[f"{k} {s[:24]}".strip() for k, s in NATIVE]
)
@pytest.mark.parametrize("row", [5, 8], ids=["text", "proposal"])
@pytest.mark.parametrize("waits", [True, False], ids=["waiting", "idle"])
def test_vims_commands_stay_the_same_whether_or_not_calls_wait(
    plain: Child, bare: Child, keys: str, setup: str, row: int, waits: bool
) -> None:
    prepare(bare, row, 6, setup)
    prepare(plain, row, 6, setup)
    plain.lua("_G.asked = {}")
    if waits:
        plain.lua(WAIT)
    assert state_after(plain, keys) == state_after(bare, keys)
    assert plain.lua("return _G.asked") == []
    for nvim in (plain, bare):
        nvim.lua(CLEAR)


@pytest.mark.parametrize("keys", ["yap", "yaw", 'ya"', "ya(", "3yaw", '"ayap'])
def test_vims_commands_stay_the_same_at_a_persons_typing_speed(
    plain: Child, bare: Child, keys: str
) -> None:
    prepare(bare, 5, 6, SLOW)
    waiting(plain, 5, 6, SLOW)
    for nvim in (plain, bare):
        for key in keys:
            nvim.keys(key)
            time.sleep(0.03)  # this tests the pause: it is shorter than 'timeoutlen'
        nvim.until_open()
    assert plain.lua(STATE) == bare.lua(STATE)
    assert plain.lua("return _G.asked") == []


@pytest.mark.parametrize("pause", [0, 0.03])
def test_an_approval_key_typed_twice_at_once_counts_once_and_changes_no_text(
    plain: Child, pause: float
) -> None:
    waiting(plain, 8, setup=SLOW)
    before = plain.lines()
    for key in "yaya":
        plain.keys(key)
        time.sleep(pause)  # this tests the pause: it is shorter than 'timeoutlen'
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", "ya"]], "the choice")
    plain.until_open()
    assert (plain.lines(), plain.lua(STATE)["mode"]) == (before, "n")


def test_with_two_windows_on_the_chat_a_key_counts_where_its_cursor_is(plain: Child) -> None:
    prepare(plain, 5)
    plain.lua(WAIT.replace("{ 0, vim.api.nvim_buf_line_count(buf) }", "{ 6, 9 }"))
    plain.command("split | 8")
    plain.command("wincmd p")
    plain.keys("yN<Esc>")
    plain.until_open()
    assert plain.lua("return _G.asked") == []
    plain.command("wincmd p")
    press(plain, "yN")
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", "yN"]])
    plain.command("only")


@pytest.mark.parametrize("key", KEYS)
def test_a_key_typed_while_a_macro_is_recorded_decides_but_the_macro_does_not(
    plain: Child, key: str
) -> None:
    waiting(plain, 8)
    plain.keys("qq")
    press(plain, key)
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", key]], "the choice")
    plain.keys("q")
    plain.keys("@q<Esc>:<Esc>")
    plain.until_open()
    assert plain.lua("return _G.asked") == [["choose", key]]


@pytest.mark.parametrize("key", KEYS)
def test_in_visual_mode_the_keys_are_vims(plain: Child, bare: Child, key: str) -> None:
    prepare(bare, 8)
    waiting(plain, 8)
    assert state_after(plain, f"V{key}<Esc>") == state_after(bare, f"V{key}<Esc>")
    assert plain.lua("return _G.asked") == []


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("row", [1, 5, 8, 9])
def test_a_key_asks_for_its_choice_and_leaves_no_trace(plain: Child, key: str, row: int) -> None:
    waiting(plain, row)
    before = plain.lua(STATE)
    press(plain, key, row)
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", key]], "the choice")
    assert plain.lua(STATE) == before


@pytest.mark.parametrize("key", KEYS)
def test_a_key_has_no_parley_effect_if_nothing_waits(plain: Child, bare: Child, key: str) -> None:
    prepare(bare, 5)
    prepare(plain, 5)
    plain.lua("_G.asked = {}")
    assert state_after(plain, key + "<Esc>") == state_after(bare, key + "<Esc>")
    assert plain.lua("return _G.asked") == []
    assert plain.nvim.funcs.maparg(key, "n") == ""


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "how",
    [
        "vim.cmd.normal('{key}')",
        "vim.api.nvim_feedkeys('{key}', 'm', false)",
        "vim.fn.setreg('q', '{key}') vim.api.nvim_input('@q')",
        "vim.api.nvim_input('\"a{key}<Esc>')",
        "vim.api.nvim_input('2{key}<Esc>')",
        "vim.api.nvim_input('x.') vim.cmd.normal('{key}') vim.api.nvim_input('.')",
    ],
    ids=["normal", "feedkeys", "macro", "register", "count", "dot"],
)
def test_only_a_key_typed_by_a_person_alone_makes_a_choice(
    plain: Child, key: str, how: str
) -> None:
    waiting(plain, 8)
    plain.lua(f"pcall(function() {how.format(key=key)} end)")
    plain.keys("<Esc>")
    plain.until_open()
    plain.keys(":<Esc>")  # all scheduled functions have run
    plain.until_open()
    assert plain.lua("return _G.asked") == []


def test_a_typed_key_does_not_authorize_one_that_a_plugin_feeds(plain: Child) -> None:
    waiting(plain, 8)
    plain.keys("yo")
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", "yo"]])
    plain.lua("vim.api.nvim_feedkeys('yo', 'm', false)")
    plain.keys(":<Esc>")
    plain.until_open()
    assert plain.lua("return _G.asked") == [["choose", "yo"]]


def test_keys_in_another_exchange_are_vims(plain: Child) -> None:
    prepare(plain, 5)
    plain.lua(WAIT.replace("{ 0, vim.api.nvim_buf_line_count(buf) }", "{ 6, 9 }"))
    plain.keys("yN")
    plain.until_open()
    assert plain.lua("return _G.asked") == []
    plain.command("8")
    press(plain, "yN")
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", "yN"]])


def test_the_keys_disappear_when_nothing_waits_and_restore_earlier_maps(plain: Child) -> None:
    prepare(plain, 5, setup="vim.keymap.set('n', 'K', '<Nop>', { buffer = true, desc = 'mine' })")
    plain.lua("vim.keymap.set('n', 'yo', '<Nop>', { buffer = true, desc = 'mine' })")
    plain.lua(WAIT)
    assert (
        plain.lua("return vim.fn.maparg('yo', 'n', false, true).desc")
        == "Parley: approve this call"
    )
    plain.lua("require('parley.view').clear(0 + vim.api.nvim_get_current_buf())")
    described = "local key = ... return vim.fn.maparg(key, 'n', false, true).desc or ''"
    descriptions = [plain.lua(described, key) for key in ("yo", "K", "ya", "yA", "yn")]
    assert descriptions == ["mine", "mine", "", "", ""]


def test_keys_can_be_changed_and_disabled(plain: Child) -> None:
    prepare(plain, 5)
    plain.lua(
        "require('parley').setup({ keys = { respond = '<leader>r', stop = '', choices = false } })"
    )
    plain.lua(WAIT)
    maps = plain.lua("return vim.tbl_map(function(k) return vim.fn.maparg(k, 'n') end,"
                     " { '<leader>r', '<C-g><C-g>', '<C-g>x', 'ya' })")  # fmt: skip
    plain.lua("require('parley').setup({})")
    assert maps == ["<Cmd>ParleyRespond<CR>", "", "", ""]


def choice_keys(nvim: Child, choices: str) -> dict[str, str]:
    """The keys for each choice while a call waits, by the map's description."""
    prepare(nvim, 8)
    nvim.lua(f"require('parley').setup({{ keys = {{ choices = {choices} }} }})")
    nvim.lua(WAIT)
    maps = nvim.nvim.api.buf_get_keymap(0, "n")
    nvim.lua("require('parley').setup({})")
    return {each["desc"]: each["lhs"] for each in maps if "call" in each.get("desc", "")}


def test_choices_can_have_other_keys_or_none(plain: Child) -> None:
    keys = choice_keys(plain, "{ ya = '<leader>a', yN = false, yO = '' }")
    assert keys == {
        "Parley: approve all waiting calls": "\\a",
        "Parley: approve all waiting calls, and remember their tools": "yA",
        "Parley: approve this call": "yo",
        "Parley: decline this call": "yn",
        "Parley: show all of this tool call": "K",
    }
    assert list(choice_keys(plain, "false").values()) == ["K"]
    assert list(choice_keys(plain, "{ enabled = false, ya = 'x' }").values()) == ["K"]
    assert "ya" in choice_keys(plain, "true").values()


@pytest.mark.parametrize("key", ["<leader>a", "<C-y>", "gy", "<F5>", "é"])
def test_another_key_decides_only_when_it_is_typed(plain: Child, key: str) -> None:
    prepare(plain, 8)
    plain.lua("require('parley').setup({ keys = { choices = { ya = ... } } })", key)
    plain.lua(WAIT)
    plain.lua("vim.cmd.normal(vim.keycode(...))", key)
    plain.keys(key.replace("<leader>", "\\"))
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", "ya"]], "the choice")
    plain.lua("require('parley').setup({})")
    assert plain.lua("return _G.asked") == [["choose", "ya"]]


def test_a_users_map_to_a_plug_key_decides_only_when_it_is_typed(plain: Child) -> None:
    waiting(plain, 8)
    plain.lua("vim.keymap.set('n', '<leader>y', '<Plug>(parley-ya)')")
    plain.lua("vim.cmd.normal('\\\\y')")
    plain.lua("vim.cmd.normal(vim.keycode('<Plug>(parley-yA)'))")
    plain.lua("vim.fn.setreg('q', '\\\\y')")
    plain.keys("@q")
    plain.until_open()
    assert plain.lua("return _G.asked") == []
    plain.keys("\\y")
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", "ya"]], "the choice")
    plain.lua("require('parley.view').clear(vim.api.nvim_get_current_buf())")
    plain.keys("\\y")
    plain.until(lambda: "no tool call is waiting for a choice here" in plain.messages())
    plain.lua("vim.keymap.del('n', '<leader>y')")
    assert plain.lua("return _G.asked") == [["choose", "ya"]]


def test_every_map_has_a_description(plain: Child) -> None:
    """Plugins such as which-key read `desc`; a map that only makes Vim wait has no description."""
    waiting(plain, 8)
    maps = [each for mode in "ni" for each in plain.nvim.api.buf_get_keymap(0, mode)]
    ours = {each["lhs"]: each.get("desc", "") for each in maps}
    assert [
        lhs for lhs, desc in ours.items() if "<Plug>" not in lhs and not desc.startswith("Parley: ")
    ] == []
    # which-key hides it there
    assert {desc for lhs, desc in ours.items() if "<Plug>" in lhs} == {"which_key_ignore"}
    plugs = [
        each
        for each in plain.nvim.api.get_keymap("n")
        if each["lhs"].lower().startswith("<plug>(parley")
    ]
    assert len(plugs) > 15
    assert [each["lhs"] for each in plugs if not each.get("desc")] == []


def test_with_a_latin_langmap_the_keys_decide_where_they_are_typed(plain: Child) -> None:
    waiting(plain, 8, setup=SWAPPED)
    plain.keys("za")
    plain.until(lambda: plain.lua("return _G.asked") == [["choose", "ya"]], "the choice")


def test_the_editors_keys_match_the_settings(plain: Child) -> None:
    from dataclasses import asdict

    from parley.settings.values import Keys

    defaults = asdict(Keys())
    assert plain.lua("return require('parley.known').keys") == {
        k: defaults[k] for k in defaults if k != "scope"
    }


def test_the_keys_survive_a_repeated_filetype_event(plain: Child) -> None:
    prepare(plain, 5)
    desc = "return vim.fn.maparg(..., 'n', false, true).desc or ''"
    plain.until(lambda: plain.lua(desc, "gO") == "Parley: list the questions", "the keys")
    plain.command("set filetype=markdown")
    plain.until(lambda: plain.lua(desc, "gO") == "Parley: list the questions", "the keys again")
    assert plain.lua(desc, "]]") == "Parley: next question"
