"""In a folder of somebody else's, nothing of it runs, is imported, or says where packages come from."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.hostile import Hostile, hostile
from nvim.harness import ROOT, child, nvim_path


@pytest.fixture
def there(tmp_path: Path) -> Hostile:
    folder = tmp_path / "theirs"
    folder.mkdir()
    return hostile(folder)


@dataclass(frozen=True)
class Checkout:
    """The plugin, with a lock of one package that lies in a folder; `environ` is a user's."""

    root: Path
    environ: dict[str, str]


def wheel(folder: Path) -> str:
    """A package in a folder; the SHA-256 of its file."""
    folder.mkdir()
    path, info = folder / "innocent-1.0-py3-none-any.whl", "innocent-1.0.dist-info"
    files = {
        "innocent.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: innocent\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
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
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    for tool in ("PIP", "UV"):
        environ |= {f"{tool}_NO_INDEX": "1", f"{tool}_FIND_LINKS": str(packages)}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path), "UV_PYTHON_DOWNLOADS": "never"}
    return Checkout(root, environ)


def path_for(tmp_path: Path, tool: str) -> str:
    """A PATH with which `tool` installs; skips where it is not there."""
    if tool == "uv":
        if shutil.which("uv") is None:
            pytest.skip("uv is not installed")
        return os.environ["PATH"]
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    return os.pathsep.join((str(folder), "/usr/bin", "/bin"))


def is_complete(checkout: Checkout) -> bool:
    """Whether the environment holds what the lock says."""
    places = list(Path(checkout.environ["XDG_DATA_HOME"]).rglob(".ok"))
    return any(list(place.parent.rglob("innocent.py")) for place in places)


@pytest.mark.parametrize(("tool", "command"), [("pip", "ParleyRespond"), ("uv", "ParleyInstall")])
def test_a_command_that_installs_runs_nothing_of_the_folder(
    tmp_path: Path, there: Hostile, checkout: Checkout, tool: str, command: str
) -> None:
    env = {**checkout.environ, **there.environ(path_for(tmp_path, tool))}
    with child(tmp_path, root=checkout.root, env=env) as nvim:
        nvim.command(f"cd {there.folder}")
        nvim.edit("theirs/chat.md", "💬: hi\n")
        nvim.command(command)
        nvim.until(lambda: is_complete(checkout), "the environment")
        nvim.until(lambda: "the Python environment is ready" in nvim.messages(), "the message")
        if command == "ParleyRespond":  # the host of that environment ends: it has no pynvim but the folder's
            nvim.until(lambda: "No module named 'pynvim'" in nvim.messages(), "the end of the host")
        nvim.command("silent checkhealth parley")
    assert there.ran() == []


def build(checkout: Checkout, folder: Path, env: dict[str, str]) -> str:
    """What `build.lua` says, run in a folder as lazy.nvim runs it."""
    lazy = (
        f"local build = coroutine.create(assert(loadfile({str(checkout.root / 'build.lua')!r}))) "
        "while coroutine.status(build) ~= 'dead' do local ok, said = coroutine.resume(build) "
        "print(said) end"
    )
    command = [nvim_path(), "--clean", "--headless", f"+cd {folder}", "+lua " + lazy, "+qall!"]
    env = {**os.environ, **checkout.environ, **env}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stderr


def test_the_build_script_runs_nothing_of_the_folder(
    tmp_path: Path, there: Hostile, checkout: Checkout
) -> None:
    said = build(checkout, there.folder, there.environ(path_for(tmp_path, "uv")))
    assert "the Python environment is ready" in said
    assert is_complete(checkout)
    assert there.ran() == []


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_package_that_is_not_what_the_lock_says_is_not_installed(
    tmp_path: Path, there: Hostile, checkout: Checkout, tool: str
) -> None:
    lock = checkout.root / "requirements.lock"
    lock.write_text(f"innocent==1.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    said = build(checkout, there.folder, there.environ(path_for(tmp_path, tool)))
    assert "making the Python environment failed" in said
    assert not is_complete(checkout)
    assert there.ran() == []


def test_another_lock_is_another_environment(tmp_path: Path, checkout: Checkout) -> None:
    def folder() -> str:
        with child(tmp_path, root=checkout.root) as nvim:
            return str(nvim.lua("return require('parley.install').dir()"))

    before = folder()
    lock = checkout.root / "requirements.lock"
    lock.write_text(lock.read_text(encoding="utf-8") + "# renewed\n", encoding="utf-8")
    assert folder() != before
