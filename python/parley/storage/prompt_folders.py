"""The prompt files of the user and of the project, as they are now.

The user's own prompts come first: a project cannot replace them. A project's prompt is used only
after the user has agreed to its exact content; until then, it is only listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.instructions.prompt_files import PROMPT_SUFFIXES, PromptFile, prompt_name, read_prompt
from parley.paths import config_path
from parley.storage.text_folders import ProjectRoom, content_of, names_in
from parley.storage.text_trust import OfferedText, TextTrust

MOST_PROMPT_BYTES = 100_000
PROJECT_PROMPTS = (".parley/prompts", ".github/prompts")
"""A project's folders; in the second, which other programs read too, only `*.prompt.md` counts."""
_SHARED = ".github"


@frozen
class OfferedPrompt:
    """A prompt, its file, and why it cannot be used ("" if it can)."""

    prompt: PromptFile
    path: Path
    content: bytes = b""
    of_project: bool = False
    is_trusted: bool = True
    flaw: str = ""

    @property
    def name(self) -> str:
        """The name by which the user picks it."""
        return self.prompt.name

    @property
    def is_shared(self) -> bool:
        """Whether other programs read the file, too, so that its agent may be theirs."""
        return self.path.parent.parent.name == _SHARED

    def usable(self) -> PromptFile:
        """The prompt. Raises ParleyError if its file is flawed."""
        if self.flaw:
            raise ParleyError(f"{self.path}: {self.flaw}")
        return self.prompt


class PromptFolders:
    """The folders; `project` returns the project's folder."""

    def __init__(
        self,
        environ: Mapping[str, str],
        project: Callable[[], Path],
        trust: TextTrust,
    ) -> None:
        self._own = config_path(environ).parent / "prompts"
        self._project = project
        self._trust = trust

    def look(self) -> tuple[list[OfferedPrompt], list[str]]:
        """The prompts, ordered by name, and the folders that cannot be read, with reasons."""
        prompts, problems = dict[str, OfferedPrompt](), list[str]()
        room = ProjectRoom()
        root = self._project()
        places: list[tuple[Path, Path | None]] = [
            (self._own, None),
            *((root / name, root) for name in PROJECT_PROMPTS),
        ]
        for folder, project in places:
            try:
                for prompt in self._in(folder, project, room):
                    prompts.setdefault(prompt.name, prompt)
            except ParleyError as error:
                problems.append(f"{folder}: {error}")
        return [prompts[name] for name in sorted(prompts)], problems

    def _in(self, folder: Path, project: Path | None, room: ProjectRoom) -> Iterator[OfferedPrompt]:
        is_shared = folder.parent.name == _SHARED
        for file in names_in(folder):
            if is_shared and not file.endswith(PROMPT_SUFFIXES[0]):
                continue
            if name := prompt_name(file):
                yield self._read(name, folder / file, project, room)

    def _read(
        self, name: str, path: Path, project: Path | None, room: ProjectRoom
    ) -> OfferedPrompt:
        of_project = project is not None
        try:
            content = content_of(path, MOST_PROMPT_BYTES, project)
            if of_project:
                room.take_front_matter(content)
        except ParleyError as error:
            flawed = PromptFile(name)
            return OfferedPrompt(flawed, path, b"", of_project, not of_project, str(error))
        is_trusted = not of_project or self._trust.trusts(path, content)
        try:
            prompt, flaw = read_prompt(name, content), ""
        except ParleyError as error:
            prompt, flaw = PromptFile(name), str(error)
        return OfferedPrompt(prompt, path, content, of_project, is_trusted, flaw)

    def named(self, name: str) -> OfferedPrompt | None:
        """The prompt with this name, as it is now; None if there is none."""
        return next((prompt for prompt in self.look()[0] if prompt.name == name), None)

    def offered(self, prompt: OfferedPrompt) -> OfferedText:
        """A project's prompt, to be shown to the user, who may agree to this content."""
        return OfferedText(
            prompt.path,
            prompt.path.relative_to(self._project()).as_posix(),
            f"the prompt {prompt.name}",
            "If you agree, this text can begin your questions. References in it include files.",
            prompt.content,
        )
