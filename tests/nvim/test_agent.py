"""The user confirms the agent that a file requests, and again when another agent replaces it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.counting import MARKER
from tests.nvim.hanging_model import hanging_model
from tests.nvim.harness import Child, child

ASK = """
_G.prompts = {}
vim.ui.select = function(items, opts, done)
  table.insert(_G.prompts, opts.prompt)
  local act = _G.meanwhile
  _G.meanwhile = nil
  if act then act() end
  for i, item in ipairs(items) do
    if vim.startswith(item, "Yes") then return done(item, i) end
  end
end
"""
FUNCTION = '{"name":"web_search","arguments":"{\\"query\\":\\"x\\"}"}'
CALL = f'❓: `{{"id":"call_1","type":"function","function":{FUNCTION}}}`'


def prompts(nvim: Child) -> list[str]:
    said: list[str] = nvim.lua("return _G.prompts")
    return said


def chat(agent: str, question: str = "say: hello") -> str:
    return f"---\nagent: {agent}\n---\n\n{MARKER}{question}\n"


def until_asked(nvim: Child, agents: list[str]) -> None:
    nvim.until(lambda: len(prompts(nvim)) >= len(agents), f"questions about {agents}")
    assert [
        agent
        for said, agent in zip(prompts(nvim), agents, strict=True)
        if f"agent {agent}" not in said
    ] == []


def test_front_matter_that_changes_during_the_confirmation_needs_another(nvim: Child) -> None:
    nvim.lua(ASK)
    nvim.edit("swapped.md", chat("Demo-OpenAI"))
    nvim.lua(
        "_G.meanwhile = function() vim.api.nvim_buf_set_lines(0, 1, 2, true, {'agent: "
        "Demo-Text'}) end"
    )
    nvim.command("5")
    nvim.command("ParleyRespond")
    until_asked(nvim, ["Demo-OpenAI", "Demo-Text"])
    nvim.until_text("\U0001f916:[Demo-Text]\n\nhello")


def test_a_chat_created_here_asks_about_agents_that_were_not_typed_here(
    nvim: Child, home: Path
) -> None:
    nvim.lua(ASK)
    nvim.command("ParleyChatNew")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    path = Path(nvim.name)
    nvim.lua("vim.api.nvim_buf_set_lines(0, 1, 2, true, {'agent: Demo-OpenAI'})")
    nvim.keys("say: hello<Esc>:ParleyRespond<CR>")
    nvim.until_text("\U0001f916:[Demo-OpenAI]\n\nhello")
    nvim.until_idle()
    assert prompts(nvim) == []
    nvim.command("silent write")
    path.write_text(chat("Demo-Text"), encoding="utf-8")  # like `git pull`
    nvim.command("edit!")
    nvim.command("5")
    nvim.command("ParleyRespond")
    until_asked(nvim, ["Demo-Text"])
    nvim.until_text("\U0001f916:[Demo-Text]\n\nhello")


def test_an_approval_in_a_file_from_elsewhere_asks_about_its_agent_first(nvim: Child) -> None:
    nvim.lua(ASK)
    nvim.edit("waiting.md", chat("Demo-OpenAI", "hi") + f"\n🤖:[Demo-OpenAI]\n\nok\n\n{CALL}\n")
    nvim.until_waiting()
    nvim.command("normal! G")
    nvim.command("ParleyApprove ya")
    until_asked(nvim, ["Demo-OpenAI"])
    nvim.until_waiting()
    assert "[ya]" not in nvim.text()


LIST = """
_G.labels, _G.titles = {}, {}
vim.ui.select = function(items, opts, done)
  table.insert(_G.titles, opts.prompt)
  if opts.format_item then
    for i, item in ipairs(items) do
      table.insert(_G.labels, opts.format_item(item))
      if item.name == _G.wish then return done(item, i) end
    end
  else
    done(items[_G.answer], _G.answer)
  end
