"""The fields of a request's body beyond the conversation: the user's own parameters, and the fields
that a provider refused.

Knows which fields only Parley may set, and how refusals name a field. Pure; knows no wire format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from parley.late_patterns import late_pattern
from parley.models.encode import fit_body
from parley.tools.catalogue import canonical

OWN_FIELDS = frozenset(
    {
        *("model", "messages", "input", "instructions", "system", "prompt", "stream", "store"),
        *("tools", "tool_choice", "functions", "function_call", "mcp_servers"),
        *("previous_response_id", "conversation"),
    }
)
"""Fields with the conversation and the tools; only the file and Parley's rules determine them."""
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Names of one limit: Parley sends one of them."""
_OTHER_LENGTH = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

REFUSABLE: Mapping[str, str] = {
    "temperature": "temperature",
    "reasoning_effort": "thinking",
    "reasoning.effort": "thinking",
    "reasoning.summary": "thinking.show",
    "reasoning": "thinking",
    "thinking": "thinking",
    "output_config": "thinking",
    "stream_options": "",
    "include": "",
}
"""Fields that Parley sends and that a request can do without, with the user's setting; "" if the
field is not a setting.
"""
OF_USER = "parameters."
"""Precedes a parameter's name among refused fields."""


def with_parameters(
    body: Mapping[str, Any], parameters: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The body with the user's parameters, and the parameters that are ignored because Parley sets
    them.

    A table is merged with Parley's table, unless it is a variant with a `type`.
    """
    whole, ignored = dict(body), list[str]()
    has_length = any(name in body for name in _LENGTHS)
    for name, value in sorted(fit_body(parameters).items()):
        is_own = name in OWN_FIELDS or (name in _LENGTHS and has_length)
        if is_own and (name not in body or body[name] != value):
            ignored.append(name)
        elif not is_own:
            whole[name] = _merged(body[name], value, name, ignored) if name in body else value
    return whole, tuple(ignored)


def _merged(own: Any, more: Any, path: str, ignored: list[str]) -> Any:
    if not (isinstance(own, Mapping) and isinstance(more, Mapping)) or "type" in own:
        if own != more:
            ignored.append(path)
        return own
    both = dict(own)
    for name, value in sorted(more.items()):
        where = f"{path}.{name}"
        both[name] = _merged(own[name], value, where, ignored) if name in own else value
    return both


def without_fields(body: Mapping[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """Parley's body without refused fields; the limit of the reply's length gets its other name."""
    rest = dict(body)
    for field in refused:
        name, _, _ = field.partition("=")
        above, _, below = name.partition(".")
        if field.startswith(OF_USER) or not _is_refused(name, _value(rest, name), refused):
            continue
        value = rest.pop(above)
        if name in _OTHER_LENGTH:
            rest[_OTHER_LENGTH[name]] = value
        elif below and (left := {key: each for key, each in value.items() if key != below}):
            rest[above] = left
    return rest


def without_parameters(parameters: Mapping[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """The user's parameters without the refused ones."""
    items = parameters.items()
    return {name: v for name, v in items if not _is_refused(f"{OF_USER}{name}", v, refused)}


_ABSENT = object()


def _value(body: Mapping[str, Any], path: str) -> Any:
    """The value at a path of one or two names."""
    above, _, below = path.partition(".")
    value = body.get(above, _ABSENT)
    if not below:
        return value
    return value.get(below, _ABSENT) if isinstance(value, Mapping) else _ABSENT


def _is_refused(name: str, value: Any, refused: frozenset[str]) -> bool:
    return value is not _ABSENT and (name in refused or _with_value(name, value) in refused)


def _with_value(name: str, value: Any) -> str:
    return f"{name}={canonical(value)}"


# Providers' wordings, read 2026-11-25: "Unsupported parameter: 'max_tokens' is not supported with
# this model. Use 'max_completion_tokens' instead." and "Unsupported value: 'temperature' does not
# support 0.7 with this model. Only the default (1) value is supported." (OpenAI); "temperature:
# Extra inputs are not permitted" and "`temperature` and `top_p` cannot both be specified for this
# model" (Anthropic); "Unknown name "top_k": Cannot find field." (Gemini); "Unrecognized request
# argument supplied: reasoning_effort" (Azure); "{'loc': ['body', 'top_k'], 'msg': 'Extra inputs are
# not permitted'}" (vLLM and other servers that use pydantic). Written from memory, without pages.
_OF_FIELD = late_pattern(
    r"(?:unsupported|unknown|unrecognized|unexpected|invalid|extra)"
    r" (?:request )?(?:parameter|argument|field|property|name|key|input|option)"
    r"|(?:not|n't) (?:be )?(?:supported|permitted|allowed|accepted|available|recognized)"
    r"|(?:does|do)(?: not|n't) (?:support|accept|allow|recognize)"
    r"|cannot (?:both )?be (?:used|set|specified|combined)|cannot find field"
    r"|only the default|deprecated|must be verified",
    re.IGNORECASE,
)
"""A refusal of a field with any value."""
_OF_VALUE = late_pattern(
    r"(?:unsupported|invalid) (?:enum |parameter )?value|supported values|out of range"
    r"|(?:must|should|has to) be|(?:less|greater|higher|lower|larger|smaller) than"
    r"|at (?:most|least)|between|expected",
    re.IGNORECASE,
)
"""A refusal of a field's value; another value may be accepted."""
_ANY_VALUE = late_pattern(r"only the default|must be verified", re.IGNORECASE)
_OF_CONTENT = late_pattern(
    r"\bblocks?\b|\broles?\b|\bmessages?[.:\[]|\binput\[|signature", re.IGNORECASE
)
"""A refusal of the conversation, which may name a field, too."""
_UNAMBIGUOUS = late_pattern(r"\w+_\w+|temperature|reasoning|thinking")
"""Names that are a field even without quotes."""


def refused_field(body: Mapping[str, Any], parameters: Mapping[str, Any], words: str) -> str | None:
    """The field of a body that a refusal names, in the form for `Request.refused_fields`; None if
    it names none that can be left out.

    The user's own `parameters` come first, because Parley's fields are accepted more often.
    """
    is_of_value = bool(_OF_VALUE.search(words) and not _ANY_VALUE.search(words))
    if _OF_CONTENT.search(words) or not (is_of_value or _OF_FIELD.search(words)):
        return None
    for name, value in parameters.items():
        if name in body and any(_is_named(path, words) for path in _paths(name, value)):
            own = f"{OF_USER}{name}"
            return _with_value(own, value) if is_of_value else own
    for name in REFUSABLE:
        value = _value(body, name)
        if value is not _ABSENT and _is_named(name, words):
            return _with_value(name, value) if is_of_value else name
    if is_of_value:
        return None
    return next((n for n in _OTHER_LENGTH if n in body and _is_named(n, words)), None)


def _paths(name: str, value: Any) -> Iterator[str]:
    """The paths by which a refusal may name a parameter: if it is a table, also its keys."""
    yield name
    if isinstance(value, Mapping):
        yield from (f"{name}.{key}" for key in value)


def _is_named(path: str, words: str) -> bool:
    """Whether a text means this field, and not a word with the same spelling."""
    name = re.escape(path)
    inner = r"(?:\.[\w.]+)?" if "." not in path and path not in ("reasoning",) else ""
    forms = (
        rf"['\"`‘“]{name}{inner}['\"`’”]",
        rf"(?:^|: |\n){name}{inner}: ",
        rf"(?:parameter|argument|field|property|name|key|input|option)s?(?: supplied)?:? {name}\b",
        *(
            [rf"(?<![\w.]){name}{inner} (?:is|are|does|do|cannot|can|may|must|should)\b"]
            if _UNAMBIGUOUS.fullmatch(path)
            else []
        ),
    )
    return any(re.search(form, words) for form in forms)
