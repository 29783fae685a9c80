"""The lines that search_text finds, with and without rg."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.programs import program
from parley.workspace.boundary import Boundary
from parley.workspace.searching import MATCHES_SHOWN, search_text
from parley.workspace.walk import WalkBudget
from tests.workspace.trees import work_tree, write

RG = program("rg")
NO_MATCH = "(no match; hidden, ignored, binary and very large files are not searched)"
FILES: dict[str, str | bytes] = {
    ".gitignore": "out/\n",
    ".ignore": "b.py\n",
    "b.py": "def one():\n    return 'ab'\n",
    "src/a.py": "x = 1\r\none = ab\r\n",
    "src/deep/c.txt": "one\n" * 3,
    "src/wide.txt": "one ab\n".encode("utf-16"),
    "src/latin.txt": "caf\xe9 one\n".encode("latin-1"),
    "src/.hidden": "one\n",
    "out/one.py": "one\n",
    "id_rsa": "one\n",
    "binary": b"one\0\n",
}


@pytest.fixture(scope="module")
def boundary(tmp_path_factory: pytest.TempPathFactory) -> Boundary:
    root = work_tree(tmp_path_factory.mktemp("tree"), FILES)
    (root / "away").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    return Boundary(root)


@pytest.fixture(params=["with rg", "without rg"])
def rg(request: pytest.FixtureRequest) -> str | None:
    if request.param == "with rg" and not RG:
        pytest.skip("rg is not installed")
    return RG if request.param == "with rg" else None


def test_a_text_is_found_in_every_file_that_is_listed(boundary: Boundary, rg: str | None) -> None:
    assert search_text(boundary, "one", rg=rg).split("\n") == [
        "b.py:1: def one():",
        "src/a.py:2: one = ab",
        "src/latin.txt:1: caf\xe9 one",
        "src/wide.txt:1: one ab",
        *(f"src/deep/c.txt:{number}: one" for number in (1, 2, 3)),
    ]
    assert search_text(boundary, "one()", rg=rg) == "b.py:1: def one():"
    assert search_text(boundary, "One", rg=rg) == NO_MATCH
    assert search_text(boundary, "caf\xe9", rg=rg) == "src/latin.txt:1: caf\xe9 one"
    assert search_text(boundary, "one", "src", "*.{py,md}", rg=rg) == "src/a.py:2: one = ab"


def test_a_path_that_the_user_allowed_is_searched(boundary: Boundary, rg: str | None) -> None:
    assert search_text(boundary, "one", "out", rg=rg) == "out/one.py:1: one"
    assert search_text(boundary, "one", "src/.hidden", rg=rg) == "src/.hidden:1: one"
    for path in ("away", "../x"):
        with pytest.raises(ParleyError, match="outside the workspace"):
            search_text(boundary, "root", path, rg=rg)
    with pytest.raises(ParleyError, match="gone does not exist"):
        search_text(boundary, "one", "gone", rg=rg)


def test_regular_expressions_are_found(boundary: Boundary, rg: str | None) -> None:
    def found(pattern: str) -> list[str]:
        text = search_text(boundary, pattern, glob="*.py", is_regex=True, rg=rg)
        return [] if text == NO_MATCH else text.split("\n")

    assert found(r"^x = \d$") == ["src/a.py:1: x = 1"]
    assert found(r"(?i)RETURN\b.*") == ["b.py:2:     return 'ab'"]
    assert found(r"(?<=def )o") == ["b.py:1: def one():"]
    assert found(r"(a)b\1") == []


@pytest.mark.parametrize("pattern", ["(", "a**b(", "[", "(?P<a", "\\"])
def test_an_invalid_expression_is_an_error(boundary: Boundary, pattern: str) -> None:
    with pytest.raises(ParleyError, match="pattern: not a valid regular expression: "):
        search_text(boundary, pattern, is_regex=True, rg=RG)
    assert search_text(boundary, pattern + "unlikely", rg=RG) == NO_MATCH


@pytest.mark.parametrize("pattern", ["", "a\nb", "a" * 2000])
def test_an_unusable_pattern_is_an_error(boundary: Boundary, pattern: str) -> None:
    with pytest.raises(ParleyError, match=r"^pattern: "):
        search_text(boundary, pattern)


def test_context_is_shown_once(tmp_path: Path, rg: str | None) -> None:
    write(tmp_path, {"a": "1\nx\n3\nx\n5\n6\n7\nx\n", "b": "x\n"})
    assert search_text(Boundary(tmp_path), "x", context=1, rg=rg).split("\n") == [
        *("a-1- 1", "a:2: x", "a-3- 3", "a:4: x", "a-5- 5", "--", "a-7- 7", "a:8: x"),
        *("--", "b:1: x"),
    ]


def test_results_are_bounded(tmp_path: Path, rg: str | None) -> None:
    write(tmp_path, {"many": "x\n" * 1000, "long": "-" * 5000 + "match" + "-" * 5000})
    lines = search_text(Boundary(tmp_path), "x", rg=rg).split("\n")
    assert len(lines) == MATCHES_SHOWN + 2
    assert lines[-1].startswith("Left out: further matches")
    line = search_text(Boundary(tmp_path), "match", rg=rg)
    assert len(line) < 500
    assert "…" in line
    assert "match" in line


def test_a_name_cannot_forge_a_match(tmp_path: Path, rg: str | None) -> None:
    write(tmp_path, {"a:1: x\nb": "x\n"})
    assert search_text(Boundary(tmp_path), "x", rg=rg) == '"a:1: x\\nb":1: x'


def test_an_expression_that_never_ends_is_ended(tmp_path: Path) -> None:
    write(tmp_path, {"a": "x\n" + "a" * 40 + "\n"})
    start = time.monotonic()
    budget = WalkBudget(seconds=0.1)
    text = search_text(Boundary(tmp_path), "x|(a|a)+$b", is_regex=True, budget=budget)
    assert text.split("\n")[0] == "a:1: x" or "took too long" in text
    assert time.monotonic() - start < 5


def test_rg_ends_when_time_is_up(tmp_path: Path) -> None:
    slow = tmp_path / "rg"
    slow.write_text("#!/bin/sh\nprintf './a\\0'\nexec sleep 60\n")
    slow.chmod(0o755)
    write(tmp_path, {"tree/a": "x\n"})
    text = search_text(
        Boundary(tmp_path / "tree"), "x", rg=str(slow), budget=WalkBudget(seconds=0.1)
    )
    assert text.endswith("Left out: everything not reached within 0.1 seconds")


def test_rg_neither_reads_settings_nor_decides_what_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path, {"config": "--invert-match\n", "tree/a": "x\n", "tree/.env": "x\n", "out": "x\n"}
    )
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    if RG:
        assert search_text(Boundary(tmp_path / "tree"), "x", rg=RG) == "a:1: x"
    write(tmp_path, {"tree/.rgignore": "a\n"})
    if RG:
        assert search_text(Boundary(tmp_path / "tree"), "x", rg=RG) == "a:1: x"
    (tmp_path / "tree/.rgignore").unlink()
    liar = tmp_path / "rg"
    liar.write_text(
        "#!/bin/sh\nprintf '%s\\0' ./.env ./a ./gone ../out /etc/passwd ./a/../../out\n"
    )
    liar.chmod(0o755)
    assert search_text(Boundary(tmp_path / "tree"), "x", rg=str(liar)) == "a:1: x"


words = st.sampled_from(
    ["ab", "a", "b", " ", ".", "*", "\\d", "1", "^", "$", "[ab]", "(?:ab)", "|", "+"]
)
TEXTS = st.lists(st.text("ab1 .\u00e9", max_size=5), max_size=4).map("\r\n".join)


@pytest.mark.skipif(not RG, reason="rg is not installed")
@given(
    pattern=st.lists(words, min_size=1, max_size=4).map("".join),
    texts=st.lists(TEXTS, max_size=3),
    is_regex=st.booleans(),
)
@example("a$", ["a\r\nb", "ba"], True)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_rg_changes_no_result(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, texts: list[str], is_regex: bool
) -> None:
    if is_regex:
        try:
            re.compile(pattern)
        except re.error:
            return
    root = tmp_path_factory.mktemp("law")
    write(root, {f"{number}/f": text for number, text in enumerate(texts)})
    boundary = Boundary(root)
    assert search_text(boundary, pattern, is_regex=is_regex, rg=RG) == search_text(
        boundary, pattern, is_regex=is_regex
    )
