"""A chat's tokens in a status line: usage, how full the window is, and cost."""

from __future__ import annotations

from pathlib import Path

from tests.nvim.harness import child

PRICE = "{ input = 3, output = 15, cached = 0.3 }"
SETTINGS = (
    "require('parley').setup({ safety = { rate_limit_per_minute = 100000 }, agent = 'Me', "
    "agents = {"
    f" {{ name = 'Me', provider = 'demo', model = 'demo', price = {PRICE} }} }} }})"
)
STATUS = "vim.o.laststatus = 2 vim.o.statusline = \"%{%v:lua.require'parley'.status()%}\" "


def test_the_status_line_has_the_windows_share_and_the_usage_has_the_cost(tmp_path: Path) -> None:
    with child(tmp_path, init=STATUS + SETTINGS, width=80, height=24) as nvim:
        nvim.edit(
            "chat.md", f"💬: say: hello {'word ' * 40_000}\n\n🤖:[Me]\n\nfine\n\n💬: say: and now\n"
        )
        nvim.command("normal! G")
        nvim.command("ParleyRespond")
        nvim.until_idle()
        usage = nvim.variable("parley_usage")
        last, turn, chat = usage["last"], usage["turn"], usage["chat"]
        assert last == turn == chat
        assert abs(last["cost"] - (last["input"] * 3 + last["output"] * 15) / 1_000_000) < 1e-9
        assert usage["window"]["tokens"] == 128_000
        assert 0.38 < usage["window"]["share"] < 0.42
        shown = (
            f"Me ↑{last['input'] / 1000:.1f}k ↓{last['output']} "
            f"{round(usage['window']['share'] * 100)}%"
        )
        nvim.until_screen(shown)
        nvim.command("ParleyLog")
        nvim.until_text(f"Cost: {last['cost']:.4f}.")


def test_a_turn_counts_all_its_requests_and_a_chat_all_its_turns(tmp_path: Path) -> None:
    with child(tmp_path, init=SETTINGS, width=80, height=24) as nvim:
        nvim.edit("chat.md", "💬: can you find the latest stock price of google and microsoft?\n")
        nvim.command("ParleyRespond")
        nvim.until_waiting()
        first = nvim.variable("parley_usage")
        nvim.keys("ya")
        nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the answer")
        nvim.until_idle()
        second = nvim.variable("parley_usage")
        assert first["chat"] == first["turn"] == first["last"]
        assert second["turn"] == second["last"]
        for kind in "input", "output", "cost":
            assert abs(second["chat"][kind] - first["turn"][kind] - second["turn"][kind]) < 1e-9


def test_summarizing_is_counted_and_leaves_the_chats_share_unchanged(tmp_path: Path) -> None:
    chat = "".join(f"💬: q {n}\n\n🤖:[Me]\n\n{'word ' * 4_000}\n\n" for n in range(4))
    with child(tmp_path, init=SETTINGS, width=80, height=24) as nvim:
        nvim.edit("chat.md", f"{chat}💬: say: hello\n")
        nvim.command("normal! G")
        nvim.command("ParleyRespond")
        nvim.until(lambda: nvim.lines()[-1] == "💬: ", "the answer")
        nvim.until_idle()
        before = nvim.variable("parley_usage")
        nvim.command("ParleyCompact")
        nvim.until(lambda: "2 of 2 older exchanges are summarized" in nvim.messages(), "the end")
        nvim.until_idle()
        after = nvim.variable("parley_usage")
        assert after["chat"]["input"] == before["chat"]["input"] + after["turn"]["input"]
        assert after["window"] == before["window"]
