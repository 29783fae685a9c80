"""Which files Git ignores: the rules of a work tree's `.gitignore` files and `.git/info/exclude`.

Bounded, because a stranger may have written the rules: limited bytes, rules and wildcards. Reads
no settings outside the work tree, and runs no Git.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from parley.errors import ParleyError
from parley.late_patterns import late_pattern

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RULES_FILE = ".gitignore"
EXCLUDE_FILE = ".git/info/exclude"
RULES_BYTES = 262_144
"""The size limit of a file with rules."""

_MOST_RULES = 2_000
_MOST_STARS = 3
"""The maximum number of runs of stars in a rule: the time to match a path may grow with this power
of its length.
"""
_STARS = late_pattern(r"\*+")
_LONGEST_RULE = 1_000


class IgnoreRules:
    """The rules of one work tree; reads each file once, so create one object for each operation."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        """`read` returns the content of a file of the work tree, or None if there is no such
        file.
        """
        self._read = read
        self._specs = dict[str, "GitIgnoreSpec | None"]()
        self._folders = dict[str, bool]()

    def ignores(self, name: str, *, is_folder: bool) -> bool:
        """Whether Git ignores a file or folder, by its path from the top of the work tree.

        As for Git, everything in an ignored folder is ignored.
        """
        names = name.split("/")
        parents = ["/".join(names[:end]) for end in range(1, len(names))]
        if any(map(self._ignores_folder, parents)):
            return True
        return self._ignores_folder(name) if is_folder else self._ruling(name, name)

    def _ignores_folder(self, name: str) -> bool:
        """Whether a rule for this folder itself ignores it."""
        if name not in self._folders:
            self._folders[name] = self._ruling(name, f"{name}/")
        return self._folders[name]

    def _ruling(self, name: str, path: str) -> bool:
        """The decision of the nearest file with a rule for this path."""
        for folder in _upwards(name):
            spec = self._spec(f"{folder}/{RULES_FILE}" if folder else RULES_FILE)
            inner = path[len(folder) + 1 :] if folder else path
            if spec and (decision := spec.check_file(inner).include) is not None:
                return decision
        spec = self._spec(EXCLUDE_FILE)
        return bool(spec and spec.check_file(path).include)

    def _spec(self, file: str) -> GitIgnoreSpec | None:
        if file not in self._specs:
            content = self._read(file)
            lines = content.decode("utf-8", "surrogateescape").split("\n") if content else []
            self._specs[file] = spec_of(lines) if content else None
        return self._specs[file]


def _upwards(name: str) -> Iterator[str]:
    """The folders that contain a path, nearest first; the last one is ""."""
    while name:
        name = name.rpartition("/")[0]
        yield name


def spec_of(lines: Iterable[str]) -> GitIgnoreSpec:
    """The rules in these lines; flawed rules are left out, as by Git."""
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.base import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    rules = list[GitIgnoreSpecPattern]()
    for line in lines:
        try:
            pattern = GitIgnoreSpecPattern(_bounded(line.removesuffix("\r")))
        except (GitIgnorePatternError, re.error, OverflowError):
            continue
        if pattern.include is not None:
            rules.append(pattern)
        if len(rules) == _MOST_RULES:
            break
    return GitIgnoreSpec(rules)


def _bounded(rule: str) -> str:
    """A rule whose matching takes little time.

    A rule with too many wildcards is cut after a star, so it ignores more than it says, and no
    guarded file is taken for an ordinary one. If such a rule re-includes files, it is dropped.
    """
    stars = list(_STARS.finditer(rule))
    if len(rule) <= _LONGEST_RULE and len(stars) <= _MOST_STARS:
        return rule
    if rule.startswith(("!", "#")):
        return ""
    if len(stars) > _MOST_STARS:
        rule = rule[: stars[_MOST_STARS - 1].end()]
    return rule if len(rule) <= _LONGEST_RULE else rule[:_LONGEST_RULE].rpartition("/")[0]


def expanded(glob: str) -> list[str]:
    """The alternatives of a glob with braces: `*.{ts,tsx}` stands for two globs.

    Raises ParleyError if there are too many.
    """
    globs, most = [glob], 64
    while braces := next((m for g in globs if (m := re.search(r"\{([^{}]*)\}", g))), None):
        whole = braces.string
        globs.remove(whole)
        globs += [
            f"{whole[: braces.start()]}{each}{whole[braces.end() :]}"
            for each in braces[1].split(",")
        ]
        if len(globs) > most:
            raise ParleyError(f"glob: it has more than {most} alternatives")
    return globs


def glob_test(glob: str) -> Callable[[str], bool]:
    """The test of a path for a call's glob: without `/`, a glob matches names at any depth.

    Raises ParleyError if the glob is invalid.
    """
    globs = expanded(glob)
    for each in globs:
        if each.startswith(("!", "#")) or _bounded(each) != each:
            raise ParleyError(f"glob: too complex, or not a glob: {each}")
    spec = spec_of(globs)
    return lambda path: bool(spec.check_file(path).include)
