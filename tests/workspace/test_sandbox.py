"""Sandboxed commands: the files they can read and write, and their end. A system without a sandbox
skips the tests that need one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import pytest_asyncio

from parley.errors import ParleyError
from parley.processes.reaper import Reaper
from parley.workspace.command_runs import Commands
from parley.workspace.sandbox import Confinement, Sandbox, bwrap_arguments, mac_profile
from tests.child_processes import alive, until
from tests.workspace.test_command_runs import HOST


@pytest.fixture
def home() -> Iterator[Path]:
    """A home folder outside of the temporary folders, which a sandbox hides."""
    tools = Path(__file__).parent.parent.parent / ".tools"
    tools.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=tools) as name:
        yield Path(name)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest_asyncio.fixture
async def commands(home: Path) -> AsyncIterator[Commands]:
    root = home / "project"
    root.mkdir()
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "DISPLAY": ":0"}
    reaper, sandbox = Reaper(), Sandbox(environ)
    try:
        async with sandbox.start(["true"], root, root, environ, mode="require", has_network=False):
            pass
    except ParleyError as error:
        pytest.skip(str(error))
    yield Commands(root, environ, reaper, sandbox, "require")
    await reaper.close()


async def output(commands: Commands, script: str) -> str:
    result = await commands.run(script, ".", 30)
    assert (result.sandboxed, result.why_not_sandboxed) == (True, "")
    return result.output


async def test_only_the_root_and_a_private_temporary_folder_can_be_written(
    commands: Commands, home: Path
) -> None:
    mark = f"parley-{home.name}"
    script = f"""
        echo in >inside && echo out >../outside; echo tmp >/tmp/{mark} && cat /tmp/{mark} inside
        echo "$TMPDIR"; mkdir -p "$GOCACHE"; ls /tmp
        mount -o remount,bind,rw / 2>&1 | sed 's/^/mount: /'; touch ../mounted; rm -r ../project
    """
    text = await output(commands, script)
    assert [line for line in text.split("\n") if "cannot" not in line and ": " not in line] == [
        "tmp",
        "in",
        "/tmp",
        "go-build",
        mark,
        "",
    ]
    assert names(home) - {".local"} == {"project"}
    assert mark not in names(Path("/tmp"))
    assert commands.root.exists()


async def test_keys_and_parleys_own_folders_are_hidden(commands: Commands, home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / ".gnupg").symlink_to("elsewhere")
    for name in (
        *(".ssh/id", ".aws/credentials", "elsewhere/key", ".config/gh/hosts", ".netrc"),
        *(".config/parley/config.toml", ".local/state/parley/ledger", ".config/other", "notes"),
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{name} can be read\n", encoding="utf-8")
    script = f"cd {home} && find . -type f -exec cat {{}} +; touch .ssh/new"
    text = await output(commands, script)
    lines = sorted(line for line in text.split("\n") if line.endswith("can be read"))
    assert lines == [".config/other can be read", "notes can be read"]
    assert text.endswith("touch: cannot touch '.ssh/new': Read-only file system\n")
    assert "denied" not in text, "an empty file does not stop a program as an unreadable one does"


async def test_a_root_among_hidden_files_is_visible(commands: Commands, home: Path) -> None:
    root = home / ".config" / "parley" / "root"
    root.mkdir(parents=True)
    (root.parent / "config.toml").touch()
    inner = Commands(root, commands.environ, commands.reaper, commands.sandbox, "require")
    assert await output(inner, "ls -A ..; touch new ../new 2>/dev/null; ls") == "root\nnew\n"


async def test_the_repository_works_but_its_hooks_and_settings_stay(commands: Commands) -> None:
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    await output(commands, "git init -q")
    (commands.root / ".git" / "worktrees").mkdir()
    script = f"""
        {" ".join(git)} -c safe.directory=* commit -q --allow-empty -m first && echo committed
        git config core.fsmonitor evil || echo 1
        echo evil >.git/hooks/pre-commit || echo 2
        echo evil >.git/config.worktree || echo 3
        mv .git aside || echo 4
        rm -rf .git/hooks .git/config || echo 5
        echo >.git/config || echo 6
        echo ../evil >.git/commondir || echo 7
        rm .git/commondir || echo 8
        mv .git/worktrees .git/old || echo 9
    """
    text = await output(commands, script)
    lines = [line for line in text.split("\n") if len(line) == 1 or line == "committed"]
    assert lines == ["committed", *"123456789"]
    assert not (commands.root / ".git" / "hooks" / "pre-commit").exists()
    assert "evil" not in (commands.root / ".git" / "config").read_text(encoding="utf-8")


async def test_missing_hooks_and_the_file_of_a_linked_work_tree_cannot_be_made(
    commands: Commands,
) -> None:
    (commands.root / ".git").mkdir()
    assert await output(commands, "echo a >.git/config || echo >.git/hooks/b || echo no") != ""
    assert list((commands.root / ".git" / "hooks").iterdir()) == []
    (commands.root / "linked").mkdir()
    (commands.root / "linked" / ".git").write_text("gitdir: ../.git\n", encoding="utf-8")
    linked = Commands(commands.root / "linked", commands.environ, commands.reaper, commands.sandbox)
    text = await output(linked, "echo evil >.git; rm -f .git; mv .git old; cat .git")
    assert text.endswith("gitdir: ../.git\n")


async def test_the_network_and_other_programs_are_out_of_reach(commands: Commands) -> None:
    script = f"""{sys.executable} -c '
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
except OSError as error:
    print(type(error).__name__)
