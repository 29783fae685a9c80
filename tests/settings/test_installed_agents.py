"""Built-in agents of other programs: which of them can answer on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.chat.reader import parse
from parley.runtime.app import App
from parley.settings.installed_agents import _is_installed, agents_files, with_installed
from parley.settings.readiness import Ready, Refusal, readiness
from parley.settings.values import Settings, key_source
from parley.storage.ledger import LedgerFile


def test_an_agent_answers_by_default_only_if_it_is_installed_and_no_key_is_set(
    tmp_path: Path,
) -> None:
    (tmp_path / "codex-acp").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "gemini").write_text("not executable\n", encoding="utf-8")
    (tmp_path / "codex-acp").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:bin:."}
    known = with_installed(Settings(), environ)
    assert known.installed == {"codex"}
    assert Settings().default_agent(environ).name == "Demo"
    assert known.default_agent(environ).name == "Codex"
    assert known.default_agent(environ | {"GEMINI_API_KEY": "x"}).name == "Gemini"
    providers = known.all_providers()
    assert key_source(providers["codex"]) == "the agent has its own sign-in"
    assert key_source(providers["gemini-cli"]) == (
        "not installed: npm install -g @google/gemini-cli"
    )
    assert with_installed(known, {"PATH": "/nowhere"}).installed == frozenset()


def test_the_path_is_searched_again_only_if_a_folder_has_changed(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    searches = list[int]()
    for _ in range(3):
        assert with_installed(Settings(), environ).installed == frozenset()
        searches.append(_is_installed.cache_info().misses)
    assert len(set(searches)) < 3  # half a minute may begin in between
    (tmp_path / "new").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "new").chmod(0o755)
    (tmp_path / "new").rename(tmp_path / "codex-acp")
    assert with_installed(Settings(), environ).installed == {"codex"}
    (tmp_path / "codex-acp").unlink()
    assert with_installed(Settings(), environ).installed == frozenset()


@pytest.mark.parametrize(
    ("front_matter", "agent", "chosen", "is_asked"),
    [
        ("", "", None, False),
        ("model: x", "", None, False),
        ("", "Codex", None, True),
        ("", "", "Codex", True),
        ("agent: Codex", "", None, True),
    ],
)
def test_no_agent_answers_by_default_in_a_project_that_could_make_it_start_programs(
    tmp_path: Path, front_matter: str, agent: str, chosen: str | None, is_asked: bool
) -> None:
    settings = Settings(agent=agent).with_installed(["codex"])
    transcript = parse(f"---\n{front_matter}\n---\n\n💬: q\n" if front_matter else "💬: q\n")

    def outcome() -> Ready | Refusal:
        return readiness(
            transcript,
            settings,
            {},
            chosen,
            may_want=lambda _: True,
            agents_files=lambda: agents_files(tmp_path, {}),
        )

    assert isinstance(outcome(), Ready)
    (tmp_path / ".claude").mkdir()
    assert agents_files(tmp_path, {"HOME": str(tmp_path)}) == ""
    refused = outcome()
    assert isinstance(refused, Ready if is_asked else Refusal)
    if isinstance(refused, Refusal):
        assert refused.text("--agent NAME") == (
            "this project has settings for agents (.claude), which can start programs, so Codex "
            "does not answer by default: choose an agent (--agent NAME)"
        )


async def test_the_app_looks_at_the_project_of_the_chat(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex-acp").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "bin" / "codex-acp").chmod(0o755)
    (tmp_path / "project" / ".codex").mkdir(parents=True)
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    app = App(Settings(), environ, LedgerFile(tmp_path / "ledger.db"), folder=lambda: tmp_path)
    transcript, chat = parse("💬: q\n"), str(tmp_path / "chat.md")
    assert isinstance(app.start(transcript, chat, None), Ready)
    refused = app.start(transcript, chat, None, folder=lambda: tmp_path / "project")
    assert isinstance(refused, Refusal)
    assert refused.reason == "agent by default"
    await app.close()