end
"""


def test_the_agent_list_has_each_agents_state_and_one_demo_agent_last(nvim: Child) -> None:
    nvim.edit("pick.md", f"{MARKER}hello\n")
    nvim.lua(LIST)
    nvim.command("ParleyAgent")
    nvim.until(lambda: nvim.lua("return #_G.labels") > 0, "the list")
    labels = nvim.lua("return _G.labels")
    assert [label.split("  ")[0].strip() for label in labels] == [
        *("Claude", "ChatGPT", "Gemini", "OpenRouter", "Ollama"),
        *("Claude-Code", "Codex", "Gemini-CLI", "Copilot", "Demo (now)", "Other models"),
    ]
    assert labels[0] == "Claude        claude-sonnet-5-5  no key: ANTHROPIC_API_KEY"
    assert labels[3] == "OpenRouter    openrouter/auto    no key: :ParleyLogin openrouter"
    assert labels[4] == "Ollama        llama3.1           is not running at 127.0.0.1:11434"
    assert labels[6] == "Codex                            not installed"
    assert labels[9] == "Demo (now)    demo               built in, needs no key"
    nvim.command("ParleyAgent Demo-Text")
    nvim.until(lambda: nvim.variable("parley_agent") == "Demo-Text", "the agent")
    nvim.command("ParleyAgent")
    nvim.until(
        lambda: "Demo-Text (now)" in nvim.lua("return _G.labels[#_G.labels - 1]"), "the list again"
    )
    assert not [label for label in nvim.lua("return _G.labels")[11:] if label.startswith("Demo ")]


def test_a_chosen_agent_that_cannot_answer_yet_says_why(nvim: Child) -> None:
    nvim.edit("lack.md", f"{MARKER}hello\n")
    nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    for name, why in {
        "Codex": "not installed: npm install -g @agentclientprotocol/codex-acp",
        "Claude": "no key: ANTHROPIC_API_KEY",
        "Ollama": "is not running at 127.0.0.1:11434",
    }.items():
        nvim.command(f"ParleyAgent {name}")
        said = f"this chat now uses {name} ({why}); :ParleyAgent! writes the agent into its file"
        nvim.until(lambda said=said: said in nvim.messages(), said)  # type: ignore[misc]
    nvim.command("ParleyAgent ollama")
    nvim.until(
        lambda: "there is no agent 'ollama'. Did you mean Ollama?" in nvim.messages(), "the hint"
    )


def test_ctrl_c_in_the_agent_list_picks_none_and_reports_no_error(nvim: Child) -> None:
    nvim.edit("interrupted.md", f"{MARKER}hello\n")
    nvim.keys(":ParleyAgent<CR>")
    nvim.until_screen("Type number and <Enter>")
    nvim.keys("<C-c>")
    nvim.until(lambda: "Type number" not in nvim.screen(), "the end of the list")
    assert "traceback" not in nvim.messages()


def test_a_new_chat_names_its_agent_until_the_question_is_written(nvim: Child) -> None:
    says = "Demo answers · built in, needs no key · <C-g>a for another"
    nvim.command("ParleyChatNew")
    nvim.until_screen(f"{MARKER} {says}")
    nvim.keys("h")
    nvim.until(lambda: says not in nvim.screen(), "the question alone")
    nvim.keys("<Esc>")
    assert nvim.lines()[-1] == f"{MARKER}h"


def test_the_user_who_picks_an_agent_decides_whether_the_file_names_it(
    nvim: Child, home: Path
) -> None:
    nvim.edit("keep.md", f"---\ntopic: a\n---\n\n{MARKER}say: one\n")
    before = nvim.lines()
    nvim.lua(LIST + "_G.wish, _G.answer = 'Demo', 1")
    nvim.command("ParleyAgent")
    nvim.until(lambda: "this chat now uses Demo" in nvim.messages(), "the agent")
    assert nvim.lua("return _G.titles") == ["Agent", "Agent of this chat: Demo"]
    assert nvim.lines() == before
    nvim.lua("_G.answer = 2")
    nvim.command("ParleyAgent")
    nvim.until(
        lambda: nvim.lines()[:4] == ["---", "topic: a", "agent: Demo", "---"],
        "the agent in the file",
    )
    nvim.keys("u")
    nvim.until(lambda: nvim.lines() == before, "one step of undo")
    nvim.command("ParleyAgent! Demo-OpenAI")
    nvim.until(lambda: nvim.lines()[2] == "agent: Demo-OpenAI", "the other agent in the file")
    nvim.command("ParleyRespond")  # Parley does not ask for confirmation
    nvim.until_text("\U0001f916:[Demo-OpenAI]\n\none")
    nvim.until_idle()
    nvim.lua("vim.api.nvim_buf_set_lines(0, 2, 3, true, {'model: other'})")
    nvim.command("ParleyAgent! Demo")
    nvim.until(
        lambda: "sets model. Write the agent there yourself" in nvim.messages(), "the reason"
    )


def test_a_chosen_agent_stays_when_the_file_is_read_again(nvim: Child) -> None:
    path = nvim.edit("again.md", f"{MARKER}say: one\n")
    nvim.command("ParleyAgent Demo-OpenAI")
    nvim.until(lambda: nvim.variable("parley_agent") == "Demo-OpenAI", "the agent")
    for way in ("edit!", f"bwipeout! | edit {path}"):
        nvim.command(way)
        nvim.until(lambda: nvim.variable("parley_agent") == "Demo-OpenAI", f"the agent after {way}")
        nvim.command("ParleyRespond!")
        nvim.until_text("\U0001f916:[Demo-OpenAI]\n\none")
        nvim.until_idle()
        assert "answered last" not in nvim.messages()


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """A Neovim whose default agent is not the demo's, although the demo model answers for it."""
    with hanging_model() as model:
        provider = {"kind": "openai", "api": "chat", "base_url": f"{model.url}/v1"}
        agent = {"name": "Near", "provider": "near", "model": "demo"}
        options = {"providers": {"near": provider}, "agents": [agent], "agent": "Near"}
        init = f"require('parley').setup(vim.json.decode({json.dumps(json.dumps(options))}))"
        with child(tmp_path_factory.mktemp("near"), init=init) as nvim:
            yield nvim


