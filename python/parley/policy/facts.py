"""The facts that a turn records in its chat's ledger. Does not know the rules that use them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from parley.chat.transcript import Choice
from parley.frozen import frozen
from parley.policy.approval import CallKey, Rule

Call: TypeAlias = tuple[str, str]
"""The id and the arguments of a call."""
What: TypeAlias = Literal["asked", "declined", "refused", "warned"]


@frozen
class Approved:
    """Calls were approved; each approval revokes its call's earlier live approvals."""

    calls: tuple[tuple[CallKey, Choice], ...]
    rule: Rule
    why: str = ""
    """The reason, if Parley did not ask."""


@frozen
class Revoked:
    """The live approvals of the calls with these ids are void."""

    call_ids: tuple[str, ...]


@frozen
class Disowned:
    """Calls were refused; if they are reopened, only the user can decide on them."""

    calls: tuple[Call, ...]


@frozen
class Removed:
    """Calls are removed from the file, with their results if they ran."""

    calls: tuple[Call, ...]


@frozen
class Explained:
    """Why calls (id, tool, reason) wait or do not run; a repeated reason is recorded once."""

    what: What
    calls: tuple[tuple[str, str, str], ...]


@frozen
class Proposed:
    """Parley wrote proposals (id, name, arguments) from a model's reply; `keys` contains their
    tools.
    """

    proposals: tuple[tuple[str, str, str], ...]
    keys: tuple[CallKey, ...] = ()


@frozen
class Replied:
    """The model replied to the last request; `units` are the digests of the reply's parts."""

    units: tuple[str, ...]


@frozen
class Warned:
    """The user was warned about calls (id, arguments, text), or about a question's references."""

    warnings: tuple[tuple[str, str, str], ...]


@frozen
class Unwarned:
    """The user has acted on warnings, so Parley shows them again next time."""

    warnings: tuple[tuple[str, str, str], ...]


Fact: TypeAlias = (
    Approved | Revoked | Disowned | Removed | Explained | Proposed | Replied | Warned | Unwarned
)
