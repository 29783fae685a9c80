"""The programs that Parley starts: which file a name means, what PATH it gets, in which folder it starts.

The folder that somebody works in may be anybody's. So neither that folder nor what of PATH depends on it ("",
".", "bin") says what runs. Knows nothing of what is started.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from parley.paths import private_folder, state_folder


def search_path(path: str | None = None) -> str:
    """The absolute folders of a PATH, by default this process's."""
    elements = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return os.pathsep.join(element for element in elements if Path(element).is_absolute())


def program(command: str, path: str | None = None, folder: Path | None = None) -> str | None:
    """The path of a program, None where there is none that can be run.

    A plain name is looked for in the absolute folders of `path`; a path that is relative is seen from
    `folder`, and means nothing without one.
    """
    place = Path(command).expanduser() if command.startswith("~/") else Path(command)
    if os.path.dirname(command) and not place.is_absolute():  # noqa: PTH120 - pathlib drops a leading "./"
        if folder is None:
            return None
        place = folder / place
    return shutil.which(str(place), path=search_path(path))


def working_folder(environ: Mapping[str, str]) -> str:
    """A folder of Parley's own in which programs start; where it cannot be made, the root."""
    try:
        return str(private_folder(private_folder(state_folder(environ)) / "work"))
    except OSError:
        return "/"
