"""Reads and checks the fields in a provider's JSON.

`null` always counts as an absent field, because some compatible servers write it that way. A field
of the wrong type raises ValueError with a one-line reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parley.models.events import Usage
from parley.tables import LARGEST


def mapping(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`; empty if the field is absent."""
    value = raw.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object for {key!r}, got {type(value).__name__}")
    return value


def sequence(raw: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The objects in the array under `key`; empty if the field is absent."""
    value = raw.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ValueError(f"expected an array of objects for {key!r}")
    return value


def text(raw: Mapping[str, Any], key: str) -> str:
    """The text under `key`; "" if the field is absent."""
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"expected a string for {key!r}, got {type(value).__name__}")
    return value


def number(raw: Mapping[str, Any], key: str) -> int:
    """The whole number under `key`; 0 if the field is absent."""
    value = raw.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number for {key!r}, got {type(value).__name__}")
    if abs(value) > LARGEST:
        raise ValueError(f"the whole number {key!r} is too large")
    return value


def token_counts(usage: Mapping[str, Any], prompt: str, reply: str) -> Usage:
    """OpenAI's token counts, given the format's prefixes for prompt and reply fields."""
    prompt_details, reply_details = (
        mapping(usage, f"{prompt}_tokens_details"),
        mapping(usage, f"{reply}_tokens_details"),
    )
    return Usage(
        number(usage, f"{prompt}_tokens"),
        number(usage, f"{reply}_tokens"),
        number(prompt_details, "cached_tokens"),
        number(prompt_details, "cache_write_tokens"),
        number(reply_details, "reasoning_tokens"),
    )