SAYS = (
    "Parley: Demo answered last, but Near would answer now. Press again to ask Near, or use "
    ":ParleyAgent"
)
ANSWERED = f"{MARKER}say: one\n\n\U0001f916:[Demo]\n\none\n\n{MARKER}say: two\n"


def test_a_changed_agent_is_named_before_the_question_is_sent(near: Child) -> None:
    near.edit("other.md", ANSWERED)
    near.command("normal! G")
    near.command("ParleyRespond")
    near.until(lambda: SAYS in near.messages(), "the message")
    near.until_idle()
    assert near.text() == ANSWERED.rstrip("\n")
    near.command("ParleyRespond")
    near.until_text("\U0001f916:[Near]\n\ntwo")
    near.until_idle()
    assert near.messages().count(SAYS) == 1


def test_a_chosen_agent_is_not_announced(near: Child) -> None:
    near.edit("chosen.md", ANSWERED)
    near.command("messages clear")
    near.command("normal! G")
    near.command("ParleyAgent Near")
    near.command("ParleyRespond")
    near.until_text("\U0001f916:[Near]\n\ntwo")
    near.until_idle()
    assert "answered last" not in near.messages()


def test_an_approval_does_not_count_before_the_changed_agent_is_named(near: Child) -> None:
    near.edit("yes.md", f"{MARKER}hi\n\n\U0001f916:[Demo]\n\nok\n\n{CALL}\n")
    near.command("messages clear")
    near.until_waiting()
    near.command("normal! G")
    near.command("ParleyApprove ya")
    near.until(lambda: SAYS in near.messages(), "the message")
    near.until_waiting()
    assert "[ya]" not in near.text()
