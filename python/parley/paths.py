"""The paths of Parley's own folders and files, which only the user can access."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from parley.errors import ParleyError

_FOLDER, _FILE = 0o700, 0o600
_OTHERS = 0o077


def state_folder(environ: Mapping[str, str]) -> Path:
    """The folder for data that outlives a process; editor and shell share it."""
    return Path(environ.get("XDG_STATE_HOME") or f"{_home(environ)}/.local/state") / "parley"


def config_path(environ: Mapping[str, str]) -> Path:
    """The settings file that editor and shell read: `$XDG_CONFIG_HOME/parley/config.toml`."""
    folder = environ.get("XDG_CONFIG_HOME") or f"{_home(environ)}/.config"
    return Path(folder) / "parley" / "config.toml"


def chats_folder(environ: Mapping[str, str]) -> Path:
    """The default chat folder, the same as in `lua/parley/known.lua`."""
    return Path(environ.get("XDG_DATA_HOME") or f"{_home(environ)}/.local/share") / "parley/chats"


def _home(environ: Mapping[str, str]) -> str:
    """The home directory. Raises ParleyError if HOME is not set and the account has none.

    Never a relative path: the working directory may be a stranger's project.
    """
    try:
        return environ.get("HOME") or str(Path.home())
    except RuntimeError as error:  # for example in a container
        raise ParleyError("your account has no home directory. Set HOME to one") from error


def private_folder(path: Path) -> Path:
    """Create a folder if necessary, and deny other users access. Raises OSError."""
    path.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    if path.stat().st_mode & _OTHERS:
        path.chmod(_FOLDER)
    return path


def private_file(path: Path) -> Path:
    """Create a file if necessary, and deny other users access. Raises OSError."""
    path.touch(mode=_FILE)
    if path.stat().st_mode & _OTHERS:
        path.chmod(_FILE)
    return path
