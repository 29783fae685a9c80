"""Skills in folders: the user's own, and a project's, which are used only once trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.storage.skill_folders import SkillFolders
from parley.storage.text_trust import TextTrust
from tests.ledgers import open_ledger

HEAD = "---\ndescription: D\n---\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def trust() -> TextTrust:
    ledger = open_ledger()
    return TextTrust(lambda: ledger)


@pytest.fixture
def folders(project: Path, tmp_path: Path, trust: TextTrust) -> SkillFolders:
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return SkillFolders(environ, lambda: project, trust)


def put(folder: Path, text: str = "", file: str = "SKILL.md") -> Path:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def names(folders: SkillFolders) -> tuple[list[str], list[str]]:
    """The names of the skills that are used, and of those that are not trusted."""
    folders.look()
    return sorted(folders.skills), [skill.skill.name for skill in folders.untrusted]


def agree(folders: SkillFolders, trust: TextTrust) -> list[str]:
    """Agree to all texts that are offered; returns their names."""
    texts = folders.offered()
    for text in texts:
        trust.trust(text.path, text.content)
    return [text.name for text in texts]


def read(folders: SkillFolders, name: str, path: str = "") -> str:
    text = folders.find(name, path)
    return folders.checked(text, text.read())


def refusal(folders: SkillFolders, name: str, path: str = "") -> str:
    with pytest.raises(ParleyError) as error:
        read(folders, name, path)
    assert str(error.value).isprintable()
    return str(error.value)


def test_own_skills_are_used_at_once_and_hide_those_of_the_project(
    folders: SkillFolders, project: Path, tmp_path: Path
) -> None:
    put(tmp_path / "config/parley/skills/one", "mine")
    put(tmp_path / ".agents/skills/two", "Two.")
    put(tmp_path / ".claude/skills/two", "hidden")
    put(tmp_path / ".claude/skills/two/notes", file="a.md")
    put(project / ".parley/skills/one", "theirs")
    assert names(folders) == (["one", "two"], [])
    assert (
        read(folders, "two")
        == f"{HEAD}Two.\n\n[This skill's folder is {tmp_path}/.agents/skills/two.]"
    )
    assert read(folders, "one").startswith(f"{HEAD}mine\n")


def test_a_projects_skills_need_trust_in_all_their_texts(
    folders: SkillFolders, project: Path, trust: TextTrust
) -> None:
    skill = project / ".claude/skills/pdf"
    put(skill)
    put(skill, "guide", "references/guide.md")
    (skill / "logo.png").write_bytes(b"\x89PNG\0")  # nobody has seen its name
    put(project / ".github/skills/other")
    assert names(folders) == ([], ["pdf", "other"])
    assert "There is no skill 'pdf'. Skills: none" in refusal(folders, "pdf")
    assert agree(folders, trust) == [
        ".claude/skills/pdf/SKILL.md",
        ".claude/skills/pdf/references/guide.md",
        ".github/skills/other/SKILL.md",
    ]
    assert names(folders) == (["other", "pdf"], [])
    end = "[This skill's folder is .claude/skills/pdf. Its other files: references/guide.md.]"
    assert read(folders, "pdf").endswith(end)
    assert read(folders, "pdf", "references/guide.md") == f"{HEAD}guide"
    assert read(folders, "pdf", "./references//guide.md") == f"{HEAD}guide"
    assert "it is not text" in refusal(folders, "pdf", "logo.png")


def test_a_file_that_changes_or_is_added_after_the_yes_is_not_read(
    folders: SkillFolders, project: Path, trust: TextTrust
) -> None:
    skill = project / ".agents/skills/a"
    put(skill)
    names(folders)
    agree(folders, trust)
    assert names(folders) == (["a"], [])
    put(skill, "new", "new.md")
    put(skill, "changed")
    assert "has changed, or was added, since" in refusal(folders, "a", "new.md")
    assert "has changed, or was added, since" in refusal(folders, "a")
    assert names(folders) == ([], ["a"])
    put(skill, "changed again")
    assert agree(folders, trust) == [".agents/skills/a/SKILL.md", ".agents/skills/a/new.md"]
    assert names(folders) == ([], ["a"])  # the yes was for the content that was shown
    assert agree(folders, trust) == [".agents/skills/a/SKILL.md"]
    assert names(folders) == (["a"], [])


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../b/SKILL.md", "x/../../b", ".hidden", "a\0b", "a\\b", "x" * 201, "."]
)
def test_a_path_out_of_the_folder_is_refused(
    folders: SkillFolders, tmp_path: Path, path: str
) -> None:
    put(tmp_path / ".agents/skills/a")
    put(tmp_path / ".agents/skills/a", "SECRET", ".hidden")
    put(tmp_path / ".agents/skills/b", "SECRET")
    names(folders)
    assert "is not a path in the skill's folder" in refusal(folders, "a", path)


def test_links_pipes_and_huge_files_are_not_read(folders: SkillFolders, tmp_path: Path) -> None:
    skill = tmp_path / ".agents/skills/a"
    put(skill)
    secret = put(tmp_path, "SECRET", "secret.md")
    (skill / "link.md").symlink_to(secret)
    (skill / "folder").symlink_to(tmp_path)
    (skill / "loop").symlink_to(skill / "loop")
    os.mkfifo(skill / "pipe")
    with (skill / "huge.md").open("wb") as file:
        file.truncate(2**30)
    names(folders)
    assert read(folders, "a").endswith("Its other files: huge.md.]")
    assert "leads elsewhere" in refusal(folders, "a", "link.md")
    assert "leads elsewhere" in refusal(folders, "a", "folder/secret.md")
    assert "a pipe" in refusal(folders, "a", "pipe")
    assert "larger than 100000 bytes" in refusal(folders, "a", "huge.md")
    for path in ("loop", "none.md"):
        assert "not read" in refusal(folders, "a", path)


def test_an_own_skill_with_too_many_files_to_list_is_read(
    folders: SkillFolders, tmp_path: Path
) -> None:
    for number in range(101):
        put(tmp_path / ".agents/skills/a", file=f"{number}.md")
    put(tmp_path / ".agents/skills/a", "Do it.")
    names(folders)
    assert read(folders, "a").endswith(
        "Do it.\n\n[This skill's folder is " + f"{tmp_path}/.agents/skills/a.]"
    )


def test_hostile_skills_of_a_project_do_nothing(
    folders: SkillFolders, project: Path, tmp_path: Path
) -> None:
    place = project / ".parley/skills"
    put(tmp_path / "elsewhere", "SECRET")
    place.mkdir(parents=True)
    (place / "link").symlink_to(tmp_path / "elsewhere")
    put(place / "linked")
    (place / "linked/SKILL.md").unlink()
    (place / "linked/SKILL.md").symlink_to(tmp_path / "elsewhere/SKILL.md")
    (place / "pipe").mkdir()
    os.mkfifo(place / "pipe/SKILL.md")
    for name, text in (
        ("yaml", "---\na: [\n---\n"),
        ("up", "---\nname: ../x\ndescription: D\n---\n"),
    ):
        put(place / name).write_text(text, encoding="utf-8")
    put(place / "esc\x1b")
    many = put(place / "many").parent
    for number in range(200):
        put(many, file=f"{number}.md")
    large = put(place / "large").parent
    for number in range(21):
        put(large, "x" * 99_000, f"{number}.md")
    slow = put(place / "slow")
    slow.write_text(f"---\ndescription: D\nx: [{'a,' * 5_000}]\n---\n", encoding="utf-8")
    assert names(folders) == ([], [])
    assert len(folders.problems) == 9
    assert all(problem.isprintable() and "SECRET" not in problem for problem in folders.problems)
    for number in range(1_001):
        (place / f"s{number}").mkdir()
    assert names(folders) == ([], [])
    assert "has more than 1000 entries, so it is not read" in folders.problems[0]


def test_in_the_home_folder_own_skills_are_not_the_projects(tmp_path: Path) -> None:
    put(tmp_path / ".claude/skills/a")
    folders = SkillFolders({"HOME": str(tmp_path)}, lambda: tmp_path, TextTrust(open_ledger))
    assert names(folders) == (["a"], [])


def test_the_users_unchanged_skills_are_not_read_again(
    folders: SkillFolders, tmp_path: Path, project: Path
) -> None:
    put(tmp_path / "config" / "parley" / "skills" / "mine")
    assert names(folders) == (["mine"], [])
    before = folders.skills["mine"]
    assert names(folders) == (["mine"], [])
    assert folders.skills["mine"] is before
    put(tmp_path / ".claude" / "skills" / "new")
    assert names(folders) == (["mine", "new"], [])
    put(tmp_path / "config" / "parley" / "skills" / "mine", "More text.")
    folders.look()
    assert folders.skills["mine"] is not before
    put(project / ".parley" / "skills" / "theirs")
    assert names(folders) == (["mine", "new"], ["theirs"])
    put(project / ".parley" / "skills" / "others")
    assert names(folders) == (["mine", "new"], ["others", "theirs"])
