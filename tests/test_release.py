"""The release: each fault is refused with a remedy; the workflow publishes only checked files."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from datetime import date
from email.message import Message
from pathlib import Path

import pytest
import yaml

from release import build
from release.__main__ import main, page_problems
from release.address import address, address_problem, named, with_address
from release.changelog import changelog_problems, notes
from release.checkout import Checkout
from release.commit import checkout_problems, version_problems
from release.contents import (
    metadata_problems,
    plugin_files,
    plugin_problems,
    rock,
    sdist_problems,
    wheel_problems,
)
from release.help_page import help_problems
from release.rockspec import rockspec
from tests.test_package import ADDRESS, ROOT, tracked

TODAY = date(2026, 11, 26)
CODE = '__version__ = "0.2.0"\n'
WHO = {
    f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
FILES = (
    *("LICENSE", "pyproject.toml", "requirements.lock"),
    *("build.lua", "CHANGELOG.md", "README.md", "SECURITY.md"),
)


def versions(
    version: str = "0.2.0",
    text: str = CODE,
    tags: dict[str, str] | None = None,
    *,
    is_tagged: bool = False,
) -> list[str]:
    return list(version_problems(version, text, tags or {}, "abc", is_tagged=is_tagged))


def test_a_version_is_in_the_code_and_follows_all_tagged_versions() -> None:
    assert versions() == []
    assert versions(tags={"v0.1.9": "old", "vanilla": "x"}) == []
    assert versions(tags={"v0.2.0": "abc", "v0.1.0": "old"}, is_tagged=True) == []
    assert versions(tags={"v0.10.0": "old"}) == [
        "VERSION=0.2.0: 0.10.0 is already tagged. Name a version after it"
    ]


@pytest.mark.parametrize("version", ["", "v0.2.0", "0.2", "0.2.0rc1", "0.02.0", "0.2.0\n"])
def test_a_version_is_three_numbers(version: str) -> None:
    (problem,) = versions(version)
    assert problem.endswith("expected three numbers, such as 0.2.0. Pass such a version")


def test_another_version_in_the_code_is_refused() -> None:
    (problem,) = versions(text='__version__ = "0.1.0"\n')
    assert problem == (
        "python/parley/__init__.py: the code is version 0.1.0. "
        'Set `__version__ = "0.2.0"`, then run `make man`'
    )
    assert "has no `__version__`" in versions(text="")[0]


def test_a_tag_at_another_commit_or_none_is_refused() -> None:
    assert "the tag is at another commit" in versions(tags={"v0.2.0": "other"})[0]
    assert "the tag exists. Push it" in versions(tags={"v0.2.0": "abc"})[0]
    assert "there is no such tag" in versions(is_tagged=True)[0]


def test_a_few_files_outside_the_commit_are_named() -> None:
    assert list(checkout_problems([])) == []
    problems = list(checkout_problems([f"?? {name}" for name in "abcdefg"]))
    assert problems[0] == "a: not in the last commit. Commit it, or remove it"
    assert problems[5:] == ["2 more files: not in the last commit. `git status` lists them"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("# Changelog\n", "there is no section. Add `## 0.2.0 - 2026-11-26`"),
        ("## Unreleased\n\n- New.\n", "listed as unreleased. Rename their heading"),
        ("## Unreleased\n\n## 0.1.0 - 2026-01-01\n\n- Old.\n", "newest section is `0.1.0 -"),
        ("## 0.2.0\n\n- New.\n", "the heading is `## 0.2.0`. Write `## 0.2.0 - 2026-11-26`"),
        ("## 0.2.0 - soon\n\n- New.\n", "the heading is `## 0.2.0 - soon`"),
        ("## 0.2.0 - 2026-11-26\n\n## 0.1.0 - 2026-01-01\n\n- Old.\n", "is empty"),
    ],
)
def test_a_changelog_without_the_versions_section_is_refused(text: str, part: str) -> None:
    (problem,) = changelog_problems(text, "0.2.0", TODAY)
    assert problem.startswith("CHANGELOG.md: ")
    assert part in problem


def test_a_versions_section_becomes_its_notes() -> None:
    text = "# C\n\n## Unreleased\n\n## 0.2.0 - 2026-11-20\n\n### Added\n\n- New.\n\n## 0.1.0 - x\n\n- Old.\n"
    assert list(changelog_problems(text, "0.2.0", TODAY)) == []
    assert notes(text, "0.2.0") == "### Added\n\n- New."
    assert notes(text, "0.3.0") == ""


def test_everything_that_the_editor_needs_is_in_the_rock_and_the_archive() -> None:
    lua = {n: (ROOT / n).read_text("utf-8") for n in tracked() if n.endswith(".lua")}
    assert list(plugin_problems(tracked(), lua)) == []
    assert set(plugin_files(tracked())) >= {"build.lua", "plugin/parley.lua", "syntax/parley.vim"}
    assert not any(name.startswith(("tests/", ".ci/")) for name in plugin_files(tracked()))


def test_a_file_that_a_rock_would_lack_is_named() -> None:
    assert list(plugin_problems(FILES, {})) == []
    more = [*FILES, "queries/a.scm", "lua/parley/data.json"]
    problems = list(plugin_problems(more, {"lua/a.lua": 'place.file("b.toml")'}))
    assert [problem.split(":")[0] for problem in problems] == [
        *("queries/", "lua/parley/data.json", "lua/a.lua")
    ]
    (problem,) = plugin_problems([name for name in FILES if name != "LICENSE"], {})
    assert problem.startswith("LICENSE: .ci/release/contents.py names it")


def test_a_rockspec_has_the_address_or_the_archive() -> None:
    project = {"name": "p", "description": 'a "b"\\', "license": "MIT", "keywords": ["k"]}
    made = rock(["lua/parley/init.lua", "lua/parley/a.lua"])
    text = rockspec(project, "0.2.0", "p.tar.gz", None, made)
    assert 'source = {\n  url = "p.tar.gz",\n}' in text
    assert 'summary = "a \\"b\\"\\\\",\n  license' in text
    assert '    ["parley"] = "lua/parley/init.lua",\n' in text
    text = rockspec(project, "0.2.0", "p.tar.gz", f"{ADDRESS}/", made)
    assert f'  url = "git+{ADDRESS}.git",\n  tag = "v0.2.0",\n' in text
    assert f'  homepage = "{ADDRESS}/",\n' in text


def test_files_that_a_distribution_lacks_or_should_not_have_are_named() -> None:
    (lacks, more) = sdist_problems(["a"], ["PKG-INFO", "python/parley_nvim.egg-info/x", "b"])
    assert lacks == "a: the source distribution lacks it. Add it to MANIFEST.in"
    assert more.startswith("b: it is only in the source distribution. ")
    names = ["python/parley/a.py", "python/parley/nvim/b.py"]
    problems = list(wheel_problems(names, ["parley/c.py", "p.dist-info/licenses/LICENSE"]))
    assert [problem.split(":")[0] for problem in problems] == [
        *("python/parley/a.py", "parley/c.py", "*.data/data/share/man/man1/parley.1")
    ]


def test_metadata_of_another_version_without_a_command_or_with_dead_links_is_refused() -> None:
    about = Message()
    about["Name"], about["Version"] = "parley-nvim", "0.1.0"
    about.set_payload("[a](doc/a.md) [b](https://b.c)")
    assert list(metadata_problems(about, "", "0.2.0")) == [
        "wheel: Version is 0.1.0, expected 0.2.0. Correct pyproject.toml",
        "wheel: it has no command `parley`. See [project.scripts] in pyproject.toml",
        "wheel: its page links to the file doc/a.md, which no index has. See setup.py",
    ]


def test_a_help_without_tags_or_with_dead_links_is_refused() -> None:
    tags = "parley\tparley.txt\t/*parley*\n"
    assert list(help_problems("|parley| |:vertical|", tags, "")) == []
    assert "|parley-x|" in next(help_problems("|parley-x|", tags, ""))
    assert "E154" in next(help_problems("", "", "E154: duplicate tag"))


def test_the_help_gets_its_tags_from_a_neovim_with_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, nvim = tmp_path / "source", tmp_path / "nvim"
    (source / "doc").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    nvim.write_text("#!/bin/sh\necho E154: duplicate tag >&2; exit 1\n", encoding="utf-8")
    nvim.chmod(0o755)
    assert build.help_tags(source, "./nvim") == ("", "E154: duplicate tag")
    nvim.write_text("#!/bin/sh\necho 'a\tb\tc' > doc/tags\n", encoding="utf-8")
    assert build.help_tags(source, "./nvim") == ("a\tb\tc\n", "")


def test_the_manual_page_and_the_schema_are_compared_with_the_code(tmp_path: Path) -> None:
    for name in ("python", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "doc").mkdir()
    for name in ("parley.1", "json.schema.json"):
        (tmp_path / "doc" / name).write_bytes((ROOT / "doc" / name).read_bytes())
    assert list(page_problems(tmp_path)) == []
    for name in ("parley.1", "json.schema.json"):
        (tmp_path / "doc" / name).write_text("old", encoding="utf-8")
    man, schema = page_problems(tmp_path)
    assert man == "doc/parley.1: it differs from the code. Run `make man`, and commit the file"
    assert schema.startswith("doc/json.schema.json: it differs from the code. Run `PARLEY_EXPECT=1")


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text", encoding="utf-8")
    paths = [tmp_path / folder / "p-1.tar.gz" for folder in "xy"]
    for path in paths:
        path.parent.mkdir()
        build.plugin_archive(tmp_path, path, ["a"], "tags\n", 1_800_000_000)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with tarfile.open(paths[0]) as archive:
        assert archive.getnames() == ["p-1/a", "p-1/doc/tags"]
    (digest,) = {line.split()[0] for line in build.sums(paths).splitlines()}
    assert re.fullmatch(r"[0-9a-f]{64}", digest)


def repository(folder: Path) -> Checkout:
    """A repository with one commit, whose code is version 0.2.0 and that has no changelog."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name, text in (("pyproject.toml", project), ("python/parley/__init__.py", CODE)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for command in ("init -q", "add -A", "commit -q -m one"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    return Checkout(folder)


