"""Only the user can read Parley's files, for any umask."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.nvim.log import log_to
from parley.providers.api_keys import key_of
from parley.secrets import command_secret
from parley.settings.values import ProviderSettings
from tests.nvim.harness import child

TOKEN = "tok-" + "0123456789abcdef" * 16


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.mark.usefixtures("open_umask")
def test_only_the_user_can_read_the_files_that_an_editor_writes(tmp_path: Path) -> None:
    state = tmp_path / "state" / "parley"
    state.mkdir(parents=True)
    state.chmod(0o777)
    (tmp_path / "old.html").write_text("old", encoding="utf-8")
    (tmp_path / "old.html").chmod(0o644)
    with child(tmp_path, init="require('parley').setup({ agent = 'Demo' })") as nvim:
        nvim.command("ParleyChatNew")
        chat = Path(nvim.lua("return vim.api.nvim_buf_get_name(0)"))
        nvim.keys('aall note {"text":"x"}<C-g><C-g>')
        nvim.until(lambda: "\n🤖:" in nvim.text(), "an answer")
        nvim.until_idle()
        for name in ("page.html", "old.html"):
            nvim.command(f"ParleyExport! {tmp_path}/{name}")
        nvim.until(lambda: nvim.messages().count("written to") == 2, "both pages")
        modes = {path.name: mode(path) for path in state.iterdir() if path.is_file()}
        assert modes == dict.fromkeys(("ledger.db", "ledger.db-wal", "ledger.db-shm"), "0o600")
        assert mode(tmp_path / "old.html") == "0o644", "an opened file stays open"
    private = [state, *(path for path in state.iterdir() if path.is_dir()), chat.parent]
    private += [tmp_path / "data" / "nvim" / "parley"]
    assert {str(path): mode(path) for path in private} == {str(path): "0o700" for path in private}
    assert [mode(chat), mode(tmp_path / "page.html")] == ["0o600", "0o600"]


@pytest.mark.usefixtures("open_umask")
def test_only_the_user_can_read_the_log_and_it_contains_no_part_of_a_token(tmp_path: Path) -> None:
    log = tmp_path / "parley.log"
    log.touch()
    log_to(log, {"A_TOKEN": TOKEN, "B_KEY": "tok-0123-another"})
    try:
        logging.getLogger("parley").error("it was %s, %s... and %s", TOKEN, TOKEN[:100], TOKEN[:4])
        logging.getLogger("parley").error("tok-0123-another")
    finally:
        log_to(Path(os.devnull) / "none", {})
    assert mode(log) == "0o600"
    text = log.read_text(encoding="utf-8")
    assert "it was [A_TOKEN], [A_TOKEN]... and tok-\n" in text
    assert text.endswith("parley: [B_KEY]\n")


async def test_the_log_contains_no_key_from_a_command_or_a_variable_of_any_name(
    tmp_path: Path,
) -> None:
    log, renewed = tmp_path / "parley.log", "renewed-" + TOKEN[::-1]
    log_to(log, os.environ)
    try:
        for key in TOKEN, renewed:
            await command_secret(("printf", "%s\\n", key), os.environ)
        await key_of(
            ProviderSettings("p", "openai", api_key_env="MINE"), {"MINE": "what-mine-holds"}
        )
        logging.getLogger("parley").error("%s, %s... and what-mine-holds", TOKEN, renewed[:40])
    finally:
        log_to(Path(os.devnull) / "none", {})
    assert log.read_text(encoding="utf-8").endswith("parley: [key], [key]... and [MINE]\n")
