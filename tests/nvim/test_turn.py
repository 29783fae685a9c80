"""Whole turns with the demo model in a real Neovim."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

import pytest

from tests.nvim.harness import Child

STOCKS = "can you find the latest stock price of google and microsoft?"
MARKER = "\U0001f4ac:"


_number = count(1)


def ask(nvim: Child, question: str, name: str = "") -> Path:
    """A chat with one question, asked. It has its own file because the ledger knows a chat by its
    path.
    """
    path = nvim.edit(name or f"chat-{next(_number)}.md", f"{MARKER} {question}\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys("<C-g><C-g>")
    return path


def ask_stocks(nvim: Child) -> Path:
    path = ask(nvim, STOCKS)
    nvim.until_waiting()
    nvim.until_idle()
    return path


def proposals(nvim: Child) -> list[str]:
    return [line for line in nvim.lines() if line.startswith("❓")]


def row_of(nvim: Child, start: str) -> int:
    return next(row for row, line in enumerate(nvim.lines(), 1) if line.startswith(start))


def complete(nvim: Child) -> None:
    nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} ", "the next question")
    nvim.until_idle()


def test_the_stock_example_completes_with_one_key(nvim: Child) -> None:
    ask_stocks(nvim)
    assert [p.startswith("❓: `") for p in proposals(nvim)] == [True, True]
    shown = nvim.screen()
    assert '❓ web_search(query: "google stock price") · mock' in shown
    assert ">> Please choose (yA/ya/yo/yO):" in shown
    assert "ya all 2 · yo this · yA/yO and remember · yn no · K details" in shown
    nvim.keys("yA")
    complete(nvim)
    text = nvim.text()
    assert [p.startswith("❓:[yA] `") for p in proposals(nvim)] == [True, True]
    assert "GOOGL" in text
    assert "$544" in text
    assert text.count("\U0001f916:") == 1
    assert nvim.lua("return vim.fn.maparg('ya', 'n')") == ""
    assert nvim.cursor == (len(nvim.lines()), 5)


def test_each_call_can_be_decided_on_its_own_line(nvim: Child) -> None:
    ask_stocks(nvim)
    nvim.command(str(row_of(nvim, "❓")))
    nvim.keys("yo")
    nvim.until(lambda: proposals(nvim)[0].startswith("❓:[yo]"))
    nvim.until_idle()
    assert proposals(nvim)[1].startswith("❓: `")
    assert "\U0001f6e0" not in nvim.text()
    assert nvim.lines()[nvim.cursor[0] - 1] == proposals(nvim)[1]
    nvim.until_waiting()
    nvim.keys("yn")
    nvim.until_screen("Reason (may be empty):")
    nvim.keys("<CR>")
    complete(nvim)
    assert "[refused]\n\n`The user declined this call.`" in nvim.text()
    assert "GOOGL" in nvim.text()


def test_a_choice_away_from_a_proposal_only_says_why_it_has_no_effect(nvim: Child) -> None:
    ask_stocks(nvim)
    before = nvim.text()
    nvim.command("1")
    nvim.keys("yo")
    nvim.until(lambda: "under the cursor" in nvim.messages(), "the message")
    nvim.until_idle()
    assert nvim.text() == before


def test_undo_reverts_a_turn_and_then_the_choice(nvim: Child) -> None:
    ask_stocks(nvim)
    asked = nvim.text()
    nvim.keys("ya")
    complete(nvim)
    nvim.keys("u")
    decided = nvim.text()
    assert [p.startswith("❓:[ya]") for p in proposals(nvim)] == [True, True] or decided == asked
    nvim.keys("u" if decided != asked else "")
    assert nvim.text() == asked
    nvim.keys("u")
    assert nvim.lines() == [f"{MARKER} {STOCKS}"]


def test_an_approved_call_that_ran_and_was_undone_does_not_run_again(nvim: Child) -> None:
    ask_stocks(nvim)
    nvim.keys("yA")
    complete(nvim)
    nvim.keys("u")
    nvim.command("ParleyRespond")
    nvim.until_waiting()
    nvim.until_idle()
    assert "\U0001f6e0" not in nvim.text()
    found = nvim.lua("return vim.tbl_map(function(d) return d.message end, vim.diagnostic.get(0))")
    assert any("may already have run" in message for message in found)


def test_a_stop_leaves_a_notice_and_the_turn_can_be_resumed(nvim: Child) -> None:
    ask(nvim, "write 2000 words")
    nvim.until(lambda: len(nvim.text()) > 300, "some text")
    nvim.command("ParleyStop")
    nvim.until_text("\U0001f512: [Stopped: by the user]")
    nvim.until_idle()
    assert nvim.lines()[-1] == f"{MARKER} "
    assert nvim.variable("parley_status") == ""
    for place in ("1", "$"):
        nvim.command(place)
        nvim.command("ParleyRespond")
        nvim.until(lambda: "Stopped" not in nvim.text(), "the turn that goes on")
        nvim.command("ParleyStop")
        nvim.until_text("\U0001f512: [Stopped: by the user]")
        nvim.until_idle()
    assert nvim.text().count(MARKER) == 2


def test_deleting_the_answer_stops_its_turn_and_nothing_more_is_written(nvim: Child) -> None:
    ask(nvim, "write 2000 words")
    nvim.until(lambda: len(nvim.text()) > 300, "some text")
    nvim.command("2,$delete _")
    nvim.until_idle()
    assert nvim.lines() == [f"{MARKER} write 2000 words"]


def test_undo_during_a_stream_stops_the_turn(nvim: Child) -> None:
    ask(nvim, "write 2000 words")
    nvim.until(lambda: len(nvim.text()) > 300, "some text")
    nvim.keys("u")
    nvim.until_idle()
    assert nvim.lines() == [f"{MARKER} write 2000 words"]


def test_a_wiped_buffer_ends_its_turn_and_no_other_is_changed(nvim: Child) -> None:
    path = ask(nvim, "write 2000 words")
    nvim.until(lambda: len(nvim.text()) > 300, "some text")
    nvim.command(f"enew | bwipeout! {path}")
    nvim.until(lambda: not nvim.lua("return require('parley.handle').busy()"))
    assert nvim.lines() == [""]
    ask(nvim, "say: still here", "other.md")
    complete(nvim)
    assert "still here" in nvim.text()


def test_two_chats_have_separate_turns(nvim: Child) -> None:
    ask(nvim, "write 150 words", "one.md")
    first = nvim.nvim.current.buffer.number
    nvim.command("split")
    ask(nvim, "write 100 words", "two.md")
    complete(nvim)
    nvim.command(f"buffer {first}")
    complete(nvim)
    assert nvim.text().count("\U0001f916:") == 1
    assert len(nvim.text().split()) > 140


def test_a_second_turn_in_one_chat_is_refused(nvim: Child) -> None:
    ask(nvim, "write 300 words")
    nvim.until(lambda: len(nvim.text()) > 100, "some text")
    nvim.command("ParleyRespond")
    nvim.until(lambda: "a turn is running" in nvim.messages(), "the message")
    nvim.command("ParleyStop")
    nvim.until_idle()


def test_a_reopened_chat_still_waits_and_continues(nvim: Child) -> None:
    path = ask_stocks(nvim)
    nvim.command("write")
    nvim.command("enew")
    nvim.command(f"bwipeout! {path}")
    nvim.command(f"edit {path}")
    nvim.until_waiting()
    nvim.command(str(row_of(nvim, "❓")))
    nvim.keys("ya")
    complete(nvim)
    assert "$911" in nvim.text()


def test_a_chat_without_a_file_asks_to_be_saved_before_a_choice(nvim: Child) -> None:
    nvim.command("enew | setlocal filetype=markdown")
    nvim.nvim.current.buffer[:] = [f"{MARKER} {STOCKS}"]
    nvim.command("ParleyRespond")
    nvim.until_waiting()
    nvim.keys("ya")
    nvim.until(lambda: "save this chat first" in nvim.messages(), "the message")
    nvim.until_idle()
    assert proposals(nvim)[0].startswith("❓: `")


def test_a_mark_typed_by_hand_is_not_a_choice(nvim: Child) -> None:
    path = ask_stocks(nvim)
    nvim.command("silent %s/^❓: /❓:[ya] /")
    nvim.command("write")
    nvim.until(
        lambda: "was not made here" in str(nvim.lua("return vim.diagnostic.get(0)")),
        "the problem",
    )
    nvim.command("ParleyRespond")
    nvim.until_idle()
    assert "\U0001f6e0" not in path.read_text(encoding="utf-8")
    assert nvim.lua("return vim.fn.maparg('ya', 'n')") != ""


def test_undoing_a_mark_revokes_the_approval(nvim: Child) -> None:
    ask_stocks(nvim)
    nvim.command(str(row_of(nvim, "❓")))
    nvim.keys("yo")
    nvim.until(lambda: proposals(nvim)[0].startswith("❓:[yo]"))
    nvim.until_idle()
    assert "Approved, not run yet" in log(nvim)
    nvim.keys("u")
    nvim.until(lambda: "Approved, not run yet" not in log(nvim), "the revoked entry")


def test_a_mark_restored_by_redo_says_that_its_approval_was_undone(nvim: Child) -> None:
    ask_stocks(nvim)
    nvim.command(str(row_of(nvim, "❓")))
    nvim.keys("yo")
    nvim.until(lambda: proposals(nvim)[0].startswith("❓:[yo]"))
    nvim.until_idle()
    nvim.keys("u")
    nvim.until(lambda: "Approved, not run yet" not in log(nvim), "the revoked entry")
    nvim.keys("<C-r>")
    nvim.until_screen("this call is marked [yo], but that approval was undone: choose again")
    assert "not decided here" not in nvim.screen()
    nvim.keys("yo")
    nvim.until(lambda: "was undone" not in nvim.screen(), "the yes that was given again")


def log(nvim: Child) -> str:
    nvim.command("ParleyLog")
    nvim.until(lambda: nvim.name.endswith("parley://log"), "the log")
    text = nvim.text()
    nvim.command("close")
    return text


def test_regenerating_replaces_one_answer_and_changes_no_other(nvim: Child) -> None:
    text = (
        f"{MARKER} say: one\n\n\U0001f916:[Demo]\n\nold\n\n{MARKER} say: "
        "two\n\n\U0001f916:[Demo]\n\nkept\n"
    )
    nvim.edit("again.md", text)
    nvim.command("1")
    nvim.command("ParleyRespond!")
    nvim.until(lambda: "old" not in nvim.text() and "\none" in nvim.text(), "the new answer")
    nvim.until_idle()
    assert nvim.text().endswith(f"{MARKER} say: two\n\n\U0001f916:[Demo]\n\nkept")
    nvim.command("ParleyRespond")
    nvim.until(lambda: "already answered" in nvim.messages(), "the message")


def test_the_request_is_shown_as_it_would_be_sent(nvim: Child) -> None:
    nvim.edit("chat.md", f"{MARKER} say: hello\n")
    nvim.command("ParleyRequest")
    nvim.until(lambda: nvim.name.endswith("parley://request"), "the page")
    assert '"say: hello"' in nvim.text()
    assert '"web_search"' in nvim.text()


def test_the_tools_page_lists_servers_and_tools(nvim: Child) -> None:
    nvim.command("ParleyTools")
    nvim.until(lambda: nvim.name.endswith("parley://tools"), "the page")
    nvim.until_text("- [x] web_search")


def test_a_float_shows_a_proposals_details(nvim: Child) -> None:
    ask_stocks(nvim)
    nvim.command(str(row_of(nvim, "❓")))
    nvim.keys("K")
    nvim.until_screen("readOnlyHint")


def test_the_float_says_how_much_of_a_call_is_below_it(nvim: Child) -> None:
    ask_stocks(nvim)
    arguments = json.dumps({"query": "\n".join(f"line {n}" for n in range(90))})
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "web_search", "arguments": arguments},
    }
    nvim.nvim.current.buffer[-2] = f"❓: `{json.dumps(call)}`"
    nvim.command(str(len(nvim.lines()) - 1))
    nvim.keys("K")
    nvim.until_screen("K again enters")
    below = int(re.findall(r"\+(\d+) rows: K again enters", nvim.screen())[0])
    assert below > 20
    assert "web_searchArguments" not in nvim.screen()
    nvim.keys("K")
    nvim.until(
        lambda: nvim.lua("return vim.api.nvim_win_get_config(0).relative ~= ''"), "the window"
    )
    nvim.keys("G")
    nvim.until_screen("web_searchArguments")


def test_an_agent_can_be_chosen(nvim: Child) -> None:
    ask(nvim, "say: hello")
    complete(nvim)
    nvim.command("ParleyAgent Demo-OpenAI")
    nvim.until(lambda: "now uses Demo-OpenAI" in nvim.messages(), "the message")
    nvim.keys("Asay: again<Esc><C-g><C-g>")
    nvim.until_text("\U0001f916:[Demo-OpenAI]\n\nagain")
    nvim.until_idle()
    assert "Demo-OpenAI" in nvim.nvim.funcs.getcompletion("ParleyAgent Demo-", "cmdline")


def test_a_new_chat_has_a_file_a_topic_and_the_cursor_ready_to_type(nvim: Child) -> None:
    nvim.command("ParleyChatNew My topic")
    path = Path(nvim.name)
    assert path.parent == nvim.home / "data" / "parley" / "chats"
    assert nvim.lines() == ["---", "topic: My topic", "---", "", f"{MARKER} "]
    assert nvim.cursor == (5, 6)
    nvim.keys("say: hi<Esc><C-g><C-g>")
    complete(nvim)
    assert path.read_text(encoding="utf-8").endswith(f"{MARKER} \n")
    assert not nvim.nvim.current.buffer.options["modified"]
    nvim.lua(
        "vim.ui.select = function(items, opts, done) _G.picked = vim.tbl_map(opts.format_item, "
        "items) end"
    )
    nvim.command("ParleyFind")
    nvim.until(lambda: nvim.lua("return _G.picked ~= nil"), "the list of chats")
    assert any("My topic" in item for item in nvim.lua("return _G.picked"))


def test_questions_can_be_jumped_to_and_listed(nvim: Child) -> None:
    text = f"{MARKER} one\n\n\U0001f916:\n\na\n\n{MARKER}\n\ntwo\n\n\U0001f916:\n\nb\n\n{MARKER} three\n"
    nvim.edit("outline.md", text)
    nvim.until(
        lambda: (
            nvim.lua("return vim.fn.maparg(']]', 'n', false, true).desc") == "Parley: next question"
        )
    )
    nvim.command("1")
    nvim.keys("]]")
    assert nvim.cursor[0] == 7
    nvim.keys("2[[")
    assert nvim.cursor[0] == 1
    nvim.command("ParleyOutline")
    assert [item["text"] for item in nvim.nvim.funcs.getloclist(0)] == ["one", "two", "three"]
    assert nvim.lines() == ["one", "two", "three"]
    nvim.command("lclose")


def test_the_end_of_an_answer_below_a_very_long_line_stays_on_the_screen(
    nvim: Child,
) -> None:
    nvim.command("split | resize 9")
    nvim.edit("long.md", f"{MARKER} write 250 words\n")
    nvim.command("ParleyRespond")
    nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} ", "the end of the turn")
    nvim.until_idle()
    nvim.flush()
    assert "changed by hand" in nvim.screen()


def test_a_users_window_options_stay(plain: Child) -> None:
    plain.command("set nosmoothscroll")
    plain.edit("set.md", f"{MARKER} a\n")
    plain.until(lambda: plain.lua("return require('parley.chat').is_attached(0)"), "the chat")
    assert not plain.lua("return vim.wo.smoothscroll")
    assert plain.lua("return vim.wo.linebreak")


def test_a_cursor_that_the_user_moved_stays(nvim: Child) -> None:
    ask(nvim, "write 200 words")
    nvim.until(lambda: len(nvim.text()) > 300, "some text")
    nvim.keys("gg0")
    complete(nvim)
    assert nvim.cursor == (1, 0)


def test_a_turns_end_leaves_no_status_and_the_usage_is_known(nvim: Child) -> None:
    nvim.lua(
        "_G.said = {} vim.api.nvim_create_autocmd('User', { pattern = 'ParleyStatus', callback ="
        " function(e) table.insert(_G.said, e.data.text) end })"
    )
    ask(nvim, "say: hello there")
    complete(nvim)
    said = nvim.lua("return _G.said")
    assert "Analyzing request..." in said
    assert said[-1] == ""
    usage = nvim.variable("parley_usage")
    assert usage["last"]["output"] > 0
    kinds = {"input", "output", "cached", "thinking"}
    assert set(usage["last"]) == set(usage["turn"]) == set(usage["chat"]) == kinds
    assert usage["window"]["tokens"] == 128_000
    assert 0 < usage["window"]["share"] < 0.01
    assert usage["limits"] == {
        "limit-requests": "1000",
        "remaining-requests": "999",
        "requests-limit": "1000",
        "requests-remaining": "999",
    }
    assert "Demo" in nvim.lua("return require('parley').status()")


def test_the_agent_of_a_file_from_elsewhere_is_confirmed_once(nvim: Child) -> None:
    nvim.lua(
        "vim.ui.select = function(items, opts, done) _G.prompt = opts.prompt done(items[2], 2) end"
    )
    text = f"---\nagent: Demo-OpenAI\n---\n\n{MARKER} say: hello\n"
    nvim.edit("foreign.md", text)
    nvim.command("5")
    nvim.command("ParleyRespond")
    nvim.until_text("\U0001f916:[Demo-OpenAI]\n\nhello")
    assert "not created here and asks for agent Demo-OpenAI" in nvim.lua("return _G.prompt")
    complete(nvim)
    nvim.lua("_G.prompt = nil")
    nvim.keys("Gasay: again<Esc><C-g><C-g>")
    complete(nvim)
    assert nvim.lua("return _G.prompt") is None


def test_a_file_named_in_a_question_is_read_from_neovims_folder(nvim: Child) -> None:
    (nvim.home / "note.txt").write_text("brought along\n", encoding="utf-8")
    nvim.command(f"cd {nvim.home}")
    ask(nvim, "say: see @@note.txt@@")
    complete(nvim)
    assert "brought along" in nvim.text()


def test_a_file_outside_neovims_folder_is_included_after_approval(
    nvim: Child, tmp_path: Path
) -> None:
    (tmp_path / "far.txt").write_text("from far away\n", encoding="utf-8")
    nvim.command(f"cd {nvim.home}")
    nvim.lua("""
        _G.plain_select, _G.answer = vim.ui.select, 1
        vim.ui.select = function(items, opts, done)
          _G.prompt = opts.prompt
          done(items[_G.answer], _G.answer)
        end
    """)
    ask(nvim, f"say: see @@{tmp_path}/far.txt@@")
    nvim.until(
        lambda: "outside the working directory, so not read" in nvim.messages().replace("\n", ""),
        "the no",
    )
    nvim.until_idle()
    assert nvim.lines()[1:] == []
    assert f"Read {tmp_path}/far.txt into the chat?" in nvim.lua("return _G.prompt")
    nvim.lua("_G.answer = 2")
    ask(nvim, f"say: see @@{tmp_path}/far.txt@@")
    complete(nvim)
    assert "from far away" in nvim.text()
    nvim.lua("vim.ui.select = _G.plain_select")


def test_finished_thinking_is_folded_and_then_stays_as_the_user_leaves_it(nvim: Child) -> None:
    thought = "\U0001f9e0:[demo:demo sig]\n> one\n> two\n\nanswer\n"
    nvim.edit("thought.md", f"{MARKER} ask\n\n\U0001f916:[Demo]\n\n{thought}\n{MARKER} say: next\n")
    nvim.until(lambda: nvim.nvim.funcs.foldclosed(5) == 5, "the fold")
    nvim.until_screen("🧠 thinking, ")
    nvim.command("5foldopen")
    nvim.command("$")
    nvim.command("ParleyRespond")
    complete(nvim)
    assert nvim.nvim.funcs.foldclosed(5) == -1


def test_a_key_pressed_as_soon_as_it_exists_counts(nvim: Child) -> None:
    nvim.edit("quick.md", f"{MARKER} {STOCKS}\n")
    nvim.lua("""
        _G.wait = require('parley.keys').wait
        require('parley.keys').wait = function(buf, waits)
          _G.wait(buf, waits)
          if waits then
            require('parley.keys').wait = _G.wait  -- drawn again, and pressed once
            vim.schedule(function() require('parley').approve('ya') end)
          end
        end
    """)
    nvim.command("ParleyRespond")
    nvim.until_text("$911")
    complete(nvim)
    assert "a turn is running" not in nvim.messages()


def test_an_export_has_the_buffers_text_and_overwrites_no_file_without_asking(
    nvim: Child,
) -> None:
    nvim.edit("export.md", f"{MARKER} a question\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    nvim.keys("A not yet written<Esc>")
    page = nvim.home / "export.html"
    nvim.command("ParleyExport")
    nvim.until(lambda: f"written to {page}" in nvim.messages(), "the page")
    assert "a question not yet written" in page.read_text(encoding="utf-8")
    nvim.command("ParleyExport")
    nvim.until(lambda: ":ParleyExport! overwrites it" in nvim.messages(), "the refusal")
    nvim.keys("A at all<Esc>")
    nvim.command(f"ParleyExport! {page}")
    nvim.until(lambda: "not yet written at all" in page.read_text(encoding="utf-8"), "the new page")


def test_text_typed_after_an_answer_begins_after_the_questions_blank(nvim: Child) -> None:
    ask(nvim, "hello")
    nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} ", "the next question")
    nvim.until_idle()
    nvim.keys("ihow<Esc>")
    nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} how", "what was typed")
    nvim.keys("u")
    nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} ", "the undo")
    nvim.keys("0iso <Esc>$iy<Esc>")
    nvim.until(lambda: nvim.lines()[-1] == f"so {MARKER}y ", "what was typed elsewhere")
    assert nvim.lua("return vim.wo.virtualedit") == ""


@pytest.mark.parametrize("answer", ["🤖:[Demo]\n\nold", "🤖:[Demo] old\nand older", "🤖: old"])
@pytest.mark.parametrize("below", ["", f"\n{MARKER} say: two\n\n🤖:[Demo]\n\nkept\n"])
def test_another_agent_can_regenerate_an_answer(nvim: Child, answer: str, below: str) -> None:
    nvim.edit("other.md", f"{MARKER} say: one\n\n{answer}\n{below}")
    nvim.command("1 | ParleyAgent Demo-OpenAI")
    nvim.until(lambda: nvim.variable("parley_agent") == "Demo-OpenAI", "the other agent")
    nvim.command("ParleyRespond!")
    nvim.until(lambda: "removed" in nvim.messages() or "\none" in nvim.text(), "an end")
    nvim.until_idle()
    ending = below.rstrip("\n") or f"\n{MARKER} "
    assert nvim.text() == f"{MARKER} say: one\n\n🤖:[Demo-OpenAI]\n\none\n{ending}"
    assert "removed" not in nvim.messages()
    nvim.keys("u")
    assert nvim.text() == f"{MARKER} say: one\n\n{answer}\n{below}".rstrip("\n")
    nvim.command("ParleyAgent Demo")
