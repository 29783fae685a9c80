"""The rules that decide which files Git ignores, compared with Git."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.workspace.boundary import Boundary
from parley.workspace.ignored import IgnoreRules, expanded, glob_test
from tests.workspace.trees import git, work_tree, write

FILES = [f"{folder}{name}" for folder in ("", "a/", "a/b/", "b/") for name in ("x.py", "y.log")]
RULES = [
    *("*.log", "!*.log", "!y.log", "/a", "a/", "!a/", "b/", "a/b", "**/b", "a/**", "!a/b/x.py"),
    *("*", "!*/", "!*.py", "# comment", "\\!x", "x.py ", "[x]*.py", "[", "!", "/", "a/*/x.py"),
]
some_rules = st.lists(st.sampled_from(RULES), max_size=4).map("\n".join)


@given(top=some_rules, inner=some_rules, exclude=some_rules)
@settings(max_examples=25, deadline=None)
def test_the_same_files_are_ignored_as_by_git(top: str, inner: str, exclude: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {**dict.fromkeys(FILES, ""), ".gitignore": top, "a/.gitignore": inner}
        root = work_tree(Path(folder).resolve(), files)
        write(root, {".git/info/exclude": exclude})
        asked = "\0".join(FILES).encode()
        ignored = git(root, "check-ignore", "-z", "--stdin", stdin=asked).decode().split("\0")
        boundary = Boundary(root)
        rules = boundary.rules()
        assert [f for f in FILES if boundary.ignores(f, rules, False)] == [*filter(None, ignored)]


def test_rules_above_the_root_apply(tmp_path: Path) -> None:
    top = work_tree(tmp_path, {".gitignore": "*.log\n/sub/secret/\n", "sub/.x/y": ""})
    boundary = Boundary(top / "sub")
    assert boundary.guard("a.log") == boundary.guard("secret/a") == "ignored by Git"
    assert boundary.guard("a.py") == ""
    assert Boundary(top / "sub/.x").guard("y") == ""


HOSTILE = [
    "*a" * 100 + "b",
    "/".join(["*a*a*a"] * 30),
    "**/a/" * 50 + "b",
    "[" * 5_000,
    "a" * 100_000,
    "!" + "*a" * 100,
]


@pytest.mark.parametrize("rule", HOSTILE, ids=lambda rule: rule[:12])
def test_a_hostile_rule_costs_little_time(rule: str) -> None:
    rules = IgnoreRules(lambda _: rule.encode())
    start = time.process_time()
    rules.ignores("/".join(["a" * 120] * 30), is_folder=False)
    assert time.process_time() - start < 2


def test_a_rule_that_is_too_complex_ignores_more_and_re_includes_nothing() -> None:
    many = {".gitignore": b"*.log\n!*a*b*c*d.log\n*a*b*c*d.txt\n"}
    rules = IgnoreRules(many.get)
    assert rules.ignores("axbxcxd.log", is_folder=False)
    assert rules.ignores("axbxcxd.txt", is_folder=False)
    assert rules.ignores("axbxc.py", is_folder=False)
    assert not rules.ignores("x.py", is_folder=False)


def test_files_with_rules_are_read_only_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("*.py\n")
    root = work_tree(tmp_path / "tree", {"big/.gitignore": "# \n" * 200_000 + "*.py\n"})
    (root / ".gitignore").symlink_to(tmp_path / "elsewhere")
    assert Boundary(root).guard("x.py") == Boundary(root).guard("big/x.py") == ""


def test_braces_in_a_glob_are_alternatives() -> None:
    assert expanded("src/*.{ts,tsx}") == ["src/*.ts", "src/*.tsx"]
    assert sorted(expanded("{a,b}{c,d}")) == ["ac", "ad", "bc", "bd"]
    assert set(expanded("{a,{b,c}}x")) == {"ax", "bx", "cx"}
    matches = glob_test("*.{py,pyi}")
    assert list(map(matches, ("a/b.py", "b.pyi", "b.pyc"))) == [True, True, False]


@pytest.mark.parametrize("glob", ["{a,b}" * 20, "!a", "*a*b*c*d"])
def test_a_glob_may_not_be_too_complex(glob: str) -> None:
    with pytest.raises(ParleyError, match="glob: "):
        glob_test(glob)
