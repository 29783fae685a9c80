"""The same world in which providers fail."""

from tests.providers.conftest import world

__all__ = ["world"]
