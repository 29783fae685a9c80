"""Sandboxes for commands: bwrap on Linux, sandbox-exec on macOS.

A sandboxed command can write only below the root and into private temporary folders. It cannot see
keys, Parley's own folders, or the sockets of other programs, through which it could leave. It cannot
change the root repository's hooks and settings, because git would run them later, outside. It can
write other files that the user may run later, such as a Makefile, or the settings of a repository in
a folder below the root. Does not know the command.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.paths import config_path, private_file, private_folder, state_folder
from parley.programs import program, search_path
from parley.text import last_words, one_line

Mode = Literal["auto", "require", "off"]

_TRIAL_S = 5.0
_SECRETS = (
    *(".ssh", ".aws", ".gnupg", ".config/gh", ".netrc"),
    *(".git-credentials", ".config/git/credentials", ".docker", ".kube", ".azure"),
    *(".config/gcloud", ".config/op", ".npmrc", ".pypirc", ".cargo/credentials.toml"),
    *(".password-store", ".local/share/keyrings", ".Xauthority"),
)
"""Files and folders in the home folder that contain keys."""
_TEMPORARY = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - these are hidden, not used
"""Folders with other programs' files and sockets: the session bus, terminals, editors."""
_SYSTEM_RUN = (
    *("/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/resolvconf/resolv.conf"),
    *("/run/current-system", "/run/opengl-driver", "/run/wrappers"),
)
"""Parts of /run that programs need: the name servers (resolv.conf(5)) and the system of NixOS."""
_SESSION = (
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
)
"""Variables with the addresses of programs outside of the sandbox."""
_CACHES = {"GOCACHE": "go-build", "UV_CACHE_DIR": "uv", "ZIG_GLOBAL_CACHE_DIR": "zig"}
"""Programs that do not run without a cache to write into; others run without theirs."""
_MAC_SANDBOX = "/usr/bin/sandbox-exec"


@frozen
class Confinement:
    """The limits of a command. All paths exist and are absolute, without links.

    `hidden` are files and folders that it cannot read; `temporary` are folders that it sees empty;
    `locked` are parts of the root that it can read, and `pinned` parts that it cannot replace.
    `empty` is a file without content.
    """

    root: Path
    folder: Path
    hidden: tuple[Path, ...]
    temporary: tuple[Path, ...]
    locked: tuple[Path, ...]
    pinned: tuple[Path, ...]
    has_network: bool
    empty: Path


@frozen
class Start:
    """How to start a command. `why_not` is the reason why it is not sandboxed; "" if it is."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    why_not: str

    @property
    def is_sandboxed(self) -> bool:
        """Whether the command runs in a sandbox."""
        return not self.why_not


class Sandbox:
    """This system's sandbox. It is tried once, with and without a network, before its first use."""

    def __init__(self, environ: Mapping[str, str], platform: str = sys.platform) -> None:
        """`environ` has the user's home folder and PATH."""
        self._environ = environ
        self._is_mac = platform == "darwin"
        self._flaws = dict[bool, str]()

    @asynccontextmanager
    async def start(
        self,
        command: Sequence[str],
        root: Path,
        folder: Path,
        environ: Mapping[str, str],
        *,
        mode: Mode,
        has_network: bool,
    ) -> AsyncIterator[Start]:
        """How to start a command in a folder of the root. Raises ParleyError if the mode requires a
        sandbox and there is none.
        """
        if mode == "off":
            yield Start(tuple(command), environ, "workspace.sandbox is off")
            return
        limits = await asyncio.to_thread(
            confinement, root, folder, self._environ, has_network=has_network
        )
        if has_network not in self._flaws:
            self._flaws[has_network] = await self._flaw(limits)
        flaw = self._flaws[has_network]
        if flaw and mode == "require":
            raise ParleyError(f"not run: workspace.sandbox requires a sandbox, but {flaw}")
        if flaw:
            yield Start(tuple(command), environ, flaw)
            return
        with self._confined(command, limits, environ) as (arguments, variables):
            yield Start(arguments, variables, "")

    async def _flaw(self, limits: Confinement) -> str:
        """The reason why the sandbox does not work here; "" if it works."""
        path = self._program()
        if path is None and self._is_mac:
            return f"{_MAC_SANDBOX} was not found"
        if path is None:
            return "bwrap was not found (the package is usually called bubblewrap)"
        environ = {"PATH": search_path(self._environ.get("PATH"))}
        with self._confined(["/bin/sh", "-c", ":"], limits, environ) as (arguments, variables):
            try:
                words, code = await _output(arguments, variables)
            except TimeoutError:
                return f"{path} did not start within {_TRIAL_S:g} seconds"
            except OSError as error:
                return f"{path} cannot be run: {error.strerror}"
        return f"{path} does not work here: {words}" if code else ""

    def _program(self) -> str | None:
        return program(_MAC_SANDBOX if self._is_mac else "bwrap", self._environ.get("PATH"))

    @contextmanager
    def _confined(
        self, command: Sequence[str], limits: Confinement, environ: Mapping[str, str]
    ) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
        """The command in the sandbox, and its variables."""
        path = self._program() or ""
        if not self._is_mac:
            private = Path("/tmp")  # noqa: S108 - the sandbox has its own
            yield (path, *bwrap_arguments(limits), "--", *command), _variables(environ, private)
            return
        with TemporaryDirectory(prefix="parley-", ignore_cleanup_errors=True) as name:
            private = Path(name).resolve()
            profile = mac_profile(limits, private)
            yield (path, "-p", profile, *command), _variables(environ, private)


