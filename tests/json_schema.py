"""The JSON Schema of everything that `parley` prints for programs, made from the code that
prints it.

The dataclasses give the types of values. This module lists the lines that commands build
themselves, and `cli/test_terminal_json.py` compares them with the output. With `PARLEY_EXPECT=1` in
the environment, that test writes `doc/json.schema.json`, the published copy. A `strict` schema
allows no further fields.
"""

from __future__ import annotations

import json
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from jsonschema import Draft202012Validator

from parley import engine
from parley.chat.grammar import VERSION
from parley.chat.transcript import (
    CHOICES,
    RUNNERS,
    Attachment,
    Broken,
    Note,
    Orphan,
    Problem,
    Proposal,
    Severity,
    Text,
    Thinking,
    ToolCall,
    Transcript,
)
from parley.cli.exits import EXITS
from parley.cli.terminal import snake_case
from parley.models.events import Price, Usage
from parley.models.model_list import Lifecycle
from parley.policy.approval import Rule
from parley.policy.facts import What
from parley.policy.permissions import Permission
from parley.runtime.totals import ToolTotals
from parley.tools.prompts import PromptArgument
from parley.tools.resources import ResourceList
from parley.tools.server_settings import ServerStatus
from parley.verification import LaterEdit

Schema = dict[str, Any]

PARTS = {
    kind.__name__: kind for kind in (Text, Note, Attachment, Thinking, Proposal, Orphan, Broken)
}
"""The chat values that have several kinds."""
OF_ONE = {
    *(snake_case(event) for event in get_args(engine.TurnEvent)),
    *("error", "note", "status", "call_waiting"),
}
"""Lines that have a `file` if one command continues several chats."""
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
PLACE: Schema = {"type": "integer", "minimum": 1}


class Schemas:
    """The definitions in one schema, each added at the first reference to it."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.definitions: dict[str, Schema] = {}

    def object(self, properties: Mapping[str, Schema], optional: Collection[str] = ()) -> Schema:
        """An object with these properties."""
        required = [name for name in properties if name not in optional]
        closed = {"additionalProperties": False} if self.strict else {}
        return {"type": "object", "properties": dict(properties), "required": required, **closed}

    def line(
        self, kind: str, properties: Mapping[str, Schema], optional: Collection[str] = ()
    ) -> Schema:
        """A line of this type."""
        if kind in OF_ONE:
            properties, optional = {"file": TEXT, **properties}, {"file", *optional}
        return self.object({"type": {"const": kind}, **properties}, optional)

    def of(self, annotation: Any) -> Schema:
        """A value as `terminal.plain` prints it."""
        simple = {str: TEXT, int: {"type": "integer"}, float: NUMBER, bool: {"type": "boolean"}}
        if annotation in simple:
            return simple[annotation]
        if annotation in (None, type(None)):
            return {"type": "null"}
        if is_dataclass(annotation) and isinstance(annotation, type):
            return self._reference(
                snake_case(annotation), lambda: self.fields_of(annotation, self.of)
            )
        return self._composed(annotation, self.of)

    def fields_of(self, kind: Any, of: Any) -> Schema:
        """The object with a class's fields."""
        hints = get_type_hints(kind)
        return self.object(
            {each.name: of(hints[each.name]) for each in fields(kind) if each.compare}
        )

    def part(self, annotation: Any) -> Schema:
        """A value in a chat as `parley parse` prints it."""
        if not is_dataclass(annotation) or not isinstance(annotation, type):
            return (
                self._composed(annotation, self.part)
                if get_origin(annotation)
                else self.of(annotation)
            )
        return self._reference(
            f"chat_{snake_case(annotation)}", lambda: self._chat_value(annotation)
        )

    def _chat_value(self, kind: type) -> Schema:
        schema = self.fields_of(kind, self.part)
        properties = schema["properties"]
        has_place = kind is Orphan or "span" in kind.__annotations__
        if kind is Broken:
            properties["marker"] = properties.pop("kind")
        if kind.__name__ in PARTS:
            properties["kind"] = {"const": snake_case(kind)}
        lines = {"line": PLACE, "end_line": PLACE} if has_place else {}
        missing = lines if kind is Attachment else ()  # a result's lines have no types of their own
        return self.object({**properties, **lines}, missing)

    def _reference(self, name: str, make: Any) -> Schema:
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def _composed(self, annotation: Any, of: Any) -> Schema:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (Union, types.UnionType):
            return {"anyOf": [of(each) for each in arguments]}
        if origin is tuple and arguments[1:] == (...,):
            return {"type": "array", "items": of(arguments[0])}
        if origin is tuple:
            items = [of(each) for each in arguments]
            return {
                "type": "array",
                "prefixItems": items,
                "minItems": len(items),
                "maxItems": len(items),
            }
        if origin is Mapping:
            return {"type": "object"}
        raise TypeError(f"no schema for {annotation!r}")


