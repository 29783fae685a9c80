"""Which files each published archive has. Knows names and metadata; reads and builds nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from fnmatch import fnmatch

PLUGIN_FOLDERS = ("doc", "lua", "plugin", "python", "rplugin", "syntax")
"""The folders that the editor needs. LuaRocks moves `lua` to its own folder of Lua modules."""
PLUGIN_FILES = ("LICENSE", "pyproject.toml", "requirements.lock")
"""The single files that the editor needs; LuaRocks moves them to `conf`."""
OTHER_PLUGIN_FILES = ("build.lua", "CHANGELOG.md", "README.md", "SECURITY.md")
"""Further files of the plugin's archive: a plugin manager's hook, and pages."""
DEVELOPMENT = (".ci", ".github", "examples", "tests")
"""Folders for developers."""
_NAMED_FILE = re.compile(r"""\bplace\.file\(["']([^"']+)["']\)""")


@dataclass(frozen=True, slots=True)
class Rock:
    """What LuaRocks installs: Lua modules by name, folders, and single files."""

    modules: Mapping[str, str]
    folders: tuple[str, ...]
    files: tuple[str, ...]

    def covers(self, path: str) -> bool:
        """Whether a file of the repository is in the rock."""
        folder = path.partition("/")[0]
        return path in self.modules.values() or path in self.files or folder in self.folders


def rock(tracked: Collection[str]) -> Rock:
    """The rock of a repository with these files."""
    lua = sorted(path for path in tracked if path.startswith("lua/") and path.endswith(".lua"))
    modules = {path[len("lua/") : -len(".lua")].replace("/", "."): path for path in lua}
    folders = tuple(folder for folder in PLUGIN_FOLDERS if folder != "lua")
    return Rock(
        {name.removesuffix(".init"): modules[name] for name in modules}, folders, PLUGIN_FILES
    )


def plugin_files(tracked: Collection[str]) -> list[str]:
    """The files of the plugin's archive, except the help tags."""
    single = {*PLUGIN_FILES, *OTHER_PLUGIN_FILES}
    return sorted(p for p in tracked if p in single or p.partition("/")[0] in PLUGIN_FOLDERS)


def plugin_problems(tracked: Collection[str], lua: Mapping[str, str]) -> Iterator[str]:
    """Files that are in no list above, and files that the Lua code (text by path) names but the
    rock lacks.
    """
    known = {*PLUGIN_FOLDERS, *DEVELOPMENT}
    for folder in sorted({path.partition("/")[0] for path in tracked if "/" in path} - known):
        yield (
            f"{folder}/: it is in no list, so a release may lack it. Add it to PLUGIN_FOLDERS or "
            "DEVELOPMENT in .ci/release/contents.py, and to MANIFEST.in"
        )
    for path in sorted({*PLUGIN_FILES, *OTHER_PLUGIN_FILES} - set(tracked)):
        yield f"{path}: .ci/release/contents.py names it, but it does not exist. Remove the name"
    made = rock(tracked)
    for path in plugin_files(tracked):
        if path not in OTHER_PLUGIN_FILES and not made.covers(path):
            yield f"{path}: the rockspec lacks it. Add it in .ci/release/contents.py"
    for path, text in sorted(lua.items()):
        for name in _NAMED_FILE.findall(text):
            if name not in PLUGIN_FILES:
                yield f"{path}: it reads {name}, which the rock lacks. Add it to PLUGIN_FILES"


def sdist_problems(tracked: Collection[str], files: Collection[str]) -> Iterator[str]:
    """Differences between the source distribution and the repository."""
    made = {"PKG-INFO", "setup.cfg"}
    others = {
        f for f in files if f not in made and not f.startswith("python/parley_nvim.egg-info/")
    }
    for path in sorted(set(tracked) - others):
        yield f"{path}: the source distribution lacks it. Add it to MANIFEST.in"
    for path in sorted(others - set(tracked)):
        yield f"{path}: it is only in the source distribution. Exclude it in MANIFEST.in"


def wheel_problems(tracked: Collection[str], files: Collection[str]) -> Iterator[str]:
    """Differences between the wheel and the command, the library and the manual page."""
    wanted = {
        path.removeprefix("python/")
        for path in tracked
        if path.startswith("python/parley/") and not path.startswith("python/parley/nvim/")
    }
    own = {path for path in files if ".dist-info/" not in path and ".data/" not in path}
    for path in sorted(wanted - own):
        yield f"python/{path}: the wheel lacks it. Add it to [tool.setuptools] in pyproject.toml"
    for path in sorted(own - wanted):
        yield f"{path}: it is not for the wheel. Exclude it in [tool.setuptools] in pyproject.toml"
    for pattern in ("*.data/data/share/man/man1/parley.1", "*.dist-info/licenses/LICENSE"):
        if not any(fnmatch(path, pattern) for path in files):
            yield f"{pattern}: the wheel lacks it. See data-files and license-files in pyproject.toml"


def metadata_problems(about: Message, scripts: str, version: str) -> Iterator[str]:
    """Differences between a wheel's metadata and this version of the project."""
    for field, value in (("Name", "parley-nvim"), ("Version", version)):
        if about[field] != value:
            yield f"wheel: {field} is {about[field]}, expected {value}. Correct pyproject.toml"
    if "parley = parley.cli:main" not in scripts:
        yield "wheel: it has no command `parley`. See [project.scripts] in pyproject.toml"
    page = str(about.get_payload())
    for link in re.findall(r"\]\((?!https?:|#)([^)]*)\)", page):
        yield f"wheel: its page links to the file {link}, which no index has. See setup.py"
