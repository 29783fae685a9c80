"""Entry points are found by their metadata alone; each is either found exactly once or reported as
missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parley.entry_points import PROVIDER_GROUP, TEMPLATES, EntryPointError, folder, offer
from tests.packages import put_package

BOOM = {"boom.py": "raise RuntimeError('boom')"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_offer_names_its_package_and_imports_nothing(place: Path) -> None:
    put_package(place, "parley-boom", {PROVIDER_GROUP: {"boom": "boom:Boom"}}, BOOM)
    found = offer(PROVIDER_GROUP, "boom")
    assert (found.name, found.package, found.target) == ("boom", "parley-boom 1.0", "boom:Boom")
    assert "boom" not in sys.modules
    with pytest.raises(RuntimeError):
        found.load()


def test_an_unknown_name_is_reported_with_the_known_names(place: Path) -> None:
    with pytest.raises(
        EntryPointError, match=r"no installed package has a provider called 'bom'\. Install one"
    ):
        offer(PROVIDER_GROUP, "bom")
    put_package(place, "parley-boom", {PROVIDER_GROUP: {"boom": "boom:Boom", "b": "boom:B"}}, BOOM)
    with pytest.raises(
        EntryPointError,
        match=r"called 'bom' \(known: 'b', 'boom'\)\. Install one for the Python in ",
    ):
        offer(PROVIDER_GROUP, "bom")


def test_a_name_that_two_packages_offer_is_refused(place: Path) -> None:
    for name in ("parley-one", "parley-two"):
        put_package(place, name, {PROVIDER_GROUP: {"boom": "boom:Boom"}}, BOOM)
    with pytest.raises(EntryPointError) as caught:
        offer(PROVIDER_GROUP, "boom")
    assert "parley-one 1.0" in str(caught.value)
    assert "parley-two 1.0" in str(caught.value)


def test_the_imported_copy_of_a_package_installed_twice_counts(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        put_package(
            place / str(number), "parley-boom", {PROVIDER_GROUP: {"boom": f"boom:B{number}"}}, BOOM
        )
        monkeypatch.syspath_prepend(str(place / str(number)))
    assert offer(PROVIDER_GROUP, "boom").target == "boom:B2"


def test_a_package_with_broken_metadata_does_not_affect_others(place: Path) -> None:
    for number, text in enumerate(
        [b"", b"\xff\xfe", b"[parley.providers\nboom", b"[parley.providers]\n= x"]
    ):
        about = place / f"broken{number}-1.0.dist-info"
        about.mkdir()
        (about / "entry_points.txt").write_bytes(text)
    put_package(place, "parley-boom", {PROVIDER_GROUP: {"boom": "boom:Boom"}}, BOOM)
    assert offer(PROVIDER_GROUP, "boom").package == "parley-boom 1.0"


def test_a_packages_folder_is_found_without_an_import(place: Path) -> None:
    files = {"texts/__init__.py": BOOM["boom.py"], "texts/more/a.toml": "", **BOOM}
    offers = {
        "top": "texts",
        "more": "texts.more",
        "none": "texts.none",
        "gone": "gone",
        "plain": "boom",
    }
    put_package(place, "parley-texts", {TEMPLATES: offers}, files)
    assert folder(TEMPLATES, "top") == place / "texts"
    assert folder(TEMPLATES, "more") == place / "texts" / "more"
    assert "texts" not in sys.modules
    for name in ("none", "gone", "plain"):
        with pytest.raises(EntryPointError, match=r"^parley-texts 1\.0 has no package"):
            folder(TEMPLATES, name)
