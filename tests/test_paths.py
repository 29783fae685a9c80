"""The paths of Parley's own folders, which are never in the working directory by accident."""

from __future__ import annotations

import pwd

import pytest

from parley.errors import ParleyError
from parley.paths import chats_folder, config_path, state_folder

PATHS = (state_folder, config_path, chats_folder)


def test_an_empty_home_makes_no_path_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    assert all(path({"HOME": ""}).is_absolute() for path in PATHS)


def test_without_a_home_only_the_folders_variables_help(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_account(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", no_account)
    for path in PATHS:
        with pytest.raises(ParleyError, match="no home directory"):
            path({})
        folders = {f"XDG_{kind}_HOME": "/x" for kind in ("STATE", "CONFIG", "DATA")}
        assert path(folders).is_relative_to("/x/parley")
