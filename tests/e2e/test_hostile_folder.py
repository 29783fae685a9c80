"""In another person's folder, Parley neither runs nor imports its files, and its files never choose
a package source.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.e2e.hostile import INDEX, Hostile, hostile
from tests.nvim.hanging_model import hanging_model
from tests.nvim.harness import ROOT, child, nvim_path


@pytest.fixture
def there(tmp_path: Path) -> Hostile:
    folder = tmp_path / "theirs"
    folder.mkdir()
    return hostile(folder)


@dataclass(frozen=True)
class Checkout:
    """The plugin, with a lock file for one package in a local folder; `environ` is the user's
    environment.
    """

    root: Path
    environ: dict[str, str]


def wheel(folder: Path) -> str:
    """Build a package in a folder; return the file's SHA-256."""
    folder.mkdir()
    path, info = folder / "innocent-1.0-py3-none-any.whl", "innocent-1.0.dist-info"
    files = {
        "innocent.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: innocent\nVersion: 1.0\n",
        f"{info}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(f"{name},sha256={_hash(text)},{len(text)}\n" for name, text in files.items())
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(name, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, packages = tmp_path / "plugin", tmp_path / "packages"
    root.mkdir()
    for name in ("lua", "plugin", "python", "rplugin", "build.lua"):
        (root / name).symlink_to(ROOT / name)
    lock = f"innocent==1.0 --hash=sha256:{wheel(packages)}\n"
    (root / "requirements.lock").write_text(lock, encoding="utf-8")
    environ = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower())
        for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages), "PIP_CONFIG_FILE": os.devnull}
    environ |= {"UV_OFFLINE": "1", "UV_FIND_LINKS": str(packages), "HOME": str(tmp_path)}
    return Checkout(root, environ)


def path_for(tmp_path: Path, tool: str) -> str:
    """A PATH with which `tool` installs packages; skips the test without the tool."""
    if tool == "uv":
        if shutil.which("uv") is None:
            pytest.skip("uv is not installed")
        return os.environ["PATH"]
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    return os.pathsep.join((str(folder), "/usr/bin", "/bin"))


def is_complete(checkout: Checkout) -> bool:
    """Whether the environment has the lock file's packages."""
    places = list(Path(checkout.environ["XDG_DATA_HOME"]).rglob(".ok"))
    return any(list(place.parent.rglob("innocent.py")) for place in places)


@pytest.mark.guests
@pytest.mark.parametrize(("tool", "command"), [("pip", "ParleyRespond"), ("uv", "ParleyInstall")])
def test_a_command_that_installs_runs_nothing_from_the_folder(
    tmp_path: Path, there: Hostile, checkout: Checkout, tool: str, command: str
) -> None:
    env = {**checkout.environ, **there.environ(path_for(tmp_path, tool))}
    with child(tmp_path, root=checkout.root, env=env) as nvim:
        nvim.command(f"cd {there.folder}")
        nvim.edit("theirs/chat.md", "💬: hi\n")
        nvim.command(command)
        nvim.until(lambda: is_complete(checkout), "the environment")
        nvim.until(lambda: "the Python environment is ready" in nvim.messages(), "the message")
        if command == "ParleyRespond":  # the only pynvim on its path is the folder's
            nvim.until(lambda: "No module named 'pynvim'" in nvim.messages(), "the end of the host")
        nvim.command("silent checkhealth parley")
    assert there.ran() == []


def build(checkout: Checkout, folder: Path, env: dict[str, str]) -> str:
    """The output of `build.lua`, run in a folder the way lazy.nvim runs it."""
    lazy = (
        f"local build = coroutine.create(assert(loadfile({str(checkout.root / 'build.lua')!r}))) "
        "while coroutine.status(build) ~= 'dead' do local ok, said = coroutine.resume(build) "
        "print(said) end"
    )
    command = [nvim_path(), "--clean", "--headless", f"+cd {folder}", "+lua " + lazy, "+qall!"]
    env = {**os.environ, **checkout.environ, **env}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stderr


