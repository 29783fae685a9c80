"""The instructions that an app adds to system prompts: the user's own, and the project's files that
the user has agreed to.

Looks at the files when a turn begins. Knows where files are; `instructions` knows how their texts
are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from parley.chat.front_matter import read_front_matter
from parley.chat.transcript import Transcript
from parley.frozen import frozen
from parley.instructions.project import (
    OWN_NAME,
    Instruction,
    Instructions,
    folders,
    selected,
)
from parley.paths import config_path
from parley.settings.values import Settings
from parley.storage.instruction_files import InstructionFile, InstructionFiles
from parley.storage.text_trust import OfferedText, TextTrust
from parley.workspace.root import find_root, work_tree

EFFECT = "A yes adds this text to the system prompt of each chat in this project."
OF_PROGRAM = "the program"
"""The name of the instructions that a program gives as text."""


@frozen
class ProjectInstructions:
    """The instructions for a chat now: the ones in use, and the files to which the user has not
    agreed.

    `paths` are the project's files in use.
    """

    agreed: Instructions = ()
    offered: tuple[OfferedText, ...] = ()
    paths: tuple[Path, ...] = ()
    choice: tuple[str, ...] | None = None
    """The chat's own list of files; None if it has none."""


class AppInstructions:
    """The instructions of one app."""

    def __init__(self, environ: Mapping[str, str], trust: TextTrust, text: str = "") -> None:
        """`text` is the text that a program gives, which needs no agreement."""
        self.problems: tuple[str, ...] = ()
        """Why files are not used, one line each, as last seen."""
        self._environ = environ
        self._trust = trust
        self._of_program = (Instruction(OF_PROGRAM, text),) if text.strip() else ()
        self._files = InstructionFiles(_content)
        self._reported = set[OfferedText | str]()

    @cached_property
    def _own(self) -> Path:
        return config_path(self._environ).parent / OWN_NAME

    def look(self, transcript: Transcript, settings: Settings, folder: Path) -> ProjectInstructions:
        """Look at the files for a chat and a working directory; unchanged files are not read
        again.
        """
        wanted = read_front_matter(transcript.front_matter).keys.get("instructions")
        names = selected(settings.instructions, wanted)
        given = () if wanted == () else self._of_program
        if not names:
            return ProjectInstructions(given, choice=wanted)
        own = self._files.own(self._own)
        found = list(self._of_project(names, settings, folder))
        every = [*([own] if own else []), *found]
        self.problems = tuple(problem for file in every for problem in file.problems)
        agreed = [f for f in found if f.texts and self._trust.trusts(f.path, f.content)]
        used = [*([own] if own else []), *agreed]
        return ProjectInstructions(
            (*dict.fromkeys(text for file in used for text in file.texts), *given),
            tuple(_offered(f) for f in found if f.texts and f not in agreed),
            tuple(file.path for file in agreed),
            wanted,
        )

    def news(self, offered: Sequence[OfferedText]) -> tuple[list[str], list[str]]:
        """The names of the files to which the user has not agreed, and the problems; each content
        and each problem only once.
        """
        texts = [text for text in offered if text not in self._reported]
        problems = [problem for problem in self.problems if problem not in self._reported]
        self._reported.update(texts, problems)
        return [text.name for text in texts], problems

    def _of_project(
        self, names: Sequence[str], settings: Settings, folder: Path
    ) -> Iterator[InstructionFile]:
        """The project's files, the nearest one last."""
        workspace = settings.workspace
        enabled = workspace.enabled or "project"  # the tools may be off
        root = find_root(enabled, workspace.root, folder, self._environ).path
        if root is None:
            return
        top = work_tree(root) or root
        for place in folders(top, root):
            if file := self._files.first(place, names, top):
                yield file


def _offered(file: InstructionFile) -> OfferedText:
    return OfferedText(file.path, file.name, "the instructions", EFFECT, file.content)


def _content(root: Path, place: str, most: int) -> bytes:
    """The bytes of a file with instructions. Raises BoundaryError or OSError."""
    from parley.workspace.boundary import is_of_git, is_secret
    from parley.workspace.opening import BoundaryError, content_below

    if is_of_git(place) or is_secret(Path(place).name):
        raise BoundaryError("it may contain secrets")
    return content_below(root, place, most)
