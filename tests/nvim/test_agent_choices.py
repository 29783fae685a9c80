"""The modes, models and commands of an agent of another program in Neovim."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acp.agent_runs import AgentRun
from tests.acp.test_agent_processes import MODES
from tests.acp.test_agent_processes_models import COMMANDS, OPTION
from tests.nvim.harness import Child, child
from tests.nvim.test_turn import complete

MODEL_B = {"configOptions": [{**OPTION, "currentValue": "b"}]}
WORDS = "return vim.fn.getcompletion('ParleyAgent ', 'cmdline')"


def settings(run: AgentRun) -> str:
    table = {
        "agents": [{"name": "Coder", "provider": "coder"}],
        "providers": {"coder": {"kind": "acp", "command": list(run.provider.command)}},
        "status": {"llm": False},
    }
    return f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(table))}))"


def heard(nvim: Child, text: str) -> None:
    nvim.until(lambda: text in nvim.messages(), text)


def test_a_mode_and_a_model_are_picked_written_and_used(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    script = {"prompts": [[COMMANDS, {"say": "Ok."}]], "session/set_mode": {},
              "session/new": {"sessionId": "s", "modes": MODES, "configOptions": [OPTION]},
              "session/set_config_option": MODEL_B}  # fmt: skip
    run = AgentRun(tmp_path / "agent", script)
    with child(tmp_path, init=settings(run), width=100, height=40) as nvim:
        nvim.edit("first.md", "💬: hello\n")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        nvim.command("ParleyAgent Coder")
        heard(nvim, "this chat now uses Coder")
        nvim.keys(":ParleyAgent<CR>")
        screen = nvim.until_screen("Type number and <Enter>")
        (row,) = [line for line in screen.split("\n") if "Mode of Coder" in line]
        assert row.endswith("asks first         the agent lists the others")
        nvim.keys(f"{row.split(':')[0]}<CR>")
        screen = nvim.until_screen("1: the mode that asks before each call (now)")
        assert "4: yolo" in screen
        nvim.keys("4<CR>")
        heard(nvim, "Coder uses the mode yolo here")
        assert nvim.text().startswith("---\nmode: yolo\nagent: Coder\n---\n\n💬: hello")
        assert "model=b" in nvim.lua(WORDS)
        nvim.command("ParleyAgent model=c")
        heard(nvim, "coder has no model c. Choose one of a, b")
        nvim.command("ParleyAgent model=b")
        heard(nvim, "Coder uses the model b")
        nvim.command("ParleyRespond")
        complete(nvim)
        assert "🤖:[Coder, model b, mode yolo]" in nvim.text()
        assert nvim.lua("return vim.b.parley_agent") == "Coder, model b, mode yolo"
        assert [each["modeId"] for each in run.received("session/set_mode")] == ["yolo"]
        assert len(run.received("session/new")) == 1
        nvim.command("normal! G")
        nvim.keys("A/<C-x><C-o>")
        nvim.until_screen("/review")
        nvim.keys("<C-e><Esc>u")
        nvim.command("ParleyAgent mode=")
        heard(nvim, "Coder uses the mode that asks before each call")
        nvim.command("ParleyAgent Demo")
        heard(nvim, "this chat now uses Demo")
        nvim.command("ParleyAgent mode=yolo")
        heard(nvim, "Demo is not an agent of another program")
    with child(tmp_path, init=settings(run), width=100, height=40) as nvim:
        nvim.edit("second.md", "💬: hello\n")
        nvim.command("ParleyAgent Coder")
        nvim.until(lambda: "mode=default" in nvim.lua(WORDS), "the words of the last time")


def test_a_choice_does_not_agree_to_the_other_wishes_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    new = {"sessionId": "s", "modes": MODES, "configOptions": [OPTION]}
    run = AgentRun(tmp_path / "agent", {"prompts": [[{"say": "Ok."}]], "session/new": new})
    with child(tmp_path, init=settings(run), width=100, height=40) as nvim:
        nvim.edit("first.md", "---\nweb_search: true\n---\n\n💬: hello\n")
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
        nvim.command("ParleyAgent Coder")
        heard(nvim, "this chat now uses Coder")
        nvim.command("ParleyAgent mode=yolo")
        heard(nvim, "Coder uses the mode yolo here")
        nvim.keys(":ParleyRespond<CR>")
        nvim.until_screen("asks for agent Coder, mode yolo, web search")
        nvim.keys("<CR>")
        nvim.until_idle()
        assert run.received("session/new") == []
