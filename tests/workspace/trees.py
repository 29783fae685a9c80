"""Real folders and Git work trees for the tests of the workspace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write these files, with their folders."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def git(root: Path, *words: str, stdin: bytes = b"") -> bytes:
    """Run Git in a work tree, without the user's settings."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    ran = subprocess.run(
        ["git", *words], cwd=root, env=environ, input=stdin, capture_output=True, check=False
    )
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def work_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """A new Git work tree with these files, as a real path."""
    root = Path(os.path.realpath(root))
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    write(root, files)
    return root
