"""Turns any content from a server into a result's text, for the file and the model.

Works on content as JSON (`type`, `text`, `data`, `mimeType`, `uri`, `resource`); does not know any
SDK. The text can neither control a terminal nor hide anything from a reader, and is limited in
size.
"""

import binascii
import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from parley.frozen import frozen
from parley.media import PICTURE_BYTES, TYPES, kind_of
from parley.text import one_line, size_text, visible
from parley.tools.resources import without_links

NO_OUTPUT = "(no output)"
WHOLE_TEXT = "parley/whole"
"""The key, in a result's `_meta`, for the whole text if a server of Parley's own has cut it."""
FOR_USER = "(the output was shown to the user only)"
MOST_PICTURES = 20
"""The maximum number of pictures in one result; further pictures are described in text."""


@frozen
class Outcome:
    """A call's outcome: the text for the file and the model, and whether the tool failed.

    `pictures` came with the text. If the text was cut, `whole` contains all of it. `aside` is only
    for the user: no model receives it.
    """

    status: Literal["ok", "error"]
    text: str
    pictures: tuple[bytes, ...] = ()
    whole: str = ""
    aside: "Outcome | None" = None


def outcome(
    status: Literal["ok", "error"],
    content: Sequence[object],
    structured: object = None,
    *,
    max_bytes: int,
) -> Outcome:
    """The outcome of a call that returned these blocks, with its pictures and its `result_text`."""
    for_user = [block for block in content if _is_for_user(block)]
    aside = _outcome(status, for_user, None, max_bytes, NO_OUTPUT) if for_user else None
    others = [block for block in content if not _is_for_user(block)]
    sent = _outcome(status, others, structured, max_bytes, FOR_USER if for_user else NO_OUTPUT)
    return replace(sent, aside=aside)


def _outcome(
    status: Literal["ok", "error"],
    content: Sequence[object],
    structured: object,
    max_bytes: int,
    nothing: str,
) -> Outcome:
    pictures, others = list[bytes](), list[object]()
    for block in content:
        picture = _picture(block) if len(pictures) < MOST_PICTURES else None
        if picture:
            pictures.append(picture)
        else:
            others.append(block)
    whole = _text_of(others, structured)
    text = cut(whole, max_bytes)
    is_cut = text is not whole
    stand_in = "" if pictures else nothing
    return Outcome(status, text if whole else stand_in, tuple(pictures), whole if is_cut else "")


def _is_for_user(block: object) -> bool:
    """Whether a block is for the user and not for the model.

    "audience: This is an array indicating the intended audience(s) for this resource. Valid values
    are "user" and "assistant"" (modelcontextprotocol.io/specification/2026-07-28/server/resources,
    2026-11-23).
    """
    match block:
        case {"annotations": {"audience": [*audience]}}:
            return bool(audience) and all(role == "user" for role in audience)
        case _:
            return False


def described(picture: bytes) -> str:
    """The text that replaces a picture that cannot be kept."""
    return _note("image", TYPES.get(kind_of(picture) or ""), size_text(len(picture)))


def _picture(block: object) -> bytes | None:
    """The bytes of a picture or picture resource that a model can see; None for other blocks."""
    match block:
        case {"type": "image", "data": str(data)} | {
            "type": "resource",
            "resource": {"blob": str(data)},
        } if len(data) * 3 // 4 <= PICTURE_BYTES:
            try:
                content = b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                return None
            return content if TYPES.get(kind_of(content) or "", "").startswith("image/") else None
    return None


def result_text(content: Sequence[object], structured: object = None, *, max_bytes: int) -> str:
    """A result's blocks, joined by newlines, escaped and cut at `max_bytes` of UTF-8.

    If no block has text, the text is `structured` as compact JSON; if there is neither, the text is
    `(no output)`.
    """
    return cut(_text_of(content, structured), max_bytes) or NO_OUTPUT


def _text_of(content: Sequence[object], structured: object) -> str:
    """The whole text; "" if the text is blank."""
    blocks = [block for block in content if isinstance(block, Mapping)]
    parts = [part for part in map(_block_text, blocks) if part]
    if structured is not None and not any(map(_inline, blocks)):
        parts.append(visible(_compact(structured)))
    text = "\n".join(parts)
    return text if text.strip() else ""


def cut(text: str, max_bytes: int) -> str:
    """`text` within `max_bytes` of UTF-8; a cut text ends with the omitted size."""
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    beginning = encoded[: max(max_bytes, 0)].decode(errors="ignore")
    return f"{beginning}… [truncated: {len(encoded) - len(beginning.encode())} bytes omitted]"


def _block_text(block: Mapping[str, Any]) -> str:
    """A block's text, escaped; only a real resource link looks like a resource link."""
    match block.get("type"):
        case "text":
            return without_links(visible(_inline(block)))
        case "image" | "audio" as kind:
            return _note(kind, block.get("mimeType"), _decoded_size(block.get("data")))
        case "resource_link":
            return _note("resource", block.get("uri"), block.get("name"))
        case "resource":
            return without_links(visible(_inline(block))) or _blob(block.get("resource"))
        case kind:
            return _note("unknown content", kind)


def _inline(block: Mapping[str, Any]) -> str:
    """The text of a plain block or an embedded resource."""
    inner = block.get("resource") if block.get("type") == "resource" else block
    text = inner.get("text") if isinstance(inner, Mapping) else None
    return text if isinstance(text, str) and block.get("type") in ("text", "resource") else ""


def _blob(resource: object) -> str:
    if not isinstance(resource, Mapping):
        return _note("resource")
    size = _decoded_size(resource["blob"]) if "blob" in resource else None
    return _note("resource", resource.get("mimeType"), resource.get("uri"), size)


def _note(kind: str, *facts: object) -> str:
    first, *rest = list(_strings(facts)) or [""]
    return f"[{', '.join([f'{kind} {first}'.rstrip(), *rest])}]"


def _strings(facts: Sequence[object]) -> Iterator[str]:
    return (line for fact in facts if isinstance(fact, str) and (line := one_line(fact)))


def _decoded_size(data: object) -> str:
    """The size of base64 content, computed without decoding it."""
    text = data if isinstance(data, str) else ""
    return size_text(max(0, len(text) * 3 // 4 - text[-2:].count("=")))


def _compact(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (ValueError, RecursionError):
        return _note("unreadable structured content")
