"""Messages about chats that have waiting calls or whose turn has ended. Pure.

Knows how a turn can end, and the choice keys; does not know windows.
"""

from __future__ import annotations

from pathlib import PurePath

from parley.chat.front_matter import topic
from parley.chat.transcript import Choice, Transcript
from parley.display.summary import legible_line, shown_line
from parley.engine import End
from parley.policy.choice import REACH
from parley.settings.values import Keys

_NAME = 50


def calls_wait(calls: int) -> str:
    """A phrase with the number of waiting calls."""
    return "1 call is waiting" if calls == 1 else f"{calls} calls are waiting"


def reminder(calls: int, keys: Keys) -> str:
    """The number of waiting calls, and the keys that continue."""
    ways = [f"{key_name('ya', keys)} yes", f"{key_name('yn', keys)} no"]
    if calls > 1:
        key = next(key for key, reach in REACH[keys.scope].items() if reach == "all")
        one = next(key for key, reach in REACH[keys.scope].items() if reach == "one")
        ways = [f"{key_name(key, keys)} all", f"{key_name(one, keys)} the call under the cursor"]
    return f"{calls_wait(calls)}: {', '.join([*ways, 'K details'])}"


def key_name(choice: Choice, keys: Keys) -> str:
    """The key that is mapped to a choice; if there is none, the choice's command."""
    key: str | bool = getattr(keys.choices, choice) if keys.choices.enabled else ""
    return str(key or f":ParleyApprove {choice}")


def title(transcript: Transcript, path: str) -> str:
    """A name for a chat: its topic or its first question, or else its file's name."""
    name = (
        shown_line(topic(transcript)[: _NAME + 1], None)
        or legible_line(PurePath(path).name)
        or "a chat without a name"
    )
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def announcement(end: End, calls: int, chat: str) -> str:
    """A message about a turn's end, for a user who does not see the chat."""
    match end.kind:
        case "waiting":
            return f"{chat}: {calls_wait(calls)} for your choice"
        case "complete":
            return f"{chat}: the answer is ready"
        case _:
            return f"{chat}: {end.message}" if end.message else ""
