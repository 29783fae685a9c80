"""The skills of the user and of the project, as they were when last read.

A skill of a project is used only after the user has agreed to all its files that a model can read.
Each read compares the file with that content once more. The user's own skills come first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath

from parley.errors import ParleyError, reason_of
from parley.frozen import frozen
from parley.instructions.skills import SKILL_FILE, Skill, read_skill_file
from parley.paths import config_path
from parley.storage.reference_files import text_of
from parley.storage.text_folders import ProjectRoom, content_of, is_inside, names_in
from parley.storage.text_trust import OfferedText, TextTrust
from parley.text import one_line

MOST_SKILL_BYTES = 100_000
"""The maximum size in bytes of a file that a model can read."""
PROJECT_SKILLS = (".parley/skills", ".agents/skills", ".claude/skills", ".github/skills")

_IN_HOME = (".agents/skills", ".claude/skills")
_MOST_FILES = 100
"""The maximum number of files in a skill, because the user has to read them."""
_DEEPEST = 4
_MOST_SHOWN = 200


@frozen
class SkillFolder:
    """A skill and its folder. `texts` are the files that a model can read, by their paths in the
    folder; they are read only for a project's skill.
    """

    skill: Skill
    folder: Path
    root: Path | None = None
    """The project's folder; None for the user's own skill."""
    texts: Mapping[str, bytes] = field(default_factory=dict)

    def files(self) -> Sequence[str]:
        """The paths of the files that a model is told about: of a project's skill the `texts`,
        because the user has not seen other names, and of the user's own skill all, if they can be
        listed.
        """
        if self.root is not None:
            return list(self.texts)
        try:
            return _files(self.folder, ProjectRoom())
        except (OSError, ParleyError):
            return []

    @property
    def place(self) -> str:
        """The folder, as a model can name it in a command."""
        if self.root is not None:
            return self.folder.relative_to(self.root).as_posix()
        home = Path(os.path.expanduser("~"))  # noqa: PTH111
        is_below = self.folder.is_relative_to(home)
        return f"~/{self.folder.relative_to(home).as_posix()}" if is_below else str(self.folder)


class SkillFolders:
    """The folders; `project` returns the project's folder."""

    def __init__(
        self,
        environ: Mapping[str, str],
        project: Callable[[], Path],
        trust: TextTrust,
    ) -> None:
        home = environ.get("HOME")
        self._own = [
            config_path(environ).parent / "skills",
            *(Path(home) / name for name in _IN_HOME if home),
        ]
        self._project = project
        self._trust = trust
        self.skills: dict[str, SkillFolder] = {}
        """The skills that may be used, by name."""
        self.untrusted: list[SkillFolder] = []
        """The project's skills that the user has not agreed to."""
        self.problems: list[str] = []
        self._last: tuple[object, ...] = ()
        """The state of the user's own skills, if there were only these."""

    def look(self) -> None:
        """Read the folders again, unless only the user's own ones have skills and they are
        unchanged.
        """
        root = self._project()
        is_project = any(_state_of(f"{root}/{name}") for name in PROJECT_SKILLS)
        state = () if is_project else (root, *map(_state_of, map(str, self._own)))
        if state and state == self._last:
            return
        self._last = state
        self.skills, self.untrusted, self.problems = {}, [], []
        for folder in self._own:
            for skill in self._in(folder, None, None):
                self.skills.setdefault(skill.skill.name, skill)
        room = ProjectRoom()
        for name in PROJECT_SKILLS:
            if not any(_is_same(root / name, own) for own in self._own):
                for skill in self._in(root / name, root, room):
                    self._add(skill)

    def _add(self, skill: SkillFolder) -> None:
        """Add a project's skill to the skills that may be used, or to those to show to the user."""
        known = {other.skill.name for other in self.untrusted} | self.skills.keys()
        if skill.skill.name in known:
            return
        texts = skill.texts.items()
        if all(self._trust.trusts(skill.folder / path, content) for path, content in texts):
            self.skills[skill.skill.name] = skill
        else:
            self.untrusted.append(skill)

    def _in(
        self, folder: Path, root: Path | None, room: ProjectRoom | None
    ) -> Iterator[SkillFolder]:
        try:
            names = names_in(folder)
        except ParleyError as error:
            self.problems.append(f"parley: {folder}: {error}")
            return
        for name in names:
            path = folder / name
            try:
                if name.startswith(".") or not (path / SKILL_FILE).exists():
                    continue
                yield _skill(path, root, room)
            except (OSError, ParleyError) as error:
                self.problems.append(one_line(f"parley: {path / SKILL_FILE}: {reason_of(error)}"))

    def offered(self) -> list[OfferedText]:
        """The texts of the project's skills that the user has not agreed to, to be shown."""
        return [
            OfferedText(
                skill.folder / path,
                f"{skill.place}/{path}",
                f"the skill {skill.skill.name}",
                f"If you agree, models can read this file of the skill {skill.skill.name}. "
                "Nothing in it runs by itself.",
                content,
            )
            for skill in self.untrusted
            for path, content in skill.texts.items()
            if not self._trust.trusts(skill.folder / path, content)
        ]

    def find(self, name: str, path: str) -> SkillText:
        """The file that a model asks for, not yet read; "" means the instructions. Raises
        ParleyError, with a text for the model, as `read` and `checked` do.
        """
        skill = self.skills.get(name)
        if skill is None:
            known = ", ".join(sorted(self.skills)) or "none"
            raise ParleyError(f"There is no skill {one_line(name, _MOST_SHOWN)!r}. Skills: {known}")
        return SkillText(skill, _place(path or SKILL_FILE))

    def checked(self, text: SkillText, content: bytes) -> str:
        """The text of a file with this content, if the user agreed to it. The instructions are
        followed by the names of the other files.
        """
        skill = text.skill
        if skill.root is not None and not self._trust.trusts(skill.folder / text.place, content):
            raise ParleyError(
                f"{text.legible} of the skill {skill.skill.name} has changed, or was added, since "
                "the user agreed to this skill, so it was not read"
            )
        if text.place != SKILL_FILE:
            return text_of(content)
        others = [other for other in skill.files() if other != SKILL_FILE]
        more = f" Its other files: {', '.join(map(one_line, others))}." if others else ""
        folder = one_line(skill.place)
        return f"{text_of(content).rstrip()}\n\n[This skill's folder is {folder}.{more}]"


