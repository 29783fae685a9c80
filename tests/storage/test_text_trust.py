"""Agreement to a project's texts: for exact content, one version of each file, within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.storage import text_trust
from parley.storage.ledger import LedgerFile
from parley.storage.prompt_folders import PromptFolders
from parley.storage.skill_folders import SkillFolders
from parley.storage.text_trust import TextTrust
from tests.ledgers import open_ledger


def trust_in(ledger: LedgerFile | None = None) -> TextTrust:
    opened = ledger or open_ledger()
    return TextTrust(lambda: opened)


def test_agreement_counts_for_one_content_of_one_file(tmp_path: Path) -> None:
    trust, path = trust_in(), tmp_path / "AGENTS.md"
    assert not trust.trusts(path, b"be brief")
    assert trust.previous(path) is None
    trust.trust(path, b"be brief")
    assert trust.trusts(path, b"be brief")
    assert not trust.trusts(path, b"be brief\n")
    assert not trust.trusts(tmp_path / "CLAUDE.md", b"be brief")
    trust.trust(path, b"be long")
    assert not trust.trusts(path, b"be brief")
    assert trust.previous(path) == "be long"


def test_agreement_survives_the_process_and_a_name_with_odd_bytes(tmp_path: Path) -> None:
    path = tmp_path / "\udcff\n.md"
    trust_in(open_ledger(tmp_path / "ledger.db")).trust(path, b"\xff")
    again = trust_in(open_ledger(tmp_path / "ledger.db"))
    assert again.trusts(path, b"\xff")
    assert again.previous(path) == "\ufffd"


def test_a_yes_to_a_prompt_is_no_yes_to_the_same_file_as_a_skill(tmp_path: Path) -> None:
    skill = tmp_path / ".agents/skills/fix/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\ndescription: D\n---\nFix it.\n", encoding="utf-8")
    (tmp_path / ".parley").mkdir()
    (tmp_path / ".parley/prompts").symlink_to(skill.parent)
    trust, environ = trust_in(), {"HOME": str(tmp_path / "home")}
    prompts = PromptFolders(environ, lambda: tmp_path, trust)
    skills = SkillFolders(environ, lambda: tmp_path, trust)
    (prompt,) = prompts.look()[0]
    trust.trust(prompt.path, prompt.content)
    assert prompts.look()[0][0].is_trusted
    skills.look()
    assert not skills.skills
    assert [text.content for text in skills.offered()] == [skill.read_bytes()]


def test_a_long_text_and_old_texts_are_trusted_but_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_trust, "MOST_BYTES_KEPT", 5)
    monkeypatch.setattr(text_trust, "MOST_TEXTS_KEPT", 2)
    trust, paths = trust_in(), [tmp_path / name for name in ("a", "b", "c", "long")]
    for path in paths[:3]:
        trust.trust(path, b"kept")
    trust.trust(paths[3], b"longer")
    assert [trust.previous(path) for path in paths] == [None, "kept", "kept", None]
    assert trust.trusts(paths[0], b"kept")
    assert trust.trusts(paths[3], b"longer")


def test_a_question_about_nothing_opens_no_ledger() -> None:
    def never() -> LedgerFile:
        raise AssertionError("opened")

    TextTrust(never)
