"""The host: started on demand in both ways, found, installed, lost and replaced."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvim.harness import ROOT, Child, child, nvim_path

MARKER = "\U0001f4ac:"
HELLO = f"{MARKER} say: hello there\n"
LIGHT = (
    "require('parley').setup({ agent = 'Light', agents = "
    "{ { name = 'Light', provider = 'demo-openai', model = 'demo', tool_mode = 'off' } } })\n"
)
"""An agent whose host starts quickly: it imports the smaller SDK, and no servers."""


def answered(nvim: Child) -> None:
    nvim.until(
        lambda: "\nhello there\n" in nvim.text() and nvim.lines()[-1] == f"{MARKER} ", "the answer"
    )


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def host_pid(nvim: Child) -> int:
    pid: int = nvim.lua("return vim.fn.jobpid(require('parley.host').state().channel)")
    return pid


def test_at_startup_nothing_is_loaded_and_no_process_starts(tmp_path: Path) -> None:
    with child(tmp_path) as nvim:
        loaded = (
            "return vim.tbl_filter(function(m) return m:find('^parley') end, "
            "vim.tbl_keys(package.loaded))"
        )
        assert nvim.lua(loaded) == []
        assert nvim.nvim.funcs.exists(":ParleyRespond") == 2
        assert nvim.nvim.funcs.mapcheck("<Plug>(ParleyRespond)", "n") != ""
        nvim.edit("notes.md", "# Notes\n\nno chat\n")
        nvim.keys(":<Esc>")
        assert [c for c in nvim.nvim.api.list_chans() if c["stream"] == "job"] == []


def test_a_chat_starts_its_host_which_ends_with_neovim(tmp_path: Path) -> None:
    with child(tmp_path) as nvim:
        nvim.edit("chat.md", HELLO)
        nvim.until(
            lambda: nvim.lua("return require('parley.host').state().started_in_ms"), "the host"
        )
        pid = host_pid(nvim)
        assert is_alive(pid)
    assert not is_alive(pid)


def test_the_host_starts_before_the_chat_is_set_up(tmp_path: Path) -> None:
    (tmp_path / "chat.md").write_text(HELLO, encoding="utf-8")
    edit = (
        "vim.cmd.edit('chat.md') return { require('parley.host').state().channel ~= nil, "
        "require('parley.chat').is_attached(0) }"
    )
    with child(tmp_path) as nvim:
        assert nvim.lua(edit) == [True, False]
        nvim.until(lambda: nvim.lua("return require('parley.chat').is_attached(0)"), "the chat")


def test_wrong_settings_are_named_and_the_rest_works(tmp_path: Path) -> None:
    init = (
        "require('parley').setup({ agent = 'Dmeo', thinking = { budget_tokens = 'many' }, "
        "nonsense = 1 })"
    )
    with child(tmp_path, init=init) as nvim:
        nvim.edit("chat.md", HELLO)
        nvim.until(lambda: nvim.messages().count("Parley: ") == 3, "the complaints")
        said = nvim.messages()
        assert 'thinking.budget_tokens: expected an integer ≥ 1024, got "many"' in said
        assert "did you mean Demo?" in said
        assert "nonsense: there is no such setting" in said
        nvim.until(lambda: nvim.variable("parley_agent") == "Demo", "the default")


def test_a_dead_host_is_reported_and_the_next_question_starts_another(tmp_path: Path) -> None:
    with child(tmp_path, init=LIGHT, env={"PARLEY_DEMO_PACE": "0.01"}) as nvim:
        nvim.edit("chat.md", f"{MARKER} write 2000 words\n")
        nvim.command("ParleyRespond")
        nvim.until(lambda: len(nvim.text()) > 100, "some text")
        os.kill(host_pid(nvim), 9)
        nvim.until(lambda: "the Python host exited with code 137" in nvim.messages(), "the message")
        assert nvim.variable("parley_status") == ""
        nvim.edit("other.md", HELLO)
        nvim.command("ParleyRespond")
        answered(nvim)


def test_a_missing_python_is_reported_with_a_remedy(tmp_path: Path) -> None:
    with child(tmp_path, init="vim.g.parley_python = '/nowhere/python'") as nvim:
        nvim.edit("chat.md", HELLO)
        nvim.command("ParleyRespond")
        nvim.until(lambda: "cannot start /nowhere/python" in nvim.messages(), "the message")
        assert ":ParleyInstall" in nvim.messages()


def test_the_classic_way_works_with_the_same_plugin(tmp_path: Path) -> None:
    init = LIGHT + f"vim.g.python3_host_prog = {sys.executable!r}\nvim.g.parley_host = 'python3'"
    with child(tmp_path, init=init, rplugin=True) as nvim:
        nvim.edit("chat.md", HELLO)
        nvim.command("ParleyRespond")
        nvim.until(lambda: "Run :UpdateRemotePlugins" in nvim.messages(), "the advice")
        nvim.command("silent UpdateRemotePlugins")
    with child(tmp_path, init=init, rplugin=True) as nvim:
        nvim.edit("chat.md", HELLO)
        nvim.command("ParleyRespond")
        answered(nvim)
        assert nvim.nvim.funcs.exists("*_ParleyAttach") == 1


# --- Installing ---

UV = """#!/bin/sh
echo "$@" >> {log}
shift
case "$1" in
venv)
  for dir; do :; done
  mkdir -p "$dir/bin"
  cp {python} "$dir/bin/python" ;;
