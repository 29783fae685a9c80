"""Programs that Parley starts: their files, their PATH and their working directory.

A stranger may have written the files in the user's working directory. So neither this directory nor
relative parts of PATH ("", ".", "bin") decide which program runs. Does not know the programs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from parley.addresses import MASK
from parley.late_patterns import late_pattern
from parley.paths import private_folder, state_folder

_PASSED_ON = frozenset(
    (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *(
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
            "GIT_SSL_CAINFO",
        ),
        *(
            "NODE_EXTRA_CA_CERTS",
            "NODE_USE_SYSTEM_CA",
            "PIP_CERT",
            "UV_SYSTEM_CERTS",
            "UV_NATIVE_TLS",
        ),
        *("DENO_CERT", "DENO_TLS_CA_STORE", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE"),
        *("LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"),
    )
)
_PASSED_ON_BEGIN = ("LC_", "XDG_")
"""Variables that describe the system and its network access; none ever contains an API key."""


_PROGRAM = late_pattern(r"(?:~?/|\./).*|[a-z][a-z._-]{0,30}")
"""Words that are probably programs, not keys."""


def surroundings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables, besides `PATH`, `HOME` and the like, that a stranger's program receives."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _PASSED_ON or name.startswith(_PASSED_ON_BEGIN)
    }


def search_path(path: str | None = None) -> str:
    """The absolute folders in a PATH, by default in this process's PATH."""
    elements = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return os.pathsep.join(element for element in elements if element.startswith("/"))


def program(command: str, path: str | None = None, folder: Path | None = None) -> str | None:
    """The path of a program; None if there is no executable file.

    A plain name is searched for in the absolute folders of `path`. A relative path is relative to
    `folder`; if `folder` is None, a relative path is never found.
    """
    place = Path(command).expanduser() if command.startswith("~/") else Path(command)
    if os.path.dirname(command) and not place.is_absolute():  # noqa: PTH120 - pathlib drops a leading "./"
        if folder is None:
            return None
        place = folder / place
    return shutil.which(str(place), path=search_path(path))


def program_name(command: Sequence[str]) -> str:
    """A command's program, for display; a word that may be a mistyped secret is hidden."""
    return command[0] if _PROGRAM.fullmatch(command[0]) else MASK


def start_folder(setting: str, folder: Path) -> Path | None:
    """The folder in a setting, relative to `folder`; None if the home folder for its `~user` is
    unknown.
    """
    try:
        return folder / Path(setting).expanduser()
    except RuntimeError:
        return None


def working_folder(environ: Mapping[str, str]) -> str:
    """The folder where programs start: Parley's own folder, or `/` if Parley's folder cannot be
    created.
    """
    try:
        return str(private_folder(private_folder(state_folder(environ)) / "work"))
    except OSError:
        return "/"
