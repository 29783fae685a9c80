"""The agent that a file asks for is confirmed as it was shown, and again when another takes its place."""

from __future__ import annotations

from pathlib import Path

from tests.nvim.counting import MARKER
from tests.nvim.harness import Child

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
        agent for said, agent in zip(prompts(nvim), agents, strict=True) if f"agent {agent}" not in said
    ] == []


def test_front_matter_changed_while_the_user_is_asked_is_asked_about_again(nvim: Child) -> None:
    nvim.lua(ASK)
    nvim.edit("swapped.md", chat("Demo-OpenAI"))
    nvim.lua("_G.meanwhile = function() vim.api.nvim_buf_set_lines(0, 1, 2, true, {'agent: Demo-Text'}) end")
    nvim.command("5")
    nvim.command("ParleyRespond")
    until_asked(nvim, ["Demo-OpenAI", "Demo-Text"])
    nvim.until_text("\U0001f916:[Demo-Text]\n\nhello")


def test_a_chat_made_here_asks_about_what_was_not_typed_here(nvim: Child, home: Path) -> None:
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
    path.write_text(chat("Demo-Text"), encoding="utf-8")  # as `git pull` does
    nvim.command("edit!")
    nvim.command("5")
    nvim.command("ParleyRespond")
    until_asked(nvim, ["Demo-Text"])
    nvim.until_text("\U0001f916:[Demo-Text]\n\nhello")


def test_a_yes_in_a_file_from_elsewhere_asks_about_its_agent_first(nvim: Child) -> None:
    nvim.lua(ASK)
    nvim.edit("waiting.md", chat("Demo-OpenAI", "hi") + f"\n🤖:[Demo-OpenAI]\n\nok\n\n{CALL}\n")
    nvim.until_waiting()
    nvim.command("normal! G")
    nvim.command("ParleyApprove ya")
    until_asked(nvim, ["Demo-OpenAI"])
    nvim.until_waiting()
    assert "[ya]" not in nvim.text()


def test_the_list_of_agents_says_which_of_them_have_no_key(nvim: Child) -> None:
    nvim.edit("pick.md", f"{MARKER}hello\n")
    nvim.lua("""
        _G.labels = {}
        vim.ui.select = function(items, opts)
          for _, item in ipairs(items) do table.insert(_G.labels, opts.format_item(item)) end
        end
    """)
    nvim.command("ParleyAgent")
    nvim.until(lambda: nvim.lua("return #_G.labels") > 0, "the list")
    labels = {label.split("  ")[0]: label for label in nvim.lua("return _G.labels")}
    assert labels["Claude"] == "Claude  claude-sonnet-5-5  no key: ANTHROPIC_API_KEY"
    assert labels["Ollama"] == "Ollama  llama3.1"
    assert labels["Demo (now)"] == "Demo (now)  demo"
