"""The engine: the loop, and its ports to the outside world."""

from typing import TYPE_CHECKING

from parley.engine.loop import run_turn
from parley.engine.notices import stopped
from parley.engine.observation import Observation, guidance
from parley.engine.observe import observe, previews_of
from parley.engine.own_tools import with_own_tools
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
    NoReferences,
    Observer,
    Ports,
    References,
    Resolve,
    ServerWait,
    Snapshot,
    TaskBegan,
    ToolRunner,
    TurnEvent,
)
from parley.engine.regeneration import regenerating, remark_on_old_answer
from parley.engine.request_pictures import with_pictures
from parley.late_names import late_names
from parley.models.events import Aside

if TYPE_CHECKING:
    from parley.engine.choices import ChoiceMade, Press, choose
    from parley.engine.compaction import sum_up

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
    "NoReferences",
    "Observation",
    "Observer",
    "Ports",
    "Press",
    "References",
    "Resolve",
    "ServerWait",
    "Snapshot",
    "TaskBegan",
    "ToolRunner",
    "TurnEvent",
    "choose",
    "guidance",
    "observe",
    "previews_of",
    "regenerating",
    "remark_on_old_answer",
    "run_turn",
    "stopped",
    "sum_up",
    "with_own_tools",
    "with_pictures",
]

_HOMES = {"choices": ("ChoiceMade", "Press", "choose"), "compaction": ("sum_up",)}
"""Names by module, which are imported when they are used: most questions need neither module."""

if not TYPE_CHECKING:
    __getattr__ = late_names(__name__, _HOMES)