def _variables(environ: Mapping[str, str], private: Path) -> dict[str, str]:
    """The variables of a command with this temporary folder."""
    others = {name: value for name, value in environ.items() if name not in _SESSION}
    caches = {name: str(private / folder) for name, folder in _CACHES.items()}
    return {**others, **caches, "TMPDIR": str(private)}


async def _output(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, int]:
    """The last line of a program's output, and its exit code. Raises OSError and TimeoutError."""
    process = await asyncio.create_subprocess_exec(
        *arguments, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=environ, cwd="/"
    )
    try:
        async with asyncio.timeout(_TRIAL_S):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    words = " ".join(last_words(output.decode(errors="replace").split("\n")))
    return one_line(words, 200), process.returncode or 0


def confinement(
    root: Path, folder: Path, environ: Mapping[str, str], *, has_network: bool
) -> Confinement:
    """The limits for commands in this root: looks which of the paths exist."""
    root = root.resolve()
    home = Path(environ.get("HOME") or Path.home())
    secrets = [
        *(home / name for name in _SECRETS),
        *(state_folder(environ), config_path(environ).parent),
    ]
    named = [Path(environ.get(name, "")) for name in ("TMPDIR", "XDG_RUNTIME_DIR")]
    temporary = [
        *map(Path, _TEMPORARY),
        *(path for path in named if path.is_absolute() and not home.is_relative_to(path)),
    ]
    locked, pinned = _repository(root)
    return Confinement(
        root,
        folder.resolve(),
        tuple(_existing(secrets)),
        tuple(_existing(temporary)),
        locked,
        pinned,
        has_network,
        _empty(environ),
    )


def _empty(environ: Mapping[str, str]) -> Path:
    """A file for a hidden file's place. Programs can read it, unlike `/dev/null` in a sandbox."""
    try:
        return private_file(private_folder(state_folder(environ)) / "empty")
    except OSError:
        return Path("/dev/null")


def _existing(paths: Sequence[Path]) -> Iterator[Path]:
    """The paths that exist, without links, each once."""
    with_links_followed = dict.fromkeys(path.resolve() for path in paths)
    return (path for path in with_links_followed if path.exists())


def _repository(root: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The parts of a work tree that decide which programs git runs, and the folder with these parts.

    In a linked work tree, `.git` is a file, and these parts are elsewhere. `commondir` names the
    folder with hooks and settings (gitrepository-layout(5)), `worktrees` has these files of the
    linked work trees.
    """
    git = root / ".git"
    if git.is_symlink() or not git.exists():
        return (), ()
    if git.is_file():
        return (git,), ()
    # Only existing parts can be locked. Git works with these as without them.
    with suppress(OSError):
        (git / "hooks").mkdir(exist_ok=True)
    for name, content in (("config", ""), ("config.worktree", ""), ("commondir", ".\n")):
        with suppress(OSError), (git / name).open("x", encoding="utf-8") as file:
            file.write(content)
    names = ("hooks", "config", "config.worktree", "modules", "commondir", "worktrees")
    return tuple(_existing([git / name for name in names])), (git,)


def bwrap_arguments(limits: Confinement) -> list[str]:
    """The options of bwrap (man bwrap, 0.4 and newer). A later mount covers an earlier one.

    The processes inside end when bwrap ends. Capabilities would let root undo the mounts.
    """
    around = [path for path in limits.hidden if limits.root.is_relative_to(path)]
    options = [
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--unshare-pid", "--unshare-ipc", "--new-session", "--die-with-parent"),
        *("--cap-drop", "ALL"),
        *([] if limits.has_network else ["--unshare-net"]),
    ]
    for path in (*limits.temporary, *around):
        options += ["--tmpfs", str(path)]
    for name in _SYSTEM_RUN:
        options += ["--ro-bind-try", name, name]
    options += ["--bind", str(limits.root), str(limits.root)]
    folders = [path for path in limits.hidden if path not in around and path.is_dir()]
    for path in limits.hidden:
        if path in folders:
            options += ["--tmpfs", str(path)]
        elif path not in around:
            options += ["--ro-bind", str(limits.empty), str(path)]
    for path in limits.pinned:
        options += ["--bind", str(path), str(path)]
    for path in limits.locked:
        options += ["--ro-bind", str(path), str(path)]
    for path in (*around, *folders):
        options += ["--remount-ro", str(path)]
    return [*options, "--chdir", str(limits.folder)]


def mac_profile(limits: Confinement, private: Path) -> str:
    """The profile for sandbox-exec; `private` is the temporary folder. The last matching rule counts.

    The language is not documented; Chromium's sandbox/policy/mac shows most of these rules.
    """
    around = [path for path in limits.hidden if limits.root.is_relative_to(path)]
    inside = [path for path in limits.hidden if path not in around]
    resolver = '(allow network-outbound (literal "/private/var/run/mDNSResponder"))'
    network = (
        ["(deny network-outbound (remote unix-socket))", resolver]
        if limits.has_network
        else ["(deny network*)"]
    )
    rules = [
        *("(version 1)", "(allow default)", "(deny appleevent-send)", *network),
        "(deny file-write*)",
        *(f"(deny file-read* file-write* {_subpath(path)})" for path in around),
        f"(allow file-read* file-write* {_subpath(limits.root)} {_subpath(private)})",
        '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (subpath "/dev/fd"))',
        *(f"(deny file-read* file-write* {_subpath(path)})" for path in inside),
        *(f"(deny file-write* {_subpath(path)})" for path in limits.locked),
        *(f"(deny file-write-unlink (literal {_quoted(path)}))" for path in limits.pinned),
    ]
    return "\n".join(rules)


def _subpath(path: Path) -> str:
    return f"(subpath {_quoted(path)})"


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
