"""Lets the user choose the mode or the model of an agent of another program, and writes it into the
chat's front matter.

Knows to what the user agrees with a choice; `models.agent_offers` knows what an agent offers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from parley import engine
from parley.chat.edits import Edit, apply_edits
from parley.chat.front_matter import read_front_matter
from parley.chat.head import put_values
from parley.chat.reader import parse
from parley.display.summary import legible_line
from parley.errors import ParleyError
from parley.models.agent_offers import AgentOffer, OfferedWord
from parley.nvim.chat_buffer import ChatBuffer
from parley.nvim.dialogs import Dialogs
from parley.nvim.mirror import UNKNOWN_TICK
from parley.nvim.start_check import StartCheck
from parley.settings.readiness import wanted_agent

MODE, MODEL = "mode", "model"
_OWN = {MODE: "the mode that asks before each call", MODEL: "the agent's own choice"}
_SHORT = {MODE: "asks first", MODEL: "its own"}
_STATE_SHOWN = 30
_WIDEST = 24


class ChoosingChat(Protocol):
    """The chat whose agent gets a mode or a model."""

    buffer: ChatBuffer
    check: StartCheck

    async def change(self, handle: int, change: engine.Change) -> None:
        """Change the text, as one undo step."""
        ...


def choice_of(words: str) -> tuple[str, str] | None:
    """The key and the value in `mode=NAME` or `model=NAME`; None for the name of an agent."""
    found = re.fullmatch(rf"({MODE}|{MODEL})=(.*)", words)
    return (found[1], found[2]) if found else None


def choice_rows(buffer: ChatBuffer) -> list[dict[str, str]]:
    """The rows for the mode and the model in the list of agents; none for other agents, or for an
    agent that is not installed.
    """
    provider = buffer.app.provider(buffer.agent.provider)
    if not provider.is_agent or provider.is_missing:
        return []
    offer = known_offer(buffer)
    words = {MODE: offer.modes, MODEL: offer.models}
    is_known = offer != AgentOffer()
    return [
        {
            "name": f"{key.capitalize()} of {buffer.agent.name}",
            "model": _now(buffer, key) or _SHORT[key],
            "state": _some(offered) if is_known else "the agent lists the others",
            "option": key,
        }
        for key, offered in words.items()
        if offered or not is_known
    ]


def known_offer(buffer: ChatBuffer) -> AgentOffer:
    """What the chat's agent offers, as far as it is known; nothing for other agents."""
    provider = buffer.app.provider(buffer.agent.provider)
    if not provider.is_agent:
        return AgentOffer()
    return buffer.app.agent_processes.offer(provider, buffer.path)


async def pick_choice(
    chat: ChoosingChat, dialogs: Dialogs, key: str, then: Callable[[], None]
) -> None:
    """Let the user pick a mode or a model, and write it; `then` runs when it is written."""
    buffer = chat.buffer
    offered = _offered(await _looked(chat), key)
    if not offered:
        raise ParleyError(f"{buffer.agent.provider} offers no {key}s to choose from")
    now = _now(buffer, key)
    rows = [f"{_OWN[key]}{'' if now else ' (now)'}"]
    width = min(_WIDEST, max(len(each.word) for each in offered))
    rows += [_row(each, width, is_now=each.word == now) for each in offered]
    number = await dialogs.select(f"{key.capitalize()} of {legible_line(buffer.agent.name)}", rows)
    if number is not None:
        await write_choice(chat, key, offered[number - 1].word if number else "", then)


async def write_choice(chat: ChoosingChat, key: str, value: str, then: Callable[[], None]) -> None:
    """Write a mode or a model into the front matter, with the agent if the user chose it only for
    this session; "" removes it. Raises ParleyError.
    """
    buffer = chat.buffer
    agent, app = buffer.agent, buffer.app
    if not app.provider(agent.provider).is_agent:
        raise ParleyError(
            f"{agent.name} is not an agent of another program. Choose a model with :ParleyAgent"
        )
    known = [each.word for each in _offered(known_offer(buffer), key)]
    if value and known and value not in known:
        raise ParleyError(
            f"{agent.provider} has no {key} {legible_line(value)}. Choose one of {', '.join(known)}"
        )

    agreed = ""

    def change(shot: engine.Snapshot) -> list[Edit]:
        nonlocal agreed
        keys = read_front_matter(shot.transcript.front_matter).keys
        values: dict[str, str | None] = {key: value or None}
        if buffer.chosen and keys.get("agent") != agent.name:
            if others := [other for other in ("provider", MODEL) if other in {*keys} - {key}]:
                raise ParleyError(
                    f"the front matter sets {others[0]}. Write the agent there yourself"
                )
            values["agent"] = agent.name
        try:
            edits = put_values(shot.lines, shot.transcript, values)
        except ValueError as error:
            raise ParleyError(str(error)) from error
        after = parse("\n".join([*apply_edits(shot.lines, edits), ""]))
        agreed = wanted_agent(after) if chat.check.is_agreed(shot.transcript) else ""
        return edits

    await buffer.look()
    handle = await buffer.editor.ask("open_after", buffer.buf, UNKNOWN_TICK, 0)
    if handle is None:
        return
    await chat.change(handle, change)
    buffer.chosen = buffer.once = None
    then()
    if agreed:  # the user has now chosen the rest of it, too
        app.ledger(buffer.path).confirm(agreed)
    buffer.editor.tell("agent", buffer.buf, buffer.resolve(buffer.transcript).agent)
    what = f"the {key} {legible_line(value)}" if value else _OWN[key]
    buffer.editor.message(f"{agent.name} uses {what} here; the front matter says so")


async def _looked(chat: ChoosingChat) -> AgentOffer:
    """What the agent offers; asks it if that is unknown and the user has named this agent."""
    buffer, offer = chat.buffer, known_offer(chat.buffer)
    if offer != AgentOffer():
        return offer
    refusal = chat.check.refusal(await buffer.look(), buffer.chosen, question="x")
    if refusal is not None:
        raise ParleyError(refusal or "confirm the chat's agent first: ask a question")
    buffer.editor.message(f"asking {buffer.agent.provider}...")
    folder = Path(buffer.app.project(lambda: buffer.folder))
    provider = buffer.app.provider(buffer.agent.provider)
    tools = buffer.app.workspace.client_tools
    return await buffer.app.agent_processes.look(provider, folder, buffer.path, tools)


def _offered(offer: AgentOffer, key: str) -> tuple[OfferedWord, ...]:
    return offer.modes if key == MODE else offer.models


def _now(buffer: ChatBuffer, key: str) -> str:
    """The value in the front matter; "" if it has no effect."""
    if buffer.chosen:
        return ""
    value = read_front_matter(buffer.transcript.front_matter).keys.get(key, "")
    return legible_line(value)


def _row(offered: OfferedWord, width: int, *, is_now: bool) -> str:
    mark = " (now)" if is_now else ""
    return legible_line(f"{offered.word:<{width}}  {offered.about}{mark}".rstrip())


def _some(words: tuple[OfferedWord, ...]) -> str:
    text = ", ".join(each.word for each in words)
    return legible_line(text if len(text) <= _STATE_SHOWN else f"{text[:_STATE_SHOWN]}…")
