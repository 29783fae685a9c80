"""A Git checkout: its commit, files and tags. Decides nothing."""

from __future__ import annotations

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path


class Checkout:
    """The Git work tree at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _git(self, *arguments: str) -> bytes:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, check=True).stdout

    def _lines(self, *arguments: str) -> list[str]:
        return [each for each in self._git(*arguments).decode().split("\0") if each]

    def changes(self) -> list[str]:
        """Files that differ from the last commit, with their status; new files, too."""
        return self._lines("status", "--porcelain", "--no-renames", "-z")

    def tracked(self) -> list[str]:
        """The files of the last commit."""
        return self._lines("ls-tree", "-r", "-z", "--name-only", "HEAD")

    def tags(self) -> dict[str, str]:
        """Each version's tag, with its commit."""
        form = "--format=%(refname:short) %(objectname) %(*objectname)"
        rows = self._git("for-each-ref", form, "refs/tags/v*").decode().splitlines()
        return {row.split()[0]: row.split()[-1] for row in rows}

    def commit(self) -> str:
        """The last commit."""
        return self._git("rev-parse", "HEAD").decode().strip()

    def time(self) -> int:
        """The last commit's time, in seconds since 1970."""
        return int(self._git("log", "-1", "--format=%ct"))

    def export(self, folder: Path) -> None:
        """Write the last commit's files into a folder."""
        with tarfile.open(fileobj=BytesIO(self._git("archive", "HEAD"))) as archive:
            archive.extractall(folder, filter="tar")

    def tag(self, name: str, message: str) -> None:
        """Add an annotated tag to the last commit."""
        command = ["git", "tag", "--annotate", "--cleanup=verbatim", "--file=-", name]
        subprocess.run(command, cwd=self.folder, input=message.encode(), check=True)
