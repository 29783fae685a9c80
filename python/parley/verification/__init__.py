"""Verification: whether a chat still matches the requests to its models, for `parley verify`, and
whether a replay produces the same chat, for `parley replay`.

Other rooms may use only the names listed here. Storing requests is not part of this room: turns
do that, in `runtime`.
"""

from parley.verification.later_edits import (
    LaterEdit,
    RequestRecord,
    Verification,
    settings_changes,
    verify_chat,
)
from parley.verification.replay import Replay, replay_chat

__all__ = [
    "LaterEdit",
    "Replay",
    "RequestRecord",
    "Verification",
    "replay_chat",
    "settings_changes",
    "verify_chat",
]