def test_a_checkout_knows_its_commit_changes_and_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**WHO, "GIT_CONFIG_GLOBAL": os.devnull}.items():
        monkeypatch.setenv(name, value)
    checkout = repository(tmp_path / "a")
    assert (checkout.changes(), checkout.tags()) == ([], {})
    checkout.tag("v0.2.0", "Parley 0.2.0\n\n# not a comment\n")
    assert checkout.tags() == {"v0.2.0": checkout.commit()}
    (tmp_path / "a" / "new file").touch()
    assert checkout.changes() == ["?? new file"]
    checkout.export(tmp_path / "b")
    assert sorted(checkout.tracked()) == ["pyproject.toml", "python/parley/__init__.py"]
    assert (tmp_path / "b" / "python" / "parley" / "__init__.py").read_text("utf-8") == CODE


def test_a_refused_release_leaves_no_files_and_no_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**WHO, "GIT_CONFIG_GLOBAL": os.devnull}.items():
        monkeypatch.setenv(name, value)
    checkout = repository(tmp_path)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "of an earlier release").touch()
    assert main(["0.3.0", "--tag", "--checkout", str(tmp_path)]) == 1
    printed = capsys.readouterr().err.splitlines()
    assert printed[0].startswith("python/parley/__init__.py: the code is version 0.2.0")
    assert "pyproject.toml: [project.urls] has no Repository" in printed[-2]
    assert printed[-1].startswith("0.3.0 is not released")
    assert (checkout.tags(), (tmp_path / "dist").exists()) == ({}, False)


