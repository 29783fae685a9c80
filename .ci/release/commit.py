"""Whether a commit is a version, by its version file, its tags and its work tree. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

VERSION_FILE = "python/parley/__init__.py"
"""The only file with the version. The package's metadata, the manual page, the rockspec and the
archives get the version from this file.
"""
_VERSION = re.compile(r'^__version__ = "([^"]*)"$', re.M)
_RELEASE = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_FEW = 5


def version_problems(
    version: str, text: str, tags: Mapping[str, str], commit: str, *, is_tagged: bool
) -> Iterator[str]:
    """Reasons why this commit, with this text of the version file, is not this version."""
    if not _RELEASE.fullmatch(version):
        yield f"VERSION={version}: expected three numbers, such as 0.2.0. Pass such a version"
        return
    match = _VERSION.search(text)
    if match is None or match[1] != version:
        own = f"the code is version {match[1]}" if match else "the code has no `__version__`"
        yield f'{VERSION_FILE}: {own}. Set `__version__ = "{version}"`, then run `make man`'
    tag = f"v{version}"
    if is_tagged and tag not in tags:
        yield f"{tag}: there is no such tag. Create it with `make release VERSION={version} TAG=yes`"
    if tag in tags and tags[tag] != commit:
        yield f"{tag}: the tag is at another commit. Check that out, or release the next version"
    if tag in tags and not is_tagged and tags[tag] == commit:
        yield f"{tag}: the tag exists. Push it, or release the next version"
    released = [_numbers(name[1:]) for name in tags if _RELEASE.fullmatch(name[1:]) and name != tag]
    if released and max(released) > _numbers(version):
        newest = ".".join(map(str, max(released)))
        yield f"VERSION={version}: {newest} is already tagged. Name a version after it"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def checkout_problems(changes: Sequence[str]) -> Iterator[str]:
    """Reasons why the work tree differs from the last commit."""
    for change in changes[:_FEW]:
        yield f"{change[3:]}: not in the last commit. Commit it, or remove it"
    if len(changes) > _FEW:
        yield f"{len(changes) - _FEW} more files: not in the last commit. `git status` lists them"
