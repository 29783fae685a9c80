"""The user's network settings, for the few tests that install packages from the package index."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, MutableMapping

_KEPT = "PARLEY_TESTS_NETWORK"
"""The variable with the kept variables: the tests' worker processes inherit it."""


def keep(environ: MutableMapping[str, str]) -> None:
    """Keep the variables that select a proxy and TLS authorities, before tests change them."""
    own = {n: v for n, v in environ.items() if n.lower().endswith("_proxy") or n == "SSL_CERT_FILE"}
    environ.setdefault(_KEPT, json.dumps(own))


def network_settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The kept variables, and those of pip and uv."""
    own: dict[str, str] = json.loads(environ[_KEPT])
    return own | {n: v for n, v in environ.items() if n.startswith(("PIP_", "UV_"))}
