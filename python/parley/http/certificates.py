"""The certificates that TLS connections trust: read when the first connection begins, in a thread.

Reading them takes longer than everything else that a new client does. Providers on this machine do
not need them.
"""

from __future__ import annotations

import os
import ssl
import threading
from functools import cache
from importlib import import_module
from typing import Any

from parley.errors import reason_of

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables with which the user chooses other certificates; a change makes Parley read again."""
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


def read_certificates() -> ssl.SSLContext:
    """The context with the certificates, for all clients. Raises OSError."""
    with _ONE_AT_A_TIME:
        return _read(tuple(os.environ.get(name, "") for name in _VARIABLES))


@cache
def _read(_: tuple[str, ...]) -> ssl.SSLContext:
    context: ssl.SSLContext = import_module("httpcore2").default_ssl_context()
    return context