else:
    print("connected")
' PORT; echo "[$DISPLAY]"; ls -A /run | grep -v systemd; kill -0 {os.getpid()} || echo alone"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = script.replace("PORT", str(server.getsockname()[1]))
        text = await output(commands, script)
        assert text.startswith("ConnectionRefusedError\n[]\n")
        assert text.endswith("alone\n")
        online = Commands(
            commands.root, commands.environ, commands.reaper, commands.sandbox, "require", True
        )
        assert (await output(online, script)).startswith("connected\n")


async def test_its_processes_end_with_it_and_with_a_killed_host(commands: Commands) -> None:
    seconds = f"60.{os.getpid()}"

    def running() -> bool:
        return subprocess.run(["pgrep", "-f", f"^sleep {seconds}"], check=False).returncode == 0

    script = f"setsid env -i sleep {seconds}1 & sleep {seconds}2 & sleep 0; echo >begun"
    assert await output(commands, script) == ""
    await until(lambda: not running())
    assert (await commands.run(f"{script}; wait", ".", 0.5)).was_timed_out
    await until(lambda: not running())
    (commands.root / "begun").unlink()
    host = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOST, str(commands.root), f"{script}; wait", "require"),
        env={**os.environ, **commands.environ},
    )
    try:
        await until((commands.root / "begun").exists)
        assert running()
    finally:
        host.kill()
        await host.wait()
    await until(lambda: not running())
    assert not alive(host.pid)


@pytest.mark.parametrize(
    ("program", "flaw"),
    [
        ("", "bwrap was not found (the package is usually called bubblewrap)"),
        (
            "#!/bin/sh\necho no user namespaces >&2; exit 1",
            "PATH does not work here: no user namespaces",
        ),
        ("#!/nowhere", "PATH cannot be run: No such file or directory"),
    ],
)
async def test_a_system_without_a_sandbox_says_why(tmp_path: Path, program: str, flaw: str) -> None:
    path = tmp_path / "bin" / "bwrap"
    path.parent.mkdir()
    if program:
        path.write_text(f"{program}\n", encoding="utf-8")
        path.chmod(0o755)
    flaw = flaw.replace("PATH", str(path))
    environ = {"HOME": str(tmp_path), "PATH": str(path.parent)}
    reaper, sandbox = Reaper(), Sandbox(environ, "linux")
    result = await Commands(tmp_path, environ, reaper, sandbox).run("echo ran", ".", 30)
    assert (result.output, result.sandboxed, result.why_not_sandboxed) == ("ran\n", False, flaw)
    with pytest.raises(ParleyError) as caught:
        await Commands(tmp_path, environ, reaper, sandbox, "require").run("echo ran", ".", 30)
    assert str(caught.value) == f"not run: workspace.sandbox requires a sandbox, but {flaw}"
    await reaper.close()


LIMITS = Confinement(
    root=Path("/home/u/.config/gh/root"),
    folder=Path("/home/u/.config/gh/root/sub"),
    hidden=(Path("/home/u/.config/gh"), Path('/home/u/"k'), Path("/etc")),
    temporary=(Path("/tmp"),),
    locked=(Path("/home/u/.config/gh/root/.git/config"),),
    pinned=(Path("/home/u/.config/gh/root/.git"),),
    has_network=True,
    empty=Path("/state/empty"),
)


def test_the_mounts_are_in_an_order_in_which_each_counts() -> None:
    text = " ".join(bwrap_arguments(LIMITS))
    order = [
        "--ro-bind / /",
        "--tmpfs /tmp",
        "--tmpfs /home/u/.config/gh",
        "--bind /home/u/.config/gh/root /home/u/.config/gh/root",
        '--ro-bind /state/empty /home/u/"k',
        "--tmpfs /etc",
        "--bind /home/u/.config/gh/root/.git /home/u/.config/gh/root/.git",
        "--ro-bind /home/u/.config/gh/root/.git/config",
        "--remount-ro /home/u/.config/gh",
        "--remount-ro /etc",
        "--chdir /home/u/.config/gh/root/sub",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "--unshare-net" not in text


def test_the_rules_of_a_mac_are_in_an_order_in_which_each_counts() -> None:
    root = "/home/u/.config/gh/root"
    assert mac_profile(LIMITS, Path("/private/var/t")).split("\n") == [
        "(version 1)",
        "(allow default)",
        "(deny appleevent-send)",
        "(deny network-outbound (remote unix-socket))",
        '(allow network-outbound (literal "/private/var/run/mDNSResponder"))',
        "(deny file-write*)",
        '(deny file-read* file-write* (subpath "/home/u/.config/gh"))',
        f'(allow file-read* file-write* (subpath "{root}") (subpath "/private/var/t"))',
        '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (subpath "/dev/fd"))',
        '(deny file-read* file-write* (subpath "/home/u/\\"k"))',
        '(deny file-read* file-write* (subpath "/etc"))',
        f'(deny file-write* (subpath "{root}/.git/config"))',
        f'(deny file-write-unlink (literal "{root}/.git"))',
    ]
