"""The certificates that TLS connections trust: read when the first connection begins, in a thread.

Reading them takes longer than everything else that a new client does. Providers on this machine do
not need them.
"""

from __future__ import annotations

import os
import ssl
import threading
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from parley.errors import reason_of

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables with which the user chooses other certificates."""
_ONE_AT_A_TIME = threading.Lock()


class LateContext(ssl.SSLContext):
    """A client's TLS context that passes each connection on to the context with certificates.

    Without that, it would trust no server. `anyio` calls `wrap_bio` of other classes than the
    standard library's in a thread (anyio 4.16, streams/tls.py, read 2026-11-26).
    """

    _protocols: list[str]

    def __new__(cls) -> LateContext:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._protocols = []
        return made

    def set_alpn_protocols(self, alpn_protocols: Any) -> None:
        """Remember the protocols for the connections."""
        self._protocols = list(alpn_protocols)

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection. Raises SSLError, also if the certificates cannot be read."""
        try:
            context = read_certificates()
        except OSError as error:
            raise ssl.SSLError(f"the certificates cannot be read: {reason_of(error)}") from error
        context.set_alpn_protocols(self._protocols)
        return context.wrap_bio(*arguments, **options)


def read_ahead() -> None:
    """Read the certificates before a connection needs them; if that fails, the connection says so."""
    with suppress(OSError):
        read_certificates()


def read_certificates() -> ssl.SSLContext:
    """The context with the certificates, for all clients: read again after a change of a variable or
    of a file. Raises OSError.
    """
    places = [*(os.environ.get(name, "") for name in _VARIABLES)]
    places.append(ssl.get_default_verify_paths().openssl_cafile)
    with _ONE_AT_A_TIME:
        return _read(tuple(map(_state, places)))


def _state(place: str) -> tuple[object, ...]:
    """A value that is another one after a change of this file or folder."""
    try:
        found = Path(place).stat()
    except OSError:
        return (place,)
    return place, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


@lru_cache(maxsize=1)
def _read(_: tuple[object, ...]) -> ssl.SSLContext:
    context: ssl.SSLContext = import_module("httpcore2").default_ssl_context()
    return context
