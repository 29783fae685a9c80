"""Forms that servers ask the user to fill in: their fields, and the values of typed lines.

Works on a form's JSON schema as in MCP: a flat object of texts, numbers, booleans and choices.
Escapes the text that the user sees, but does not know how it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from parley.frozen import frozen
from parley.tables import expected
from parley.text import one_line
from parley.tools.schema import check_arguments

TEXT_SHOWN = 300
"""The maximum number of characters from a server's text in a question or a list."""


@frozen
class Field:
    """One question: the user chooses from `options` (value, label) or, if there are none, types."""

    name: str
    schema: Mapping[str, Any]
    required: bool = False
    options: tuple[tuple[Any, str], ...] = ()
    several: bool = False
    server: str = ""
    """The server that asks; each question contains its name."""

    @property
    def label(self) -> str:
        """The label for the user: the title and the description, or else the name."""
        about = self.schema.get("description")
        title = _bounded(self.schema.get("title") or self.name)
        label = f"{title} ({_bounded(about)})" if about else title
        return f"{self.server}: {label}" if self.server else label

    @property
    def default(self) -> Any:
        """The value that the server suggests; None if there is none."""
        return self.schema.get("default")


def fields(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of a form, in its order."""
    properties, required = schema.get("properties"), schema.get("required")
    required = required if isinstance(required, list) else ()
    items = properties.items() if isinstance(properties, Mapping) else ()
    return tuple(
        _field(name, field, name in required) for name, field in items if isinstance(field, Mapping)
    )


def read(field: Field, typed: str) -> Any:
    """The value of a typed line: a number if the field requires a number, or else the text
    itself.
    """
    if field.schema.get("type") not in ("integer", "number"):
        return typed
    try:
        return json.loads(typed)
    except ValueError:
        return typed  # `complaint` reports it


def complaint(field: Field, value: Any) -> str | None:
    """The flaw in a value for this field; None if the value is valid."""
    schema = {"type": "object", "properties": {field.name: field.schema}, "required": [field.name]}
    return check_arguments(json.dumps({field.name: value}), schema) or _complaint_of_format(
        field, value
    )


# All formats that a form may have: "email", "uri", "date", "date-time"
# (modelcontextprotocol.io/specification/2026-07-28/client/elicitation, 2026-11-23).
_FORMATS = {
    "email": (r"[^@\s]+@[^@\s]+", "an e-mail address, such as ada@example.org"),
    "uri": (
        r"[A-Za-z][A-Za-z0-9+.-]*:\S+",
        "an address with its scheme, such as https://example.org",
    ),
    "date": (r"\d{4}-\d\d-\d\d", "a date, such as 2026-11-23"),
    "date-time": (
        r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)",
        "a date and time with a time zone, such as 2026-11-23T09:30:00Z",
    ),
}


def _complaint_of_format(field: Field, value: Any) -> str | None:
    """The flaw in a text that does not match its field's format; None if it matches."""
    name = field.schema.get("format")
    pattern, noun = _FORMATS.get(name, ("", "")) if isinstance(name, str) else ("", "")
    if not pattern or not isinstance(value, str):
        return None
    is_fit = re.fullmatch(pattern, value, re.ASCII) is not None
    return None if is_fit and _is_in_calendar(str(name), value) else expected(noun, value)


def _is_in_calendar(kind: str, text: str) -> bool:
    """Whether a day or time exists; True for other formats."""
    read_time = {"date": date.fromisoformat, "date-time": datetime.fromisoformat}.get(kind)
    try:
        return read_time is None or read_time(text.upper()) is not None
    except ValueError:
        return False


def _bounded(text: object) -> str:
    return one_line(str(text), TEXT_SHOWN)


def _field(name: str, schema: Mapping[str, Any], required: bool) -> Field:
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, Mapping):
        return Field(name, schema, required, tuple(_options(items)), several=True)
    if schema.get("type") == "boolean":
        return Field(name, schema, required, ((True, "yes"), (False, "no")))
    return Field(name, schema, required, tuple(_options(schema)))


def _options(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The choices, in any of three forms: titled, plain, or plain with a list of names."""
    titled = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(titled, list):
        for option in titled:
            if isinstance(option, Mapping) and "const" in option:
                yield option["const"], _bounded(option.get("title") or option["const"])
        return
    values, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list):
        labels = names if isinstance(names, list) and len(names) == len(values) else values
        yield from zip(values, map(_bounded, labels), strict=True)
