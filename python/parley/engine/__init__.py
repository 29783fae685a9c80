"""The engine: the loop, and the ports it reaches the world through."""

from parley.engine.choices import ChoiceMade, choose, regenerate
from parley.engine.loop import run_turn
from parley.engine.notices import stopped
from parley.engine.observe import Look, look
from parley.engine.ports import (
    NOTHING_ASKED,
    REMOVED,
    Audience,
    CallBegan,
    CallEnded,
    CallRefused,
    Change,
    Conduct,
    Document,
    End,
    EndKind,
    Happening,
    Ledger,
    Model,
    Ports,
    Resolve,
    Snapshot,
    Tools,
    World,
)
from parley.models.events import Aside

__all__ = [
    "NOTHING_ASKED",
    "REMOVED",
    "Aside",
    "Audience",
    "CallBegan",
    "CallEnded",
    "CallRefused",
    "Change",
    "ChoiceMade",
    "Conduct",
    "Document",
    "End",
    "EndKind",
    "Happening",
    "Ledger",
    "Look",
    "Model",
    "Ports",
    "Resolve",
    "Snapshot",
    "Tools",
    "World",
    "choose",
    "look",
    "regenerate",
    "run_turn",
    "stopped",
]
