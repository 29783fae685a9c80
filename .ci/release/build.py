"""Builds the published files from a folder with the last commit's files. Decides nothing."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from io import BytesIO
from pathlib import Path

_DISTRIBUTIONS = (
    "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"
)
_SCHEMA = (
    "import json; from tests.json_schema import schema; "
    "print(json.dumps(schema(), indent=2, ensure_ascii=False))"
)
_TAGS = "try | helptags doc | catch | echo v:exception | cquit | endtry"


@dataclass(frozen=True, slots=True)
class Distributions:
    """The source distribution and the wheel: their paths, names of files, and metadata."""

    sdist: Path
    wheel: Path
    sdist_files: frozenset[str]
    wheel_files: frozenset[str]
    metadata: Message
    scripts: str


def _environ(source: Path, time: int) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PARLEY_")}
    return {
        **kept,
        "PYTHONPATH": f"{source / 'python'}{os.pathsep}{source}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": str(time),
    }


def _output(source: Path, *command: str) -> str:
    """A command's output, run with the exported code."""
    ran = subprocess.run(
        command,
        cwd=source,
        env=_environ(source, 0),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    return ran.stdout


def manual(source: Path) -> str:
    """The manual page, from the commands' help."""
    return _output(source, sys.executable, "-m", "parley", "man")


def json_schema(source: Path) -> str:
    """The schema of the JSON output, from the code."""
    return _output(source, sys.executable, "-c", _SCHEMA)


def help_tags(source: Path, nvim: str) -> tuple[str, str]:
    """The tags of the help, and Neovim's message if it cannot make them."""
    program = str(Path.cwd() / (shutil.which(nvim) or nvim))  # it runs in another folder
    command = [program, "--clean", "--headless", "-i", "NONE", f"+{_TAGS}", "+qall"]
    ran = subprocess.run(
        command, cwd=source, capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    tags = source / "doc" / "tags"
    if ran.returncode or not tags.exists():
        return "", " ".join(ran.stderr.split()) or f"{nvim} wrote no tags"
    return tags.read_text(encoding="utf-8"), ""


def distributions(source: Path, target: Path, time: int) -> Distributions:
    """Build the source distribution and the wheel, in a copy of the source."""
    with_products = target / "building"
    shutil.copytree(source, with_products)
    command = [sys.executable, "-W", "ignore", "-c", _DISTRIBUTIONS]
    ran = subprocess.run(
        command,
        cwd=with_products,
        env=_environ(with_products, time),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if ran.returncode:
        raise OSError(f"setuptools cannot build the distributions:\n{ran.stderr}")
    ((sdist,), (wheel,)) = (with_products.glob(f"dist/{name}") for name in ("*.tar.gz", "*.whl"))
    with tarfile.open(sdist) as archive:
        names = frozenset(m.name.partition("/")[2] for m in archive.getmembers() if m.isfile())
    with zipfile.ZipFile(wheel) as files:
        own = frozenset(files.namelist())
        (about,) = (name for name in own if name.endswith(".dist-info/METADATA"))
        scripts = about.replace("METADATA", "entry_points.txt")
        made = Distributions(
            Path(shutil.move(sdist, target)),
            Path(shutil.move(wheel, target)),
            names,
            own,
            message_from_bytes(files.read(about)),
            files.read(scripts).decode() if scripts in own else "",
        )
    shutil.rmtree(with_products)
    return made


def plugin_archive(source: Path, path: Path, names: Sequence[str], tags: str, time: int) -> None:
    """Write the plugin's archive: one folder with these files and the help tags.

    The same commit gives the same bytes.
    """
    folder = path.name.removesuffix(".tar.gz")
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in sorted({*names, "doc/tags"}):
            content = tags.encode() if name == "doc/tags" else (source / name).read_bytes()
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mtime, member.mode = len(content), time, 0o644
            archive.addfile(member, BytesIO(content))


def sums(paths: Sequence[Path]) -> str:
    """The files' SHA-256 hashes, as `sha256sum --check` reads them."""
    rows = ((hashlib.sha256(path.read_bytes()).hexdigest(), path.name) for path in paths)
    return "".join(f"{digest}  {name}\n" for digest, name in rows)
