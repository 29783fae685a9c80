"""Server-sent events: takes bytes, split anywhere, and returns payload texts.

Only the field `data` is used, because every provider includes the event type in the payload. Knows
nothing about payloads except `[DONE]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from parley.errors import ModelError

END_MARK = "[DONE]"
MAX_EVENT_BYTES = 16 * 1024 * 1024

# html.spec.whatwg.org/multipage/server-sent-events.html, as of 2026-11-22: a line ends with CR LF,
# LF or CR, one byte order mark at the start is dropped, a line that begins with a colon is a
# comment, one space after a field's colon is dropped, several lines of data are joined by a line
# feed.
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SSE:
    """Takes a response's bytes and returns each payload when it is complete.

    `is_over` means that `[DONE]` has arrived; everything after it is ignored.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.is_over = False
        self._max = max_event_bytes
        self._unended: list[bytes] = []
        self._unended_size = 0
        self._after_cr = False
        self._at_start = True
        self._data: list[bytes] = []
        self._data_size = 0

    def feed(self, chunk: bytes) -> list[str]:
        """Return the payloads that `chunk` completes; raises ModelError for too large an event."""
        if self._after_cr and chunk:
            chunk, self._after_cr = chunk.removeprefix(b"\n"), False
        payloads = list[str]()
        *ended, unended = _LINE_END.split(chunk) if b"\r" in chunk else chunk.split(b"\n")
        for piece in ended:
            line = piece
            if self._unended:
                self._keep(piece)
                line = b"".join(self._unended)
                self._unended, self._unended_size = [], 0
            payloads += self._line(line)
        self._keep(unended)
        self._after_cr = chunk.endswith(b"\r")
        return payloads

    def end(self) -> list[str]:
        """The payloads that the stream's end completes: an event without its final blank line, but
        never an incomplete line."""
        # "If the file ends in the middle of an event, before the final empty line, the incomplete
        # event is not dispatched." (the same page, by bugzilla.mozilla.org/show_bug.cgi?id=710546,
        # read 2026-11-22). Some servers leave out that line; an incomplete line is never accepted.
        last = b"".join(self._unended)
        self._unended = []
        if last.removeprefix(b"data:").strip() == END_MARK.encode():
            return [*self._dispatch(), *self._line(last), *self._dispatch()]
        return [] if last else self._dispatch()

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._unended.append(piece)
            self._unended_size += len(piece)
        check_size(self._unended_size + self._data_size, self._max)

    def _line(self, line: bytes) -> list[str]:
        if self._at_start:
            line, self._at_start = line.removeprefix(_BOM), False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._data_size += len(value)
            check_size(self._data_size, self._max)
        return []

    def _dispatch(self) -> list[str]:
        payload = b"\n".join(self._data).decode("utf-8", "replace")
        self._data, self._data_size = [], 0
        self.is_over = self.is_over or payload.strip() == END_MARK
        return [payload] if payload.strip() and not self.is_over else []


def check_size(size: int, most: int = MAX_EVENT_BYTES) -> None:
    """Raise ModelError if an event, or an unstreamed reply, is too large."""
    if size > most:
        raise ModelError(
            f"The provider sent an event of more than {most} bytes.", reason="an event too large"
        )


def _null(_: str) -> None:
    """Decode NaN and infinities, which are not JSON, as None; no relevant field contains them."""


_JSON = json.JSONDecoder(parse_constant=_null)
"""Created once, because a stream has thousands of payloads."""
_JSON_BLANKS = " \t\r\n"


def decode_payload(payload: str) -> Mapping[str, Any]:
    """Decode a payload as a JSON object; raises ModelError for anything else."""
    try:
        text = payload.strip(_JSON_BLANKS)
        value, end = _JSON.raw_decode(text)
        if end != len(text):
            raise ValueError("more than one value")  # noqa: TRY301 - it is one of the errors of JSON
    except (ValueError, RecursionError) as error:
        raise ModelError(
            "The provider sent an event that is not JSON.",
            reason="an unreadable event",
            is_broken=True,
        ) from error
    if not isinstance(value, dict):
        raise ModelError(
            "The provider sent an event that is not a JSON object.",
            reason="an unreadable event",
            is_broken=True,
        )
    return value