pip) {pip} ;;
esac
"""


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[tuple[Path, Path, dict[str, str]]]:
    """A copy of the plugin without an environment, and a folder for a fake `uv` on the PATH."""
    root, bin_ = tmp_path / "plugin", tmp_path / "bin"
    root.mkdir()
    bin_.mkdir()
    for name in ("lua", "plugin", "python", "rplugin", "requirements.lock", "build.lua"):
        (root / name).symlink_to(ROOT / name)
    return root, bin_, {"PATH": f"{bin_}:{os.environ['PATH']}"}  # type: ignore[return-value]


def uv(folder: Path, pip: str = ":") -> Path:
    log, python = folder / "uv.log", folder / "wrapper"
    scripts = {
        python: f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n',
        folder / "uv": UV.format(log=log, python=python, pip=pip),
    }
    for program, script in scripts.items():
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
    return log


def test_the_first_question_installs_the_environment_and_is_then_answered(
    tmp_path: Path, installed: tuple[Path, Path, dict[str, str]]
) -> None:
    root, bin_, env = installed
    log = uv(bin_)
    with child(tmp_path, init=LIGHT, root=root, env=env) as nvim:
        nvim.edit("chat.md", HELLO)
        nvim.keys(":<Esc>")
        assert not log.exists(), "opening a chat installs nothing"
        nvim.command("ParleyRespond")
        answered(nvim)
        assert "the Python environment is ready" in nvim.messages()
        where = Path(nvim.lua("return require('parley.install').dir()"))
        assert (where / ".ok").exists()
        assert where.parent == tmp_path / "data" / "nvim" / "parley"
        nvim.command("ParleyInstall")
        nvim.until(lambda: "the Python environment is complete" in nvim.messages(), "the message")
    wanted = log.read_text(encoding="utf-8")
    assert "--no-config pip install --compile-bytecode --python" in wanted
    assert f"--require-hashes --only-binary :all: -r {root}/requirements.lock" in wanted


def test_a_new_chat_opens_at_once_and_reports_the_installation(
    tmp_path: Path, installed: tuple[Path, Path, dict[str, str]]
) -> None:
    root, bin_, env = installed
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    uv(bin_, pip=f"cat {gate}")
    with child(tmp_path, init=LIGHT, root=root, env=env) as nvim:
        nvim.keys(":ParleyChatNew<CR>say: hello there")
        nvim.until(lambda: nvim.lines()[-1] == f"{MARKER} say: hello there", "what is typed")
        nvim.until_screen("Creating the Python environment (once; takes up to a minute)...")
        assert "Press ENTER" not in nvim.screen()
        nvim.keys("<C-g><C-g>")
        gate.write_text("", encoding="utf-8")
        answered(nvim)
        assert "the Python environment is ready" in nvim.messages()
        assert "Creating the Python environment" not in nvim.screen()
        nvim.until(lambda: nvim.variable("parley_status") == "", "the end of the turn")


def test_a_new_chat_without_a_possible_installation_says_so_and_is_writable(
    tmp_path: Path, installed: tuple[Path, Path, dict[str, str]]
) -> None:
    root, bin_, env = installed
    uv(bin_, pip="echo 'no space left on device' >&2; exit 3")
    with child(tmp_path, root=root, env=env) as nvim:
        nvim.keys(":ParleyChatNew<CR>hello")
        nvim.until(lambda: "no space left on device" in nvim.messages(), "the message")
        assert nvim.lines()[-1] == f"{MARKER} hello"
        assert Path(nvim.name).exists()
        assert nvim.variable("parley_status") == ""
        assert not nvim.lua("return require('parley.handle').busy(0)")


def test_a_failed_installation_names_the_reason_and_the_command_to_type(
    tmp_path: Path, installed: tuple[Path, Path, dict[str, str]]
) -> None:
    root, bin_, env = installed
    uv(bin_, pip="echo 'no space left on device' >&2; exit 3")
    with child(tmp_path, root=root, env=env) as nvim:
        nvim.edit("chat.md", HELLO)
        nvim.command("ParleyRespond")
        nvim.until(
            lambda: "exited with 3: no space left on device" in nvim.messages(), "the message"
        )
        assert "then try :ParleyInstall again" in nvim.messages()
        uv(bin_)
        nvim.command("ParleyInstall")
        nvim.until(lambda: "the Python environment is ready" in nvim.messages(), "the second try")


def test_the_build_script_installs_before_the_plugin_is_loaded(
    tmp_path: Path, installed: tuple[Path, Path, dict[str, str]]
) -> None:
    root, bin_, env = installed
    uv(bin_)
    lazy = (
        f"local build = coroutine.create(assert(loadfile({str(root / 'build.lua')!r}))) "
        "while coroutine.status(build) ~= 'dead' do "
        "local ok, said = coroutine.resume(build) "
        "if not ok then error(said) end if said then print(said) end end"
    )
    ran = subprocess.run(
        [nvim_path(), "--clean", "--headless", "+lua " + lazy, "+qall!"],
        env={**os.environ, **env, "XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "the Python environment is ready" in ran.stderr
    assert list((tmp_path / "data").rglob(".ok"))


def test_the_health_report_names_the_installed_parts(nvim: Child) -> None:
    nvim.command("silent checkhealth parley")
    nvim.until(lambda: "parley: keys" in nvim.text(), "the report")
    text = nvim.text()
    assert "the host answers" in text
    assert (
        "Claude: claude-sonnet-5-5 of anthropic: no key. To use the agent: export "
        "ANTHROPIC_API_KEY=..." in text
    )
    assert re.search(r"mock: ready(, protocol \S+)?, 1 tool$", text, re.M)
    assert re.search(r"Neovim \d+\.\d+\.\d+(-\S+)?$", text, re.M)
    assert "ERROR" not in text
