"""`:checkhealth parley`: new chats' agent, whether a local model listens, and problems with Python."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.local_server import on_a_thread
from tests.model_servers import ModelServer, served
from tests.nvim.harness import Child, child


def report(nvim: Child) -> str:
    """The report, with each line unwrapped."""
    nvim.command("silent checkhealth parley")
    nvim.until(lambda: "parley: keys" in nvim.text() or "ERROR" in nvim.text(), "the report")
    return nvim.text()


@contextmanager
def address(listens: bool) -> Iterator[str]:
    """A local address, with or without a server, which lists no models."""
    if listens:
        server = ModelServer(lambda *_: (404, {}))
        with on_a_thread(server):
            yield f"{server.url}/v1"
    else:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{unused.getsockname()[1]}/v1"


@pytest.mark.parametrize(
    ("init", "env", "line"),
    [
        ("", {}, "OK new chats use Demo: no key is set, and your settings do not set `agent`"),
        (
            "",
            {"OPENAI_API_KEY": "x"},
            (
                "OK new chats use ChatGPT: it is the first agent below with a key; to use another, "
                "set `agent`"
            ),
        ),
        (
            "require('parley').setup({ agent = 'Gemini' })",
            {},
            "WARNING new chats use Gemini: your settings set `agent` to it, but it has no key",
        ),
        (
            "require('parley').setup({ agent = 'Ollama' })",
            {"OPENAI_API_KEY": "x"},
            "OK new chats use Ollama: your settings set `agent` to it",
        ),
    ],
)
def test_it_names_the_agent_for_new_chats_and_the_reason(
    tmp_path: Path, init: str, env: dict[str, str], line: str
) -> None:
    with child(tmp_path, init=init, env=env) as nvim:
        assert re.search(rf"{re.escape(line)}$", report(nvim), re.M)


@pytest.mark.parametrize(
    ("listens", "line"),
    [
        (
            True,
            "OK Ollama: llama3.1 of ollama at {}: needs no key, and a server is listening there",
        ),
        (
            False,
            (
                "- Ollama: llama3.1 of ollama at {}: nothing is listening there; start the server "
                "to use the agent"
            ),
        ),
    ],
)
def test_it_says_whether_ollama_listens(tmp_path: Path, listens: bool, line: str) -> None:
    with address(listens) as url, child(tmp_path, env={"OLLAMA_BASE_URL": url}) as nvim:
        text = report(nvim)
    assert line.format(url) in text
    ways = "export OPENROUTER_API_KEY=... or :ParleyLogin openrouter"
    assert f"https://openrouter.ai/api/v1: no key. To use the agent: {ways}" in text


def test_it_warns_of_models_that_their_provider_does_not_list_or_is_about_to_end(
    tmp_path: Path,
) -> None:
    init = (
        "require('parley').setup({ agents = { { name = 'Old', provider = 'openai', model = "
        "'gpt-5' }, { name = 'None', provider = 'openai', model = 'gpt-7' }, { name = 'Find', "
        "provider = 'demo-openai', model = 'demo', web_search = true } } })"
    )
    with served("openai") as (url,):
        env = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "x"}
        with child(tmp_path, init=init, env=env, width=300) as nvim:
            text = report(nvim)
    place = f"of openai at {url}: the provider"
    assert f"WARNING Old: gpt-5 {place} stops serving this model on 2026-12-11" in text
    assert f"WARNING None: gpt-7 {place} does not list this model" in text
    assert "Choose another: :ParleyAgent lists the models" in text
    assert "WARNING Find: demo of demo-openai: demo-openai cannot search the web in" in text
    assert f"OK ChatGPT: gpt-6.2-sol of openai at {url}: key found in OPENAI_API_KEY" in text


def test_a_remote_model_is_not_contacted_and_its_address_shows_no_password(
    tmp_path: Path,
) -> None:
    with child(
        tmp_path, env={"OLLAMA_BASE_URL": "http://me:hunter2@models.example/v1?key=hunter2"}
    ) as nvim:
        text = report(nvim)
    assert "Ollama: llama3.1 of ollama at http://…@models.example/v1?…: " in text
    assert "hunter2" not in text
    assert "listens" not in text


@pytest.mark.parametrize(
    ("root", "line"),
    [
        ("notes", "- workspace: its tools work in {}/notes"),
        ("gone", "- workspace is not offered: workspace.root is not a folder: {}/gone"),
    ],
)
def test_it_names_the_workspaces_folder_or_why_there_is_none(
    tmp_path: Path, root: str, line: str
) -> None:
    (tmp_path / "notes").mkdir()
    init = f"require('parley').setup({{ workspace = {{ root = '{tmp_path / root}' }} }})"
    with child(tmp_path, init=init, width=300) as nvim:
        assert line.format(tmp_path) in report(nvim)


def test_everything_that_a_users_python_lacks_is_named_with_its_path(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    python = tmp_path / "bare" / "bin" / "python"
    version = ".".join(map(str, sys.version_info[:3]))
    with child(tmp_path, init=f"vim.g.parley_python = {str(python)!r}", width=300) as nvim:
        text = report(nvim)
    assert f"ERROR {python} is Python {version}: it has no pynvim, anthropic, openai, mcp, " in text
    assert "vim.g.parley_python is set to this Python" in text


def test_a_missing_python_is_named_with_its_path(tmp_path: Path) -> None:
    with child(tmp_path, init="vim.g.parley_python = '/nowhere/python'", width=300) as nvim:
        assert "ERROR /nowhere/python cannot be run: " in report(nvim)


def test_this_python_has_all_requirements_that_the_report_checks() -> None:
    """The report reads them from the plugin's file, like this interpreter."""
    root = Path(__file__).resolve().parents[2]
    code = (root / "lua" / "parley" / "install.lua").read_text(encoding="utf-8")
    code = code.split("M.inventory = [=[\n")[1].split("\n]=]")[0]
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, root / "pyproject.toml"], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
