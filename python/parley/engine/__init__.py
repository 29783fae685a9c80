"""The engine: the loop, and the ports it reaches the world through."""

from parley.engine.choices import ChoiceMade, choose, regenerate
from parley.engine.loop import run_turn
from parley.engine.notices import stopped
from parley.engine.observe import Observation, guidance, observe, with_own_tools
from parley.engine.pictures import with_pictures
from parley.engine.ports import (
    NOTHING_ASKED,
    REMOVED,
    Attachments,
    CallBegan,
    CallEnded,
    CallProgress,
    CallRefused,
    Change,
    ChatSettings,
    Clock,
    Document,
    End,
    EndKind,
    Ledger,
    MissingTools,
    Model,
    Narrow,
    Observer,
    Ports,
    Resolve,
    ServerWait,
    Snapshot,
    Tools,
    TurnEvent,
)
from parley.engine.summaries import sum_up
from parley.models.events import Aside

__all__ = [
    "NOTHING_ASKED",
    "REMOVED",
    "Aside",
    "Attachments",
    "CallBegan",
    "CallEnded",
    "CallProgress",
    "CallRefused",
    "Change",
    "ChatSettings",
    "ChoiceMade",
    "Clock",
    "Document",
    "End",
    "EndKind",
    "Ledger",
    "MissingTools",
    "Model",
    "Narrow",
    "Observation",
    "Observer",
    "Ports",
    "Resolve",
    "ServerWait",
    "Snapshot",
    "Tools",
    "TurnEvent",
    "choose",
    "guidance",
    "observe",
    "regenerate",
    "run_turn",
    "stopped",
    "sum_up",
    "with_own_tools",
    "with_pictures",
]