def event_lines(schemas: Schemas) -> dict[str, Schema]:
    """A line for each event in a turn."""
    lines = {}
    for event in get_args(engine.TurnEvent):
        if event is not engine.Aside:  # printed as a note
            properties = schemas.fields_of(event, schemas.of)["properties"]
            lines[snake_case(event)] = schemas.line(snake_case(event), properties)
    return lines


def record(schemas: Schemas) -> Schema:
    """A record in the log: the facts for each kind."""
    about = {"call": TEXT, "tool": TEXT}
    tokens = {each.name: COUNT for each in fields(Usage)}
    request = {
        "provider": TEXT,
        "model": TEXT,
        "outcome": TEXT,
        "seconds": NUMBER,
        "tokens": schemas.object(tokens),
        "for": TEXT,
        "cost": NUMBER,
        "answered": TEXT,
    }
    call = {
        **about,
        "outcome": TEXT,
        "rule": TEXT,
        "ran_by": {"enum": list(RUNNERS)},
        "seconds": NUMBER,
        "bytes": COUNT,
    }
    decided = {
        **about,
        "choice": {"enum": list(CHOICES)},
        "rule": {"enum": list(get_args(Rule))},
        "because": TEXT,
    }
    kinds: list[tuple[Schema, dict[str, Schema], tuple[str, ...]]] = [
        ({"const": "request"}, request, ("for", "cost", "answered")),
        ({"const": "call"}, call, ("ran_by",)),
        ({"const": "decided"}, decided, ("because",)),
        ({"enum": list(get_args(What))}, {**about, "because": TEXT}, ()),
        ({"enum": ["reverted", "repeated"]}, {**about, "path": TEXT}, ()),
    ]
    return {
        "anyOf": [
            schemas.line("record", {"at": NUMBER, "kind": kind, **facts}, optional)
            for kind, facts, optional in kinds
        ]
    }


def changed_file(schemas: Schemas) -> Schema:
    """A file that calls changed."""
    call = {"call": TEXT, "exchange": COUNT, "tool": TEXT, "at": NUMBER}
    calls = schemas.object({**call, "is_reverted": {"type": "boolean"}})
    facts = {
        **dict.fromkeys(("path", "moved_from", "root", "problem", "diff"), TEXT),
        **dict.fromkeys(("added", "removed"), COUNT),
        "state": {"enum": ["standing", "reverted", "partly reverted"]},
        "calls": {"type": "array", "items": calls},
    }
    return schemas.line("changed_file", facts, ("diff",))


def totals(schemas: Schemas) -> Schema:
    """A log's totals."""
    tool = schemas.fields_of(ToolTotals, schemas.of)
    counts = {"requests": COUNT, "for_status": COUNT, "searches": COUNT}
    counts |= {"seconds": NUMBER, "cost": NUMBER, "deleted_until": NUMBER}
    tokens = {"type": "object", "additionalProperties": COUNT}
    tools = {"type": "object", "additionalProperties": tool}
    return schemas.line(
        "totals",
        {**counts, "tokens": tokens, "tools": tools},
        ("cost", "searches", "deleted_until"),
    )