@frozen
class SkillText:
    """A file in a skill's folder, by its path there."""

    skill: SkillFolder
    place: str

    @property
    def legible(self) -> str:
        """The path, for messages."""
        return one_line(self.place, _MOST_SHOWN)

    def read(self) -> bytes:
        """The file's content, which is text. Any thread may read it. Raises ParleyError."""
        try:
            content = content_of(
                self.skill.folder / self.place, MOST_SKILL_BYTES, self.skill.folder
            )
            text_of(content)
        except (ParleyError, ValueError) as error:
            name = self.skill.skill.name
            raise ParleyError(f"{self.legible} of the skill {name}: {error}") from error
        return content


def _skill(folder: Path, root: Path | None, room: ProjectRoom | None) -> SkillFolder:
    """The skill in a folder. Raises ParleyError or OSError."""
    if root is not None and not is_inside(folder, root):
        raise ParleyError("its folder is a link that leads elsewhere, so it is not read")
    content = content_of(folder / SKILL_FILE, MOST_SKILL_BYTES, folder)
    if room is not None:
        room.take_front_matter(content)
    skill = read_skill_file(folder.name, content)
    texts = {} if room is None else _texts(folder, room)
    if root is not None and texts.get(SKILL_FILE) != content:
        raise ParleyError("it changed while it was read")
    return SkillFolder(skill, folder, root, texts)


def _texts(folder: Path, room: ProjectRoom) -> dict[str, bytes]:
    """The texts in a project's skill that a model can read. Raises ParleyError."""
    texts = dict[str, bytes]()
    for place in _files(folder, room):
        try:
            content = content_of(folder / place, MOST_SKILL_BYTES, folder)
            text_of(content)
        except ParleyError:
            continue  # a model cannot read it either
        room.take_text(content)
        texts[place] = content
    return texts


def _files(folder: Path, room: ProjectRoom) -> list[str]:
    """The files in a skill's folder, sorted, without hidden ones; links count only if they lead to
    files in this folder. Raises ParleyError if there are too many.
    """
    files, folders = list[str](), [("", 1)]
    while folders:
        inner, depth = folders.pop()
        names = names_in(folder / inner)
        room.take_names(len(names))
        for name in names:
            place, path = f"{inner}{name}", folder / inner / name
            if name.startswith("."):
                continue
            if path.is_dir() and not path.is_symlink():
                if depth < _DEEPEST:
                    folders.append((f"{place}/", depth + 1))
            elif path.is_file() and is_inside(path, folder):
                files.append(place)
            if len(files) + len(folders) > _MOST_FILES:
                raise ParleyError(f"the skill has more than {_MOST_FILES} files, so it is not read")
    return sorted(files)


def _place(path: str) -> str:
    """A model's path as a path in a skill's folder. Raises ParleyError."""
    pure = PurePosixPath(path)
    is_outside = pure.is_absolute() or any(part.startswith(".") for part in pure.parts)
    if is_outside or "\0" in path or "\\" in path or not pure.parts or len(path) > _MOST_SHOWN:
        raise ParleyError(
            f"{one_line(path, _MOST_SHOWN)!r} is not a path in the skill's folder. Use a path such as "
            "references/guide.md"
        )
    if len(pure.parts) > _DEEPEST:
        raise ParleyError(f"{one_line(path, _MOST_SHOWN)} has more than {_DEEPEST} parts")
    return str(pure)


def _state_of(folder: str) -> object:
    """A value that is another one after a change of a skill's instructions; () for no folder."""
    try:
        names = names_in(Path(folder)) if _stat(folder) else []
    except ParleyError:
        return object()
    return tuple((name, _stat(f"{folder}/{name}/{SKILL_FILE}")) for name in names)


def _stat(path: str) -> tuple[int, ...]:
    """When a file last changed, and which file it is; () if it cannot be reached."""
    try:
        found = os.stat(path)  # noqa: PTH116 - for speed: before each question
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
