"""A fork's file is new and private, next to the chat itself."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.storage.forks import fork_paths, own_path, write_new


@pytest.mark.parametrize("name", ["stocks.md", "stocks-fork.md", "stocks-fork-12.md"])
def test_forks_and_their_forks_share_one_numbering(tmp_path: Path, name: str) -> None:
    names = [path.name for path in islice(fork_paths(tmp_path / name), 3)]
    assert names == ["stocks-fork.md", "stocks-fork-2.md", "stocks-fork-3.md"]


def test_a_fork_for_an_agent_has_its_name(tmp_path: Path) -> None:
    names = [path.name for path in islice(fork_paths(tmp_path / "stocks-fork.md", "A/B c"), 2)]
    assert names == ["stocks-fork-A_B_c.md", "stocks-fork-A_B_c-2.md"]
    assert next(fork_paths(tmp_path / "a.md", "x" * 99)).name == f"a-fork-{'x' * 40}.md"


def test_a_link_leads_to_the_chat_itself(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.md").symlink_to(tmp_path / "there" / "chat.md")
    assert own_path(str(tmp_path / "link.md")) == tmp_path / "there" / "chat.md"


def test_no_file_is_overwritten_and_no_link_followed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"mine")
    (tmp_path / "b.md").symlink_to(tmp_path / "nowhere.md")
    assert [write_new(tmp_path / name, b"new") for name in ("a.md", "b.md", "c.md")] == [
        False,
        False,
        True,
    ]
    assert (tmp_path / "a.md").read_bytes() == b"mine"
    assert not (tmp_path / "nowhere.md").exists()
    assert (tmp_path / "c.md").read_bytes() == b"new"
    assert (tmp_path / "c.md").stat().st_mode & 0o777 == 0o600


def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ParleyError, match=r"cannot write .*: No such file or directory"):
        write_new(tmp_path / "no" / "a.md", b"")
    with pytest.raises(ParleyError, match="File name too long"):
        write_new(tmp_path / f"{'a' * 300}.md", b"")