def comparison(schemas: Schemas) -> Schema:
    """One agent's part of a comparison."""
    tokens = {"type": "object", "additionalProperties": COUNT}
    facts: dict[str, Schema] = {
        **dict.fromkeys(("file", "agent", "text"), TEXT),
        "seconds": NUMBER,
        "tokens": tokens,
        "cost": {"anyOf": [NUMBER, {"type": "null"}]},
    }
    ends = [(code, kind) for code, (kind, _) in EXITS.items()]
    shapes = [
        schemas.line("comparison", {**facts, "code": {"const": c}, "kind": {"const": k}})
        for c, k in ends
    ]
    return {"anyOf": shapes}


def problem(schemas: Schemas) -> Schema:
    """A problem in a chat; its line and column count from 1."""
    properties = schemas.fields_of(Problem, schemas.of)["properties"]
    assert properties["severity"] == {"enum": list(get_args(Severity))}
    return schemas.object({**properties, "line": PLACE, "column": PLACE})


def agent(schemas: Schemas) -> Schema:
    """An agent in the settings."""
    texts = dict.fromkeys(("name", "provider", "model", "key"), TEXT)
    truths = dict.fromkeys(("has_key", "is_default"), schemas.of(bool))
    return schemas.line("agent", {**texts, **truths})


def known_chat(schemas: Schemas) -> Schema:
    """A chat that `parley list` prints; a search adds the place that it found."""
    texts = dict.fromkeys(("path", "topic", "agent", "problem", "text"), TEXT)
    others = {"changed": NUMBER, "tags": {"type": "array", "items": TEXT}, "line": PLACE}
    return schemas.line("known_chat", {**texts, **others}, optional=("line", "text"))


def prompt(schemas: Schemas) -> Schema:
    """A prompt for questions; a server's prompt has no path."""
    texts = dict.fromkeys(("name", "description", "agent"), TEXT)
    argument = schemas.fields_of(PromptArgument, schemas.of)
    return schemas.line(
        "prompt",
        {
            **texts,
            "arguments": {"type": "array", "items": argument},
            "path": {"type": ["string", "null"]},
            "trusted": schemas.of(bool),
        },
    )


def models(schemas: Schemas) -> dict[str, Schema]:
    """A provider's list, and a model in it."""
    none: Schema = {"type": "null"}
    listed = {
        "provider": TEXT,
        "models": COUNT,
        "listed": {"anyOf": [NUMBER, none]},
        "problem": TEXT,
    }
    limit = {"anyOf": [PLACE, none]}
    price = {"anyOf": [schemas.of(Price), none]}
    stages = {"enum": list(get_args(Lifecycle))}
    facts = {
        "window": limit,
        "max_output": limit,
        "price": price,
        "lifecycle": stages,
        "ends": TEXT,
    }
    return {
        "model_list": schemas.line("model_list", listed),
        "model": schemas.line("model", {"provider": TEXT, "name": TEXT, **facts}),
    }


def chat(schemas: Schemas) -> Schema:
    """The tree that `parley parse` prints."""
    properties = schemas.fields_of(Transcript, schemas.part)["properties"]
    problems = {"type": "array", "items": problem(schemas)}
    return schemas.object({"version": {"const": VERSION}, **properties, "problems": problems})


