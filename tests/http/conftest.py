"""The same failing providers."""

from tests.providers.conftest import faulty

__all__ = ["faulty"]
