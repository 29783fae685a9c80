"""Each scene on the site can be played, and a moving one shows its whole session."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.nvim.screens import main
from website.builder import scenes


@pytest.mark.parametrize("name", scenes())
def test_a_scene_of_the_site_can_be_played(name: str, tmp_path: Path) -> None:
    main(tmp_path, [name])
    texts = "".join(ElementTree.parse(tmp_path / f"{name}.svg").getroot().itertext())
    assert len(texts.split()) > 30
