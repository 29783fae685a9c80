"""Failing providers, as for the clients."""

from tests.providers.conftest import faulty

__all__ = ["faulty"]