def lines(schemas: Schemas) -> dict[str, Schema]:
    """A schema for each type of line."""
    message = {"message": TEXT}
    codes = [
        schemas.line("end", {"code": {"const": c}, "kind": {"const": k}})
        for c, (k, _) in EXITS.items()
    ]
    call = {"anyOf": [schemas.of(ToolCall), {"type": "null"}]}
    change = schemas.object({"path": TEXT, "moved_to": TEXT, "diff": TEXT})
    edit = schemas.fields_of(LaterEdit, schemas.of)["properties"]
    server = schemas.of(ServerStatus)["$ref"].rpartition("/")[2]
    return {
        "error": schemas.line("error", message),
        "note": schemas.line("note", message),
        "end": {"anyOf": codes},
        "status": schemas.line("status", {"text": TEXT}),
        "prompt": prompt(schemas),
        "skill": schemas.line(
            "skill",
            {
                **dict.fromkeys(("name", "description", "path"), TEXT),
                "trusted": schemas.of(bool),
            },
        ),
        **event_lines(schemas),
        "call_waiting": schemas.line(
            "call_waiting",
            {
                "call": call,
                "text": TEXT,
                "caution": TEXT,
                "changes": {"type": "array", "items": change},
            },
        ),
        "chat_end": {
            "anyOf": [
                schemas.line("chat_end", {"file": TEXT, "code": {"const": c}, "kind": {"const": k}})
                for c, (k, _) in EXITS.items()
            ]
        },
        "problem": schemas.line("problem", {"file": TEXT, **problem(schemas)["properties"]}),
        "record": record(schemas),
        "totals": totals(schemas),
        "chat": schemas.line("chat", {"file": TEXT}),
        "fork": schemas.line("fork", {"file": TEXT, "agent": TEXT}),
        "comparison": comparison(schemas),
        "agent": agent(schemas),
        "known_chat": known_chat(schemas),
        **models(schemas),
        "permission": schemas.line(
            "permission",
            {
                "number": NUMBER,
                **schemas.fields_of(Permission, schemas.of)["properties"],
                "given": NUMBER,
            },
        ),
        "setting": schemas.line("setting", {"name": TEXT, "value": {}, "origin": TEXT}),
        "server": schemas.line(
            "server",
            {
                **schemas.definitions.pop(server)["properties"],
                **schemas.fields_of(ResourceList, schemas.of)["properties"],
            },
        ),
        "edit": schemas.line("edit", {"file": TEXT, **edit, "line": PLACE, "exchange": COUNT}),
        "unknown_reply": schemas.line(
            "unknown_reply", {"file": TEXT, "line": PLACE, "exchange": PLACE}
        ),
        "changed_file": changed_file(schemas),
        "revert": schemas.line(
            "revert",
            {
                "path": TEXT,
                "root": TEXT,
                "outcome": {"enum": ["reverted", "repeated", "changed since"]},
            },
        ),
        "settings_change": schemas.line("settings_change", {**message, "since": NUMBER}),
        "replay": schemas.line(
            "replay", {"requests": COUNT, "is_same": {"type": "boolean"}, "diff": TEXT}
        ),
        "request": schemas.line(
            "request", {"exchange": PLACE, "provider": TEXT, "body": {"type": "object"}}
        ),
        "verification": schemas.line(
            "verification",
            {**dict.fromkeys(("requests", "same", "unknown"), COUNT), "deleted_until": NUMBER},
            ("deleted_until",),
        ),
    }


def schema(*, strict: bool = False) -> Schema:
    """The whole schema. It describes a line; `#/$defs/chat` and `document` describe the other
    output.
    """
    schemas = Schemas(strict=strict)
    types_of_lines = {f"line_{kind}": each for kind, each in lines(schemas).items()}
    tree = chat(schemas)
    document = {
        "type": ["object", "array"],
        "description": "a request or tools, in a provider's format",
    }
    definitions = {**schemas.definitions, **types_of_lines, "chat": tree, "document": document}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What parley prints for programs: a line of --json",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in types_of_lines],
        "$defs": dict(sorted(definitions.items())),
    }


_STRICT = schema(strict=True)


def validate(value: Any, definition: str) -> None:
    """Raise an error for a value that violates its definition or has an unknown field."""
    Draft202012Validator({**_STRICT, "oneOf": [{"$ref": f"#/$defs/{definition}"}]}).validate(value)


def types_of(lines: Iterable[str | bytes]) -> set[str]:
    """Check the lines against the schema and return their types."""
    types = set()
    for line in map(json.loads, lines):
        types.add(line["type"])
        assert f"line_{line['type']}" in _STRICT["$defs"], f"the schema has no type {line['type']}"
        validate(line, f"line_{line['type']}")
    return types
