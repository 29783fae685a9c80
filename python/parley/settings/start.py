"""Whether a turn may begin: what has to be so before anything is sent, for editor, shell and library alike.

A caller puts the answer into its own words, and says how its user agrees. Holds a chat against the agents and
providers that are set up, so it is here and not in `policy`, which knows no settings. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from parley.chat.front_matter import read_front_matter, trouble
from parley.chat.transcript import Transcript, is_blank
from parley.engine import NOTHING_ASKED
from parley.settings.resolve import agent_of
from parley.settings.values import DEMO, Settings
from parley.tables import any_of

Reason: TypeAlias = Literal[
    "unreadable settings",
    "no such agent",
    "broken front matter",
    "unknown agent",
    "unconfirmed agent",
    "no question",
]


@dataclass(frozen=True, slots=True)
class Ready:
    """A turn may begin; `hint` is to be said before it, "" for nothing."""

    hint: str
    previous: str = ""
    """The agent that answered last, if another one answers now and neither user nor file has said so."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """No turn may begin; `problem` says why, or, for an unconfirmed agent, what the chat asks for."""

    reason: Reason
    problem: str


def start(
    transcript: Transcript,
    settings: Settings,
    environ: Mapping[str, str],
    chosen: str | None,
    *,
    may_want: Callable[[str], bool],
    question: str | None = None,
) -> Ready | Refusal:
    """Whether a turn of this chat may begin, with the agent that the user has `chosen`, if any.

    `may_want` says whether the user has agreed to what the file asks for; it is called where that is all that
    is left to know. `question` is one that is still to be put into the chat.
    """
    if chosen and settings.named_agent(chosen) is None:
        return Refusal("no such agent", no_such_agent(chosen, settings))
    if broken := trouble(transcript):
        return Refusal("broken front matter", broken)
    if not chosen and (unknown := _unknown_agent(transcript, settings)):
        return Refusal("unknown agent", unknown)
    if not chosen and (misnamed := _misnamed_default(transcript, settings)):
        return Refusal("no such agent", misnamed)
    wish = "" if chosen else wanted_agent(transcript)
    if wish and not may_want(wish):
        return Refusal("unconfirmed agent", wish)
    if not has_question(transcript, question):
        return Refusal("no question", NOTHING_ASKED)
    hint = _no_key(transcript, settings, environ, chosen)
    return Ready(hint, "" if chosen or wish else _previous(transcript, settings, environ))


def no_such_agent(name: str, settings: Settings) -> str:
    """That there is no agent of this name, and which there are."""
    return f"there is no agent {name!r}: choose one of {_agents(settings)}"


def has_question(transcript: Transcript, question: str | None = None) -> bool:
    """Whether there is anything to answer: in the chat, or in a question that is still to be put into it."""
    if question is None:
        return bool(transcript.exchanges)
    return not all(is_blank(line) for line in question.split("\n"))


def wanted_agent(transcript: Transcript) -> str:
    """The agent, provider and model that a file asks for, as one text; "" where it asks for none."""
    keys = read_front_matter(transcript.front_matter).keys
    return ", ".join(f"{key} {keys[key]}" for key in ("agent", "provider", "model") if key in keys)


def _previous(transcript: Transcript, settings: Settings, environ: Mapping[str, str]) -> str:
    """The agent of these settings that answered last; "" if the default agent is the same, or a demo agent.

    To a demo agent a question goes on this machine only.
    """
    names = [answer.agent for exchange in transcript.exchanges for answer in exchange.answers]
    last = (names[-1] if names else None) or ""
    agent = agent_of(transcript, settings, environ, None)
    provider = settings.provider(agent.provider)
    is_other = last != agent.name and not (provider and provider.builtin)
    return last if is_other and settings.named_agent(last) else ""


def _unknown_agent(transcript: Transcript, settings: Settings) -> str:
    """Why the agent or provider that a file asks for cannot be had; "" where it can."""
    keys = read_front_matter(transcript.front_matter).keys
    if (name := keys.get("agent")) and settings.named_agent(name) is None:
        known = _agents(settings)
        return f"this chat asks for the agent {name}, which is not set up here: choose one of {known}"
    if (name := keys.get("provider")) and settings.provider(name) is None:
        return f"this chat asks for the provider {name}, which is not set up here"
    return ""


def _misnamed_default(transcript: Transcript, settings: Settings) -> str:
    """That the settings name nobody whom a chat without an agent of its own talks to; "" where they do.

    Another provider than the user's is not to read the question.
    """
    is_named = "agent" in read_front_matter(transcript.front_matter).keys
    if is_named or not settings.agent or settings.named_agent(settings.agent):
        return ""
    return f"your settings name an unknown agent: {no_such_agent(settings.agent, settings)}"


def _agents(settings: Settings) -> str:
    return ", ".join(agent.name for agent in settings.all_agents())


def _no_key(
    transcript: Transcript, settings: Settings, environ: Mapping[str, str], chosen: str | None
) -> str:
    """A hint for who talks to the demo model for want of a key; "" for whoever chose it or another."""
    agent = agent_of(transcript, settings, environ, chosen)
    keys = read_front_matter(transcript.front_matter).keys
    is_chosen = chosen or settings.agent or "agent" in keys or "provider" in keys
    if is_chosen or agent.name != DEMO:
        return ""
    providers = (settings.provider(a.provider) for a in settings.all_agents())
    variables = dict.fromkeys(p.key_variable for p in providers if p and p.key_variable)
    return f"no key is set: this is the demo model. To use another model, set {any_of(*variables)}"
