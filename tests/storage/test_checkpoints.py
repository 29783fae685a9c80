"""Contents that are kept for reverts: private, verified, and deleted when old."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.storage.checkpoints import LARGEST_KEPT, MOST_DAYS_KEPT, Checkpoints

DAY_S = 24 * 3600.0


@given(st.binary(max_size=40))
def test_a_content_comes_back_byte_for_byte(content: bytes) -> None:
    folder = Path(os.environ["XDG_STATE_HOME"]) / "some" / "checkpoints"
    kept = Checkpoints(folder)
    digest = kept.keep(content)
    assert kept.keep(content) == digest
    assert kept.content(digest) == content


def test_no_content_has_no_digest_and_an_unknown_digest_no_content(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    assert kept.keep(None) == ""
    assert kept.content("0" * 64) is None


def test_a_changed_file_is_no_content(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    digest = kept.keep(b"old")
    (tmp_path / digest[:2] / digest).write_bytes(b"forged")
    assert kept.content(digest) is None


def test_only_the_user_can_read_a_content(tmp_path: Path) -> None:
    digest = Checkpoints(tmp_path / "new").keep(b"secret")
    modes = [
        stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "new", tmp_path / "new" / digest[:2] / digest)
    ]
    assert modes == [0o700, 0o600]


def test_old_contents_are_deleted_unless_they_were_kept_again(tmp_path: Path) -> None:
    now = 1e9
    old, again = (Checkpoints(tmp_path, lambda: now).keep(each) for each in (b"old", b"again"))
    for digest in (old, again):
        os.utime(tmp_path / digest[:2] / digest, (now, now))
    now += (MOST_DAYS_KEPT + 1) * DAY_S
    later = Checkpoints(tmp_path, lambda: now)
    later.keep(b"again")
    assert [later.content(digest) for digest in (old, again)] == [None, b"again"]


def test_the_oldest_contents_are_deleted_if_they_are_too_many(tmp_path: Path) -> None:
    digests = [Checkpoints(tmp_path).keep(bytes([n]) * 10) for n in range(4)]
    for age, digest in enumerate(reversed(digests)):
        os.utime(tmp_path / digest[:2] / digest, (1e9 - age * DAY_S,) * 2)
    later = Checkpoints(tmp_path, lambda: 1e9 + DAY_S, 25)
    later.keep(b"\3" * 10)
    assert [later.content(each) is not None for each in digests] == [False, False, True, True]


def test_a_folder_that_cannot_be_written_and_a_huge_content_are_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ParleyError, match="cannot be kept in"):
        Checkpoints(tmp_path / "file").keep(b"x")
    with pytest.raises(ParleyError, match=r"larger than 50\.0 MB"):
        Checkpoints(tmp_path).keep(bytes(LARGEST_KEPT + 1))
