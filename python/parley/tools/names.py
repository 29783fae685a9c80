"""The wire names of tools and parameters; providers allow less than MCP does.

Wire names depend only on the whole set of names, so they stay the same after a restart, for another
order of servers and in another process. Knows nothing about a tool except (server, name).
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, count

from parley.late_patterns import late_pattern

# "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64." (openai
# 3.54, types/shared_params/function_definition.py, read 2026-11-22); "Must match the regex
# ^[a-zA-Z0-9_-]{1,128}$." (platform.claude.com/docs/agents-and-tools/tool-use/define-tools,
# 2026-11-22): the shorter limit suits both.
MAX_LENGTH = 64
SEPARATOR = "__"

# "tools.0.custom.input_schema.properties: Property keys should match pattern
# '^[a-zA-Z0-9_.-]{1,64}$'" (a refusal by Anthropic, github.com/decocms/studio/pull/6874, of
# 2026-09-02, read 2026-11-23). "Only top-level keys are rewritten — that is what the upstream 400
# validates", says the same page.
PARAMETER = late_pattern(r"[A-Za-z0-9_.-]{1,64}")
"""A parameter name that every provider accepts."""

_FORBIDDEN = late_pattern(r"[^A-Za-z0-9_-]")
_HASH_LENGTH = 8
_ROUNDS = 8

Key = tuple[str, str]  # (server, the tool's own name)


def wire_names(keys: Iterable[Key]) -> Mapping[Key, str]:
    """One provider-safe name for each (server, tool), unique in the set, independent of the order.

    If only one server has a tool with some name, the name stays plain; otherwise, it becomes
    `server__tool` for each server. Names that still collide receive a hash.
    """
    ordered = sorted(set(keys))
    servers = Counter(name for _, name in ordered)
    plain = {key: qualified(*key) if servers[key[1]] > 1 else key[1] for key in ordered}
    names = {key: _shortened(fold(text), key) for key, text in plain.items()}
    for salt in range(_ROUNDS):
        clashing = _clashing(names)
        if not clashing:
            return names
        # A suffixed name may equal a tool's real name; then both are hashed again.
        names |= {key: _suffixed(fold(plain[key]), key, salt) for key in clashing}
    return {key: f"{_digest(key, _ROUNDS)}_{number}" for number, key in enumerate(ordered)}


def name_beside(key: Key, others: Collection[str]) -> str:
    """A provider-safe name `server__tool` for an additional tool; the other tools keep their
    names.
    """
    name = fold(qualified(*key))
    names = chain([_shortened(name, key)], (_suffixed(name, key, salt) for salt in count()))
    return next(name for name in names if name not in others)


def parameter_names(names: Iterable[str]) -> Mapping[str, str]:
    """Provider-safe names for a tool's parameters that need them, unique among all of them."""
    ordered = sorted(set(names))
    fit = {name for name in ordered if PARAMETER.fullmatch(name)}
    plain = {
        name: re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "_" for name in ordered if name not in fit
    }
    wires = {name: _shortened(text, ("", name)) for name, text in plain.items()}
    for salt in range(_ROUNDS):
        uses = Counter([*wires.values(), *fit])
        clashing = [name for name, wire in wires.items() if uses[wire] > 1]
        if not clashing:
            return wires
        wires |= {name: _suffixed(plain[name], ("", name), salt) for name in clashing}
    return {name: f"{_digest(('', name), _ROUNDS)}_{number}" for number, name in enumerate(plain)}


def qualified(server: str, name: str) -> str:
    """A name that distinguishes two servers' tools with the same name; not yet fit for the wire."""
    return f"{server}{SEPARATOR}{name}"


def fold(text: str) -> str:
    """`text` with `_` for each character that providers refuse; the length stays the same."""
    return _FORBIDDEN.sub("_", text) or "_"


def _shortened(name: str, key: Key) -> str:
    return name if len(name) <= MAX_LENGTH else _suffixed(name, key, 0)


def _suffixed(name: str, key: Key, salt: int) -> str:
    return f"{name[: MAX_LENGTH - _HASH_LENGTH - 1]}_{_digest(key, salt)}"


def _digest(key: Key, salt: int) -> str:
    text = "\0".join((*key, str(salt) if salt else ""))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]


def _clashing(names: Mapping[Key, str]) -> list[Key]:
    uses = Counter(names.values())
    return [key for key, name in names.items() if uses[name] > 1]
