"""Whether a turn may begin: the conditions that are checked before anything is sent, for the
editor, the shell and the library.

Each caller words the answer, and knows how its user can agree. This module compares a chat with the
agents and providers in the settings. It is not in `policy`, which does not know settings. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from parley.chat.front_matter import read_front_matter, trouble
from parley.chat.transcript import Transcript, is_blank
from parley.engine import NOTHING_ASKED
from parley.frozen import frozen
from parley.settings.resolve import agent_of
from parley.settings.values import DEMO, Settings
from parley.tables import any_of, nearest

Reason: TypeAlias = Literal[
    "unreadable settings",
    "no such agent",
    "broken front matter",
    "unknown agent",
    "unconfirmed agent",
    "agent by default",
    "no question",
]


@frozen
class Ready:
    """A turn may begin; if there is a `hint`, show it first."""

    hint: str
    previous: str = ""
    """The agent that answered last, if neither the user nor the file chose the agent that answers
    now.
    """


@frozen
class Refusal:
    """No turn may begin; `problem` explains why, or is a chat's wish for an unconfirmed agent."""

    reason: Reason
    problem: str

    def text(self, option: str, place: str = "") -> str:
        """The message to the user; "" if the user has to confirm an agent.

        `option` tells how to choose another agent in this front end; `place` precedes a problem
        with the chat.
        """
        match self.reason:
            case "unconfirmed agent":
                return ""
            case "unknown agent" | "agent by default":
                return f"{place}{self.problem} ({option})"
            case "broken front matter":
                return f"{place}{self.problem}"
            case _:
                return self.problem


def readiness(
    transcript: Transcript,
    settings: Settings,
    environ: Mapping[str, str],
    chosen: str | None,
    *,
    may_want: Callable[[str], bool],
    question: str | None = None,
    agents_files: Callable[[], str] = str,
) -> Ready | Refusal:
    """Whether a turn in this chat may begin, with the agent that the user has `chosen`, if any.

    `may_want` returns whether the user has agreed to the agent that the file asks for; it is called
    only if everything else allows the turn. `question` is not in the chat yet. `agents_files` names
    the project's settings for other programs' agents.
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
    default = "" if chosen else _agent_by_default(transcript, settings, environ)
    if default and (files := agents_files()):
        return Refusal(
            "agent by default",
            f"this project has settings for agents ({files}), which can start programs, so "
            f"{default} does not answer by default: choose an agent",
        )
    hint = _no_key(transcript, settings, environ, chosen)
    return Ready(hint, "" if chosen or wish else _previous(transcript, settings, environ))


def no_such_agent(name: str, settings: Settings) -> str:
    """The message that this agent does not exist: names the most similar agent, else all agents."""
    near = nearest(name, (agent.name for agent in settings.all_agents()))
    if near:
        return f"there is no agent {name!r}. Did you mean {near}?"
    return f"there is no agent {name!r}: choose one of {_agents(settings)}"


def has_question(transcript: Transcript, question: str | None = None) -> bool:
    """Whether there is a question to answer in the chat, or in `question` if it is given."""
    if question is None:
        return bool(transcript.exchanges)
    return not all(is_blank(line) for line in question.split("\n"))


def depends_on_logins(transcript: Transcript, settings: Settings, chosen: str | None) -> bool:
    """Whether it depends on sign-ins, or on installed programs, which agent answers, or whether its
    provider can.
    """
    keys = read_front_matter(transcript.front_matter).keys
    agent = settings.named_agent(chosen or keys.get("agent") or settings.agent or "")
    if agent is None:
        return True
    providers = map(settings.provider, (agent.provider, keys.get("provider", agent.provider)))
    return any(each is None or each.signs_in or bool(each.install) for each in providers)


def wanted_agent(transcript: Transcript) -> str:
    """The agent, provider, model, mode and web search that a file asks for, as one text; "" if it
    asks for none. A search sends parts of the chat to strangers' servers, so the user must have
    agreed.
    """
    keys = read_front_matter(transcript.front_matter).keys
    named = [f"{key} {keys[key]}" for key in ("agent", "provider", "model", "mode") if key in keys]
    return ", ".join([*named, *(["web search"] if keys.get("web_search") else [])])


def wants_more(transcript: Transcript) -> bool:
    """Whether a file asks for more than an agent and its model, so that choosing an agent does not
    mean agreement."""
    keys = read_front_matter(transcript.front_matter).keys
    return "mode" in keys or bool(keys.get("web_search"))


def _previous(transcript: Transcript, settings: Settings, environ: Mapping[str, str]) -> str:
    """The configured agent that answered last; "" if it is the default agent, or if the default
    agent is a demo.

    A question to a demo agent stays on this machine.
    """
    names = [answer.agent for exchange in transcript.exchanges for answer in exchange.answers]
    last = (names[-1] if names else None) or ""
    agent = agent_of(transcript, settings, environ, None)
    provider = settings.provider(agent.provider)
    is_other = last != agent.name and not (provider and provider.builtin)
    return last if is_other and settings.named_agent(last) else ""


def _unknown_agent(transcript: Transcript, settings: Settings) -> str:
    """Why the file's agent or provider is unavailable; "" if it is available."""
    keys = read_front_matter(transcript.front_matter).keys
    if (name := keys.get("agent")) and settings.named_agent(name) is None:
        known = _agents(settings)
        return (
            f"this chat asks for the agent {name}, which is not set up here: choose one of {known}"
        )
    if (name := keys.get("provider")) and settings.provider(name) is None:
        return f"this chat asks for the provider {name}, which is not set up here"
    return ""


def _agent_by_default(
    transcript: Transcript, settings: Settings, environ: Mapping[str, str]
) -> str:
    """The agent of another program that would answer, although neither the user nor the file names
    it; else ""."""
    keys = read_front_matter(transcript.front_matter).keys
    if settings.agent or "agent" in keys or "provider" in keys:
        return ""
    agent = agent_of(transcript, settings, environ, None)
    provider = settings.provider(agent.provider)
    return agent.name if provider and provider.is_installed else ""


def _misnamed_default(transcript: Transcript, settings: Settings) -> str:
    """The problem if the settings' agent does not exist, but this chat needs it; else "".

    Only the provider that the user chose may read the question.
    """
    is_named = "agent" in read_front_matter(transcript.front_matter).keys
    if is_named or not settings.agent or settings.named_agent(settings.agent):
        return ""
    return (
        f"your settings refer to the agent {settings.agent!r}, which does not exist: "
        f"choose one of {_agents(settings)}"
    )


def _agents(settings: Settings) -> str:
    return ", ".join(agent.name for agent in settings.all_agents())


def _no_key(
    transcript: Transcript, settings: Settings, environ: Mapping[str, str], chosen: str | None
) -> str:
    """A hint for users who talk to the demo model because they have no key; "" if they chose this
    model.
    """
    agent = agent_of(transcript, settings, environ, chosen)
    keys = read_front_matter(transcript.front_matter).keys
    is_chosen = chosen or settings.agent or "agent" in keys or "provider" in keys
    if is_chosen or agent.name != DEMO:
        return ""
    providers = [p for a in settings.all_agents() if (p := settings.provider(a.provider))]
    others = (p for p in providers if not p.signs_in)
    variables = dict.fromkeys(p.key_variable for p in others if p.key_variable)
    commands = dict.fromkeys(p.sign_in_command for p in providers if p.signs_in)
    sign_in = f"sign in with {any_of(*commands)}, or " if commands else ""
    return (
        f"no key is set, so this is the demo model. To use another model, {sign_in}set "
        f"{any_of(*variables)}"
    )
