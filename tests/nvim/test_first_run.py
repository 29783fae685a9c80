"""A new user's first session, without settings or with a settings file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.nvim.harness import Child, child

BOUND_S = 60.0
MARKER = "\U0001f4ac:"


@contextmanager
def configured(home: Path, config: str, **more: str) -> Iterator[Child]:
    """A Neovim whose user has this settings file."""
    file = home / "config" / "parley" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(config, encoding="utf-8")
    with child(home, **more) as nvim:  # type: ignore[arg-type]
        yield nvim


def key(nvim: Child, lhs: str) -> str:
    """A key's effect in the current buffer."""
    found: str = nvim.lua("return vim.fn.maparg(..., 'n')", lhs)
    return found


def test_without_a_key_the_demo_answers_and_says_so_once(tmp_path: Path) -> None:
    with child(tmp_path, width=200) as nvim:
        nvim.command("ParleyChatNew")
        nvim.keys("say: hello<C-g><C-g>")
        nvim.until_text("\nhello\n", BOUND_S)
        nvim.until_idle(BOUND_S)
        hint = "this is the demo model. To use another model, sign in with :ParleyLogin openrouter, or set"
        assert nvim.messages().count(hint) == 1
        nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} ", "room for the next question", BOUND_S)
        nvim.keys("Gosay: again<C-g><C-g>")
        nvim.until_text("\nagain\n", BOUND_S)
        nvim.until_idle(BOUND_S)
        assert nvim.messages().count("no key is set") == 1


def test_a_user_who_chose_the_demo_gets_no_message_about_keys(tmp_path: Path) -> None:
    with child(tmp_path, init="require('parley').setup({ agent = 'Demo' })") as nvim:
        nvim.command("ParleyChatNew")
        nvim.keys("say: hello<C-g><C-g>")
        nvim.until_text("\nhello\n", BOUND_S)
        nvim.until_idle(BOUND_S)
        assert "no key" not in nvim.messages()


def test_keys_and_the_chat_folder_may_come_from_the_settings_file(tmp_path: Path) -> None:
    config = f"chat_dir = '{tmp_path}/talks'\n[keys]\nrespond = '<C-g>r'\nstop = ''\n"
    with configured(tmp_path, config) as nvim:
        nvim.command("ParleyChatNew")
        nvim.until(lambda: key(nvim, "<C-g>r"), "the key of the file", BOUND_S)
        assert Path(nvim.lua("return vim.api.nvim_buf_get_name(0)")).parent == tmp_path / "talks"
        assert "ParleyRespond" in key(nvim, "<C-g>r")
        assert (key(nvim, "<C-g><C-g>"), key(nvim, "<C-g>x")) == ("", "")


def test_setup_overrides_the_settings_file(tmp_path: Path) -> None:
    config = f"chat_dir = '{tmp_path}/talks'\n[keys]\nrespond = '<C-g>r'\nagent = '<C-g>b'\n"
    init = "require('parley').setup({ keys = { respond = '<C-g>s' } })"
    with configured(tmp_path, config, init=init) as nvim:
        nvim.edit("first.md", f"{MARKER} a question\n")
        nvim.until(lambda: key(nvim, "<C-g>b"), "the key of the file", BOUND_S)
        assert "ParleyRespond" in key(nvim, "<C-g>s")
        assert key(nvim, "<C-g>r") == ""


def test_a_wrong_setting_is_reported_and_everything_starts(tmp_path: Path) -> None:
    init = "require('parley').setup({ loop = { max_iterations = 'many' }, agent = 'Demo-OpenAI' })"
    with configured(tmp_path, "[thinking]\nbudget_tokens = 5\n", init=init, width=200) as nvim:  # type: ignore[arg-type]
        nvim.edit("first.md", f"{MARKER} say: hello\n")
        nvim.until(lambda: key(nvim, "<C-g><C-g>"), "the chat", BOUND_S)
        nvim.keys("<C-g><C-g>")
        nvim.until(lambda: "Parley: " in nvim.messages(), "the problems", BOUND_S)
        nvim.until_text("\nhello\n", BOUND_S)
        nvim.until_idle(BOUND_S)
        told = nvim.messages()
        assert "thinking.budget_tokens: expected an integer ≥ 1024, got 5" in told
        assert 'loop.max_iterations: expected an integer ≥ 1, got "many"' in told
