"""The laws of files' text: no byte is lost, for any encoding, line ending and end of the file."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from parley.tools.file_text import (
    BinaryFileError,
    Encoding,
    FileText,
    UnencodableError,
    decoded,
)
from parley.tools.text_edits import Replacement, apply

MARKS: dict[Encoding, bytes] = {
    "utf-8": b"",
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
CODECS = {"utf-8-sig": "utf-8"}
TEXT = st.lists(
    st.sampled_from(["\n", "\r\n", "\r", "a", "ä", "😀", "\u2028", "\ufeff", "\x1a", " ", "ÿ"])
    | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    max_size=12,
).map("".join)
BYTES = st.lists(
    st.sampled_from(
        [*MARKS.values(), b"\r\n", b"\n", b"\0", b"\xe4", b"\xd8\x00", b"a", b"\xc3\xa4"]
    )
    | st.binary(max_size=4),
    max_size=6,
).map(b"".join)


@given(BYTES)
@example(b"\xff\xfe\0\0a\0\0\0")
@example(b"\xff\xfea")
@example(b"\xff\xfe\x01\xd8")
@example(b"\xef\xbb\xbf\xef\xbb\xbfa")
@example(b"\xef\xbb\xbf\xe4")
def test_a_file_keeps_every_byte_or_is_binary(data: bytes) -> None:
    try:
        file = decoded(data)
    except BinaryFileError:
        assert b"\0" in data
    else:
        assert file.encoded(file.text) == data
        assert "\0" not in file.text


@given(st.sampled_from(sorted(MARKS)), TEXT, TEXT)
@example("utf-8-sig", "a", "\ufeffb")
def test_a_new_text_keeps_the_encoding_and_the_byte_order_mark(
    encoding: Encoding, before: str, after: str
) -> None:
    assume(not before.startswith("\ufeff"))
    codec = CODECS.get(encoding, encoding)
    file = decoded(MARKS[encoding] + before.encode(codec))
    assert file == FileText(before, encoding)
    data = file.encoded(after)
    if encoding != "utf-8":
        after = after.removeprefix("\ufeff")
    assert data == MARKS[encoding] + after.encode(codec)


@given(st.binary(max_size=8).filter(lambda data: b"\0" not in data), st.text(max_size=4))
def test_other_bytes_are_latin_1_and_refuse_other_characters(data: bytes, added: str) -> None:
    file = decoded(b"\xe4\n" + data)
    assert file == FileText("ä\n" + data.decode("latin-1"), "latin-1")
    if all(character <= "ÿ" for character in added):
        assert file.encoded(file.text + added) == b"\xe4\n" + data + added.encode("latin-1")
    else:
        with pytest.raises(UnencodableError):
            file.encoded(file.text + added)


LINES = st.lists(TEXT.map(lambda text: f"{text}|\n"), max_size=3).map("".join)


@given(st.sampled_from([*MARKS, "latin-1"]), LINES, LINES, st.sampled_from(["", "\n", "\r\n"]))
def test_an_edit_keeps_the_bytes_around_it(
    encoding: Encoding, above: str, below: str, ending: str
) -> None:
    codec = CODECS.get(encoding, encoding)
    if encoding == "latin-1":
        above, below = (
            f"ä{text.encode('latin-1', 'ignore').decode('latin-1')}" for text in (above, below)
        )
    assume(not above.startswith("\ufeff"))

    def data(line: str) -> bytes:
        return MARKS.get(encoding, b"") + f"{above}{line}{ending}{below}".encode(codec)

    file = decoded(data("old line"))
    assert file.encoded(apply(file.text, [Replacement("old line", "new")])) == data("new")


@pytest.mark.parametrize("data", [b"\x7fELF\0", b"a\0", b"\xff\xfe\0\0a\0\0\0"])
def test_a_null_character_means_a_binary_file(data: bytes) -> None:
    with pytest.raises(BinaryFileError, match="the file is binary, not text"):
        decoded(data)


def test_messages_name_a_character_that_the_encoding_does_not_have() -> None:
    with pytest.raises(UnencodableError) as latin:
        decoded(b"\xe4").encoded("5 €")
    assert str(latin.value) == (
        "the file's encoding, ISO 8859-1 (Latin-1), has no character € (U+20AC). Use other "
        "characters, or convert the file to UTF-8 first"
    )
    with pytest.raises(UnencodableError) as surrogate:
        FileText().encoded("\ud800")
    assert str(surrogate.value).startswith("the file's encoding, UTF-8, has no character U+D800.")
