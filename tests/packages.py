"""Packages that extend Parley, with only the files that Python needs to find them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
ECHO = ROOT / "examples" / "parley-echo"


def put_package(
    folder: Path, name: str, points: Mapping[str, Mapping[str, str]], files: Mapping[str, str]
) -> None:
    """Write a package of version 1.0 into a folder, with its entry points by group and name, and
    its files.
    """
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in offers.items())
        for group, offers in points.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def install(project: Path, folder: Path) -> Path:
    """Install a project as a user would, but without a network and into a folder; return the
    folder.
    """
    source, target = folder / "source", folder / "target"
    shutil.copytree(project, source)
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-cache",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run(
        [*command, "--python", sys.executable, "--target", target, source], check=True, timeout=60
    )
    return target
