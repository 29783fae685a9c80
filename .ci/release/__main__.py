"""The command: makes the published files in `dist/` and checks them; with `--tag`, tags the commit."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from release import build
from release.address import address
from release.changelog import changelog_problems, notes
from release.checkout import Checkout
from release.commit import VERSION_FILE, checkout_problems, version_problems
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

ROOT = Path(__file__).resolve().parents[2]


def page_problems(source: Path) -> Iterator[str]:
    """Pages that differ from the code that they are made from."""
    made = (
        ("doc/parley.1", build.manual, "make man"),
        (
            "doc/json.schema.json",
            build.json_schema,
            "PARLEY_EXPECT=1 pytest tests/cli/test_terminal_json.py",
        ),
    )
    for name, make, remedy in made:
        if make(source) != (source / name).read_text(encoding="utf-8"):
            yield f"{name}: it differs from the code. Run `{remedy}`, and commit the file"


def release(
    version: str, checkout: Checkout, target: Path, *, is_tagged: bool, today: date
) -> list[str]:
    """Make the published files of a version in a folder; returns the problems."""
    text = (checkout.folder / VERSION_FILE).read_text(encoding="utf-8")
    problems = [
        *version_problems(version, text, checkout.tags(), checkout.commit(), is_tagged=is_tagged),
        *checkout_problems(checkout.changes()),
    ]
    if problems:  # the last commit is not the release, so the other checks would mislead
        return problems
    with tempfile.TemporaryDirectory(prefix="parley-release-") as temporary:
        source = Path(temporary, "source")
        checkout.export(source)
        return list(_made(version, checkout, source, target, today))


def _made(
    version: str, checkout: Checkout, source: Path, target: Path, today: date
) -> Iterator[str]:
    def read(name: str) -> str:
        return (source / name).read_text(encoding="utf-8")

    tracked, time = checkout.tracked(), checkout.time()
    yield from changelog_problems(read("CHANGELOG.md"), version, today)
    yield from plugin_problems(tracked, {n: read(n) for n in tracked if n.endswith(".lua")})
    yield from page_problems(source)
    tags, flaw = build.help_tags(source, os.environ.get("PARLEY_NVIM") or "nvim")
    yield from help_problems(read("doc/parley.txt"), tags, flaw)
    (source / "doc" / "tags").unlink(missing_ok=True)

    made = build.distributions(source, target, time)
    yield from sdist_problems(tracked, made.sdist_files)
    yield from wheel_problems(tracked, made.wheel_files)
    yield from metadata_problems(made.metadata, made.scripts, version)
    pyproject = read("pyproject.toml")
    project = tomllib.loads(pyproject)["project"]
    name = project["name"]
    archive = target / f"{name}-plugin-{version}.tar.gz"
    build.plugin_archive(source, archive, plugin_files(tracked), tags, time)
    spec = target / f"{name}-{version}-1.rockspec"
    spec.write_text(
        rockspec(project, version, archive.name, address(pyproject), rock(tracked)),
        encoding="utf-8",
    )
    changes = target / "CHANGES.md"
    changes.write_text(notes(read("CHANGELOG.md"), version) + "\n", encoding="utf-8")
    files = (made.sdist, made.wheel, archive, spec, changes)
    (target / "SHA256SUMS").write_text(build.sums(files), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run the command; returns 1 if the release is refused."""
    parser = argparse.ArgumentParser(prog="make release VERSION=…", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--tag", action="store_true", help="tag the commit if nothing is wrong")
    parser.add_argument("--tagged", action="store_true", help="the commit must have its tag")
    parser.add_argument("--checkout", type=Path, default=ROOT)
    options = parser.parse_args(arguments)
    checkout, version = Checkout(options.checkout), options.version
    pyproject = (options.checkout / "pyproject.toml").read_text(encoding="utf-8")
    target = options.checkout / "dist"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    today = datetime.now(UTC).date()
    try:
        problems = release(version, checkout, target, is_tagged=options.tagged, today=today)
    except (OSError, subprocess.SubprocessError) as error:
        problems = [f"a file cannot be made: {error}. Correct this, then try again"]
    if address(pyproject) is None and (options.tag or options.tagged):
        problems.append(
            "pyproject.toml: [project.urls] has no Repository, so users could not find the plugin. "
            "Run `make address URL=https://…`"
        )
    if problems:
        shutil.rmtree(target)
        sys.stderr.write("".join(f"{problem}\n" for problem in problems))
        sys.stderr.write(f"{version} is not released: {len(problems)} problem(s)\n")
        return 1
    sys.stdout.write((target / "SHA256SUMS").read_text(encoding="utf-8"))
    if options.tag:
        checkout.tag(
            f"v{version}", f"Parley {version}\n\n{(target / 'CHANGES.md').read_text('utf-8')}"
        )
        sys.stdout.write(f"v{version} is tagged here. Publish it: git push origin v{version}\n")
    elif not options.tagged:
        sys.stdout.write(
            f"Nothing is wrong, and nothing is published: the files are in {target}. "
            f"To tag the commit: make release VERSION={version} TAG=yes\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
