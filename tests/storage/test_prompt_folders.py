"""Prompt files in folders: the user's own, and a project's, which are used only once trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.storage.prompt_folders import PromptFolders
from parley.storage.text_trust import TextTrust
from tests.ledgers import open_ledger


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".parley/prompts").mkdir(parents=True)
    (folder / ".github/prompts").mkdir(parents=True)
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "config/parley/prompts"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def trust() -> TextTrust:
    ledger = open_ledger()
    return TextTrust(lambda: ledger)


@pytest.fixture
def folders(project: Path, own: Path, tmp_path: Path, trust: TextTrust) -> PromptFolders:
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return PromptFolders(environ, lambda: project, trust)


def put(path: Path, text: str = "text") -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def listed(folders: PromptFolders) -> list[tuple[str, bool]]:
    return [(prompt.name, prompt.is_trusted) for prompt in folders.look()[0]]


def test_the_users_own_prompts_hide_those_of_the_project(
    folders: PromptFolders, project: Path, own: Path
) -> None:
    put(own / "both.md", "mine")
    put(project / ".parley/prompts/both.md", "theirs")
    put(project / ".parley/prompts/a.md")
    put(project / ".github/prompts/b.prompt.md")
    put(project / ".github/prompts/README.md")
    put(project / ".parley/prompts/notes.txt")
    assert listed(folders) == [("a", False), ("b", False), ("both", True)]
    both = folders.named("both")
    assert both
    assert both.usable().body == "mine"
    assert folders.named("none") is None


def test_trust_is_for_the_exact_content(
    folders: PromptFolders, trust: TextTrust, project: Path
) -> None:
    path = put(project / ".parley/prompts/a.md")
    before = folders.named("a")
    assert before
    text = folders.offered(before)
    assert (text.path, text.name, text.content) == (path, ".parley/prompts/a.md", b"text")
    trust.trust(text.path, text.content)
    assert listed(folders) == [("a", True)]
    put(path, "other")
    assert listed(folders) == [("a", False)]


def test_a_hostile_folder_is_listed_without_its_content(
    folders: PromptFolders, project: Path, tmp_path: Path
) -> None:
    place = project / ".parley/prompts"
    put(tmp_path / "secret.md", "---\ndescription: SECRET\n---\nSECRET")
    (place / "link.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(place / "pipe.md")
    with (place / "huge.md").open("wb") as file:
        file.truncate(2**30)
    put(place / "yaml.md", "---\na: [\n---\n")
    put(place / "esc\x1b.md")
    put(place / "d\u202eb.md")
    (place / "folder.md").mkdir()
    prompts, problems = folders.look()
    assert problems == []
    flaws = {prompt.name: prompt.flaw for prompt in prompts}
    assert sorted(flaws) == ["folder", "huge", "link", "pipe", "yaml"]
    assert "leads elsewhere" in flaws["link"]
    assert "a pipe" in flaws["pipe"]
    assert "larger than 100000 bytes" in flaws["huge"]
    assert "not valid YAML" in flaws["yaml"]
    assert not any("SECRET" in repr(prompt) or prompt.is_trusted for prompt in prompts)
    for prompt in prompts:
        with pytest.raises(ParleyError):
            prompt.usable()


def test_a_folder_that_leads_out_of_the_project_is_not_read(
    folders: PromptFolders, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    put(tmp_path / "elsewhere/a.md", "SECRET")
    (project / ".parley/prompts").rmdir()
    (project / ".parley/prompts").symlink_to(tmp_path / "elsewhere")
    (prompt,) = folders.look()[0]
    assert "leads elsewhere" in prompt.flaw
    assert not prompt.content


def test_the_front_matter_of_a_project_is_read_only_up_to_a_limit(
    folders: PromptFolders, project: Path
) -> None:
    for number in range(30):
        text = f"---\ndescription: D{number}\nx: [{'a,' * 1_500}]\n---\n"
        put(project / f".parley/prompts/p{number:02}.md", text)
    read = [prompt for prompt in folders.look()[0] if not prompt.flaw]
    assert len(read) == 60_000 // 3_024
    assert "bytes of front matter, so the rest is not read" in folders.look()[0][-1].flaw


def test_a_folder_with_ten_thousand_files_is_not_used(
    folders: PromptFolders, project: Path, own: Path
) -> None:
    put(own / "mine.md")
    for number in range(10_000):
        (project / f".parley/prompts/p{number}.md").touch()
    prompts, problems = folders.look()
    assert [prompt.name for prompt in prompts] == ["mine"]
    assert "has more than 1000 entries, so it is not read" in problems[0]
