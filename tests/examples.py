"""The examples for laws: `make test` always tries the same ones, `make fuzz` more and new ones."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

COMMON = 50
VARIABLE = "PARLEY_FUZZ"
FACTOR = int(os.environ.get(VARIABLE, "0"))
"""How many times more examples to try than `make test`; 0 is `make test` itself."""

# Machines are shared, so an example's duration says nothing about Parley. A law's examples may
# share an editor.
_CHECKS_LEFT_OUT = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
_UNTIMED: Any = {"deadline": None, "suppress_health_check": _CHECKS_LEFT_OUT}
# A new seed may begin with many chats that say nothing about a law; the seed of `make test` does
# not.
_UNLUCKY: Any = {
    "deadline": None,
    "suppress_health_check": [*_CHECKS_LEFT_OUT, HealthCheck.filter_too_much],
}
settings.register_profile(
    "repeatable", derandomize=True, database=None, max_examples=COMMON, **_UNTIMED
)
settings.register_profile(
    "fuzz",
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    max_examples=COMMON * max(FACTOR, 1),
    print_blob=True,
    **_UNLUCKY,
)
settings.load_profile("fuzz" if FACTOR else "repeatable")


def examples(count: int, **more: Any) -> settings:
    """Settings for a law that needs another number of examples than the usual 50 in `make test`."""
    return settings(max_examples=count * max(FACTOR, 1), **more)