def test_the_build_script_runs_nothing_from_the_folder(
    tmp_path: Path, there: Hostile, checkout: Checkout
) -> None:
    said = build(checkout, there.folder, there.environ(path_for(tmp_path, "uv")))
    assert "the Python environment is ready" in said
    assert is_complete(checkout)
    assert there.ran() == []


@pytest.mark.guests
@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_package_that_differs_from_the_lock_is_not_installed(
    tmp_path: Path, there: Hostile, checkout: Checkout, tool: str
) -> None:
    lock = checkout.root / "requirements.lock"
    lock.write_text(f"innocent==1.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    said = build(checkout, there.folder, there.environ(path_for(tmp_path, tool)))
    assert "cannot create the Python environment" in said
    assert not is_complete(checkout)
    assert there.ran() == []


def test_another_lock_file_makes_another_environment(tmp_path: Path, checkout: Checkout) -> None:
    def folder() -> str:
        with child(tmp_path, root=checkout.root) as nvim:
            return str(nvim.lua("return require('parley.install').dir()"))

    before = folder()
    lock = checkout.root / "requirements.lock"
    lock.write_text(lock.read_text(encoding="utf-8") + "# renewed\n", encoding="utf-8")
    assert folder() != before


# --- Everything that a turn starts ----------------------------------------------------------------

PROGRAM = "#!/bin/sh\necho \"$0 in $PWD with $PATH\" >>'{log}'\n{then}\n"


@dataclass(frozen=True)
class User:
    """A user whose settings start every kind of process; the user's own programs write to `log`."""

    environ: dict[str, str]
    log: Path
    work: Path

    def started(self) -> dict[str, tuple[str, str]]:
        """The folder and the PATH in which each of the user's programs started, by program name."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        found = re.findall(r"(?m)^.*/(\S+) in (.*) with (.*)$", "\n".join(lines))
        return {name: (folder, path) for name, folder, path in found}


SETTINGS = """\
agent = "Local"
[status]
llm = false
[[agents]]
name = "Local"
provider = "local"
model = "refusing"
[[agents]]
name = "Theirs"
provider = "theirs"
model = "theirs"
[providers.theirs]
kind = "package"
[providers.local]
kind = "anthropic"
base_url = {model}
api_key_command = ["keys", "model"]
[mcp.servers.npx]
command = "npx"
args = ["-y", "server"]
[mcp.servers.uvx]
command = "uvx"
args = ["server"]
[mcp.servers.module]
command = {python}
args = ["-m", "server"]
[mcp.servers.relative]
command = "./server"
[mcp.servers.web]
url = "http://127.0.0.1:9/mcp"
token_command = ["keys", "web"]
"""


@pytest.fixture
def user(tmp_path: Path, there: Hostile) -> Iterator[User]:
    bin_, log = tmp_path / "own", tmp_path / "own.log"
    bin_.mkdir()
    for name, then in (("npx", "exit 1"), ("uvx", "exit 1"), ("keys", "echo a-key")):
        (bin_ / name).write_text(PROGRAM.format(log=log, then=then), encoding="utf-8")
        (bin_ / name).chmod(0o755)
    config = tmp_path / "config" / "parley" / "config.toml"
    config.parent.mkdir(parents=True)
    environ = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower())
        for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    path = there.environ(f"{bin_}{os.pathsep}{os.environ['PATH']}")["PATH"]
    with hanging_model() as model:
        model.go.set()
        settings = SETTINGS.format(python=json.dumps(sys.executable), model=json.dumps(model.url))
        config.write_text(settings, encoding="utf-8")
        work = tmp_path / "state" / "parley" / "work"
        yield User({**environ, "HOME": str(tmp_path), "PATH": path}, log, work)


THEIRS = "no installed package has a provider called 'theirs'. Install one"
"""A package in the folder does not count as installed."""


def check_started(user: User, there: Hostile, stderr: str) -> None:
    """Check that the user's programs started in Parley's folder with only absolute folders on the
    PATH.
    """
    assert there.ran() == []
    started = user.started()
    assert set(started) == {"npx", "uvx", "keys"}
    for folder, path in started.values():
        assert folder == str(user.work)
        assert all(element.startswith("/") for element in path.split(os.pathsep))
    assert "No module named server" in stderr
    assert (
        "command: ./server was not found or is not executable. Set cwd, or write the full path"
        in stderr
    )


def test_a_turn_in_neovim_starts_nothing_from_the_folder(
    tmp_path: Path, there: Hostile, user: User
) -> None:
    init = "vim.g.parley_python = " + json.dumps(sys.executable)
    with child(
        tmp_path, init=init, env={**user.environ, "PYTHONPATH": os.pathsep}, width=200
    ) as nvim:
        nvim.command(f"cd {there.folder}")
        nvim.edit("theirs/chat.md", "💬: hi\n")
        nvim.command("ParleyRespond")
        nvim.until(lambda: "local answered 403" in nvim.text(), "the end of the turn")
        check_started(user, there, nvim.messages())
        nvim.until_idle()
        nvim.command("ParleyAgent Theirs")
        nvim.command("1 | ParleyRespond")
        nvim.until(lambda: THEIRS in nvim.messages(), "the end of the other turn")
        nvim.command("silent checkhealth parley")
    assert there.ran() == []


@pytest.mark.parametrize(
    "way", [["-m", "parley"], ["-P", "-m", "parley"], ["-I", "-m", "parley"]], ids=" ".join
)
def test_the_shell_starts_nothing_from_the_folder(
    there: Hostile, user: User, way: list[str]
) -> None:
    if way == ["-m", "parley"]:
        # Python itself imports that package before Parley runs.
        shutil.rmtree(there.folder / "parley")
    chat = there.folder / "chat.md"
    chat.write_text("💬: hi\n", encoding="utf-8")

    def answer_of(agent: str) -> str:
        command = [
            sys.executable,
            *way,
            "respond",
            "--without-missing",
            "--agent",
            agent,
            str(chat),
        ]
        env = {**os.environ, **user.environ}
        ran = subprocess.run(
            command, cwd=there.folder, env=env, capture_output=True, text=True, check=False
        )
        return ran.stdout + ran.stderr

    if way == ["-m", "parley"]:
        assert THEIRS in answer_of("Theirs")
    answer = answer_of("Local")
    assert "local answered 403" in answer
    check_started(user, there, answer)


@pytest.mark.guests
@pytest.mark.skipif(shutil.which("npx") is None, reason="npx is not installed")
async def test_npx_uses_no_program_or_registry_from_the_folder(
    tmp_path: Path, there: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(there.folder)
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("npm_config_offline", "true")
    server = ServerSettings("npx", "npx", ("--no", "server"), {"npm_config_offline": "true"})
    servers = new_servers({"npx": server, "there": replace(server, name="there", cwd=".")})
    await servers.catalogue()
    own, told = servers.status()
    await servers.close()
    assert not [line for line in own.stderr if INDEX in line]
    assert there.ran()[0].startswith("node_modules/.bin/"), "with cwd = '.' the folder is taken"
    assert told.state == own.state == "failed"


@pytest.mark.guests
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
@pytest.mark.parametrize("way", [("run", "--offline"), ("tool", "run", "--offline")], ids=" ".join)
async def test_uv_uses_no_project_program_or_index_from_the_folder(
    tmp_path: Path, there: Hostile, monkeypatch: pytest.MonkeyPatch, way: tuple[str, ...]
) -> None:
    monkeypatch.chdir(there.folder)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    own = ServerSettings("uv", "uv", (*way, "server"), {"UV_PYTHON_DOWNLOADS": "never"})
    servers = new_servers({"uv": own, "there": replace(own, name="there", cwd=".")})
    await servers.catalogue()
    told = {status.name: " ".join(status.stderr) for status in servers.status()}
    await servers.close()
    assert there.ran() == []
    assert told["uv"]
    assert not any(
        word in told["uv"] for word in (INDEX, "of-the-folder", "pyproject.toml", str(there.folder))
    )
    if way[0] == "run":
        assert "of-the-folder" in told["there"], "with cwd = '.' the folder is taken"
