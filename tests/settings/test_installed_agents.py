"""Built-in agents of other programs: which of them can answer on this machine."""

from __future__ import annotations

from pathlib import Path

from parley.settings.installed_agents import with_installed
from parley.settings.values import Settings, key_source


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
