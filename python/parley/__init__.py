"""Parley: a Markdown file is the conversation with a language model, tool calls included."""

from typing import Any

__version__ = "0.1.0"
__all__ = ["Session", "Settings", "__version__"]


def __getattr__(name: str) -> Any:
    """The library's names, imported when used: the editor's host must start at once."""
    if name == "Session":
        from parley.session import Session

        return Session
    if name == "Settings":
        from parley.settings.values import Settings

        return Settings
    raise AttributeError(name)
