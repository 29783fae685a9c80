"""The distributions: their content, and their page on an index."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

import parley
from release.build import Distributions, distributions
from release.contents import metadata_problems, sdist_problems, wheel_problems

ROOT = Path(__file__).parent.parent
ADDRESS = "https://example.org/us/parley"
IMPORT_ALL = """
import sys; sys.path.insert(0, sys.argv[1])
from importlib import import_module
[import_module(name) for name in sys.argv[2:]]
import parley; print(parley.__file__)
"""


def tracked() -> frozenset[str]:
    """The repository's files; without a repository or Git, all files except ignored ones."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return unignored(ROOT)
    return frozenset(
        name for name in listed.decode().split("\0") if name and (ROOT / name).exists()
    )


def unignored(root: Path) -> frozenset[str]:
    """A folder's files, without the files that its `.gitignore` names."""
    patterns = [".git", *(root / ".gitignore").read_text(encoding="utf-8").split()]

    def is_ignored(path: str) -> bool:
        name = path.rpartition("/")[2]
        return any(fnmatch(path if "/" in p.rstrip("/") else name, p.strip("/")) for p in patterns)

    found = list[str]()
    for folder, folders, files in os.walk(root):
        prefix = "" if folder == str(root) else f"{Path(folder).relative_to(root).as_posix()}/"
        folders[:] = [name for name in folders if not is_ignored(prefix + name)]
        found += [prefix + name for name in files if not is_ignored(prefix + name)]
    return frozenset(found)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Sdist and wheel from a fresh clone that already contains build products and caches."""
    clone = tmp_path_factory.mktemp("clone")
    for name in tracked():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((ROOT / name).read_bytes())
    junk = (
        "python/parley/__pycache__/x.cpython-311.pyc",
        "doc/tags",
        "tests/__pycache__/y.pyc",
        ".venv/bin/z",
    )
    for name in junk:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).touch()
    return distributions(clone, tmp_path_factory.mktemp("built"), 1_800_000_000)


def test_without_git_the_files_are_all_except_ignored_ones(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    kept = [".gitignore", "README.md", "doc/a.txt", "python/build/x.py", "tests/dist.py"]
    junk = [
        ".git/HEAD",
        ".venv/bin/x",
        "python/a/__pycache__/b.pyc",
        "doc/tags",
        "build/x",
        "dist/y",
        ".coverage.1",
    ]
    for name in [*kept[1:], *junk, "python/p.egg-info/z"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(unignored(tmp_path)) == kept


def test_the_sdist_is_the_whole_repository(built: Distributions) -> None:
    assert list(sdist_problems(tracked(), built.sdist_files)) == []


def test_the_wheel_is_the_command_and_the_library(built: Distributions) -> None:
    assert list(wheel_problems(tracked(), built.wheel_files)) == []


def test_every_module_in_the_wheel_can_be_imported_from_the_wheel_alone(
    built: Distributions,
) -> None:
    modules = [
        name.removesuffix(".py")
        for name in built.wheel_files
        if re.fullmatch(r"parley/.*\.py", name)
    ]
    dotted = [
        m.removesuffix("/__init__").replace("/", ".") for m in modules if not m.endswith("__main__")
    ]
    command = [sys.executable, "-I", "-W", "ignore", "-c", IMPORT_ALL, str(built.wheel), *dotted]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(str(built.wheel))


def test_the_package_names_its_author_purpose_and_kind(built: Distributions) -> None:
    assert list(metadata_problems(built.metadata, built.scripts, parley.__version__)) == []
    assert built.metadata["Author"] == "The Parley authors"
    assert built.metadata["License-Expression"] == "MIT"
    assert "Programming Language :: Python :: 3.11" in built.metadata.get_all("Classifier", [])
    assert built.metadata["Description-Content-Type"] == "text/markdown"
    assert str(built.metadata.get_payload()).startswith("# Parley\n")


@pytest.fixture(scope="module")
def page() -> Callable[[str, str | None], str]:
    made: Callable[[str, str | None], str] = runpy.run_path(str(ROOT / "setup.py"))["page"]
    return made


def test_the_pages_links_lead_to_the_repository(page: Callable[[str, str | None], str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = page(readme, f"{ADDRESS}/")
    links = re.findall(rf"(!?)\[[^\]]*\]\({ADDRESS}/(raw|blob)/HEAD/([^)]*)\)", shown)
    assert ("!", "raw", "doc/asking.svg") in links
    assert all(
        (ROOT / path).exists() and (kind == "raw") == bool(mark) for mark, kind, path in links
    )
    assert len(links) == len(re.findall(r"\]\((?!https?:|#)", readme)) > 5
    assert page("[a](https://b.c) [d](#e) `f[0](1)`", ADDRESS).startswith(
        "[a](https://b.c) [d](#e)"
    )


def test_without_an_address_links_become_their_text(page: Callable[[str, str | None], str]) -> None:
    text = "One\n\n![a picture](doc/x.svg)\n\n[the *help*](doc/y.txt) and [web](https://z.org)\n"
    assert page(text, None) == "One\n\nthe *help* and [web](https://z.org)\n"


def test_no_requirement_is_the_unrelated_project_with_a_similar_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        *project["dependencies"],
        *(ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines(),
    ]
    names = {match[0].lower() for line in lines if (match := re.match(r"[A-Za-z][\w.-]*", line))}
    assert "pynvim" in names
    assert "parley" not in names


def test_make_clean_removes_all_build_products(tmp_path: Path) -> None:
    ignored = [
        line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ]
    made = [name.replace("*", "some") for name in ignored]
    places = {"__pycache__": "python/parley/__pycache__", "some.egg-info": "python/some.egg-info"}
    kept = {PurePosixPath("Makefile"), PurePosixPath("python/parley/cli.py")}
    for name in [
        *(places.get(name, name) for name in made),
        ".ci/release/__pycache__",
        "tests/__pycache__",
        "rplugin/a/__pycache__",
    ]:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    (tmp_path / "python" / "parley" / "cli.py").touch()
    (tmp_path / "doc").mkdir(exist_ok=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)
    left = {PurePosixPath(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert left == kept