def test_a_command_that_fails_is_named_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\n', encoding="utf-8")
    assert main(["0.2.0", "--checkout", str(tmp_path)]) == 1
    assert "a file cannot be made: " in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()


def test_the_address_is_written_into_all_places_that_name_it() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    own = address(project)
    assert set(named(readme)) == {own or "<this repository>"}
    new = with_address("README.md", readme, ADDRESS)
    assert named(new) == [ADDRESS] * len(named(readme))
    assert address(with_address("pyproject.toml", project, ADDRESS)) == ADDRESS
    again = with_address("README.md", new, f"{ADDRESS}2")
    assert named(again) == [f"{ADDRESS}2"] * len(named(readme))
    assert address_problem(ADDRESS) is None
    assert all(map(address_problem, ["", "git@host:a/b", "https://host", f'{ADDRESS}"; x']))


def test_the_workflow_publishes_checked_files_and_each_job_may_do_only_its_part() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as a truth
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "files": {"contents": "read"},
        "pypi": {"id-token": "write"},
        "page": {"contents": "write"},
        "luarocks": {},
    }
    runs = [step["run"] for step in jobs["files"]["steps"] if "run" in step]
    assert runs[0] == ".ci/run"
    assert "-m release" in runs[1]
    assert "--tagged" in runs[1]
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "files": None,
        "pypi": "files",
        "page": "pypi",
        "luarocks": "pypi",
    }
    pins = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", pin) for pin in pins)
    scripts = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    assert not any("${{" in script for script in scripts)  # a tag's name is not a program
