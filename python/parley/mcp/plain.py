"""The SDK's values as plain JSON: the only form in which they leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


def plain(model: BaseModel | None) -> dict[str, Any]:
    """The fields that a value has, under their names on the wire; none for None."""
    return {} if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)
