"""The SDK's values as plain JSON, the only form that the rest of Parley receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


def plain(model: BaseModel | None) -> dict[str, Any]:
    """A value's fields that are set, by their names on the wire; empty for None."""
    return {} if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)
