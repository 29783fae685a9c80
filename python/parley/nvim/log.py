"""The host's log file: failures with tracebacks, but never keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from io import TextIOWrapper
from itertools import takewhile
from logging.handlers import RotatingFileHandler
from pathlib import Path

from parley.paths import private_file
from parley.secrets import HANDED_OUT

_SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_SHORTEST = 8
_BEGINNING = 16
"""How many characters are enough to recognize a secret, because a message may be cut off. Keys
share fewer.
"""
_MOST_BYTES = 1_000_000


class _Redacting(logging.Formatter):
    """Hides the keys in use, and the values of variables whose names suggest a secret."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = {
            value: name
            for name, value in environ.items()
            if any(word in name.upper() for word in _SECRET_NAMES)
        }

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        known = HANDED_OUT | self._secrets
        secrets = {value: name for value, name in known.items() if len(value) >= _SHORTEST}
        for value, name in secrets.items():
            text = text.replace(value, f"[{name}]")
        for value, name in secrets.items():
            text = _without(text, value, f"[{name}]")
        return text


def _without(text: str, secret: str, name: str) -> str:
    """The text with `name` instead of the secret, or of its beginning."""
    before, *pieces = text.split(secret[:_BEGINNING])
    for piece in pieces:
        same = takewhile(
            lambda pair: pair[0] == pair[1], zip(piece, secret[_BEGINNING:], strict=False)
        )
        before += name + piece[sum(1 for _ in same) :]
    return before


class _PrivateFile(RotatingFileHandler):
    """A log file that only the user can read."""

    def _open(self) -> TextIOWrapper:
        private_file(Path(self.baseFilename))
        return super()._open()


def log_to(path: Path, environ: Mapping[str, str]) -> None:
    """Write Parley's log to this file from now on; if that fails, continue without a log."""
    logger = logging.getLogger("parley")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _PrivateFile(path, maxBytes=_MOST_BYTES, backupCount=1, encoding="utf-8", delay=True)
    except OSError:
        logger.addHandler(logging.NullHandler())
        return
    file.setFormatter(_Redacting(environ))
    logger.addHandler(file)
