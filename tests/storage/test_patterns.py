"""The files that match a pattern: nearest first, in a limited number of steps, without reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.storage.patterns import LONGEST, SearchBudget, files, is_pattern
from tests.powers import bound_by_permissions

NAMES = ["a.py", "b.md", ".hidden.py", "src/a.py", "src/deep/a.py", "src/.git/a.py", "z/b.py"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path.resolve() / "top"
    for name in NAMES:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    (top / "src" / "loop").symlink_to(top)
    (top / "circle.py").symlink_to(top / "circle.py")
    (top / "linked.py").symlink_to(top / "a.py")
    return top


def budget(names: int = 1_000) -> SearchBudget:
    return SearchBudget(names, lambda: False)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "linked.py"]),
        ("**/a.py", ["a.py", "src/a.py", "src/deep/a.py"]),
        ("src/**", ["src/a.py", "src/deep/a.py"]),
        ("**/**/b.*", ["b.md", "z/b.py"]),
        ("*/a.py", ["src/a.py"]),
        ("./src//[!b].py", ["src/a.py"]),
        ("?.md", ["b.md"]),
        ("none/*", []),
    ],
)
def test_a_pattern_matches_as_in_a_shell(folder: Path, pattern: str, found: list[str]) -> None:
    assert list(files(folder, pattern, budget())) == found
    assert is_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["/etc/*", "../*", "src/../*", "a\0*", "*" * (LONGEST + 1), "out/*"]
)
def test_a_pattern_that_leads_out_or_is_too_long_is_refused(folder: Path, pattern: str) -> None:
    (folder / "out").symlink_to(folder.parent)
    with pytest.raises(ValueError, match=r".*"):
        list(files(folder, pattern, budget()))


def test_a_search_ends_after_its_number_of_names(folder: Path) -> None:
    looks = budget(names=3)
    assert len(list(files(folder, "**/*", looks))) <= 3
    assert looks.ended == "names"


def test_a_search_ends_when_its_time_is_over(folder: Path) -> None:
    looks = SearchBudget(1_000, lambda: True)
    assert list(files(folder, "**/*", looks)) == []
    assert looks.ended == "time"


def test_unreadable_folders_are_counted(folder: Path) -> None:
    (folder / "z").chmod(0)
    looks = budget()
    with bound_by_permissions():
        assert "z/b.py" not in list(files(folder, "**/*.py", looks))
    (folder / "z").chmod(0o700)
    assert (looks.closed, looks.ended) == (1, "")
