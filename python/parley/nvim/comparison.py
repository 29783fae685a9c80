"""`:ParleyCompare`: has several agents answer the same question, each in a fork of the chat.

Knows what the forks contain and who may answer in them; Lua opens and asks them side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parley.chat.fork import fork_for
from parley.chat.reader import parse_lines
from parley.engine import NOTHING_ASKED
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.nvim.chat import Chat
from parley.nvim.copies import write_fork
from parley.nvim.document import BufferDocument
from parley.policy.choice import answered_at
from parley.policy.comparisons import flaw
from parley.settings.readiness import no_such_agent
from parley.storage.forks import fork_paths, own_path

_UNSAVED = "save this chat first (:w): the forks are created next to it"


@frozen
class ForkPlace:
    """The place where forks begin: the handle at a question, its row, and the file's line end."""

    handle: int
    row: int
    newline: str


async def compare(
    chat: Chat, place: ForkPlace, agents: Sequence[str], choose: Callable[[str, str], None]
) -> None:
    """Create a fork for each agent, from the exchange at a place, and open the forks.

    `choose` records which agent the user has chosen for a file. Raises ParleyError.
    """
    buffer = chat.buffer
    app, file = buffer.app, own_path(buffer.path)

    async def work(document: BufferDocument) -> None:
        shot = await document.look()
        transcript = shot.transcript
        exchange = transcript.exchanges[answered_at(transcript, shot.at)]
        if exchange.question is None or not exchange.question.parts:
            raise ParleyError(NOTHING_ASKED)
        forks = list[dict[str, str]]()
        for agent in agents:
            try:
                lines = fork_for(shot.lines, exchange, file.name, agent)
            except ValueError as error:
                raise ParleyError(str(error)) from error
            path = await write_fork(chat, fork_paths(file, agent), lines, place.newline)
            fork = parse_lines(lines)
            is_named = app.agent(fork, None) == app.agent(fork, agent)
            if not (is_named and app.confirm(fork, path)):
                choose(path, agent)
            forks.append({"path": path, "agent": agent})
        buffer.editor.tell("compared", place.handle, forks)

    try:
        _check(chat, agents)
    except ParleyError:
        buffer.editor.tell("close", place.handle)
        raise
    await buffer.at(place.handle, place.row, work)


def _check(chat: Chat, agents: Sequence[str]) -> None:
    """Raises ParleyError if these agents cannot be compared in this chat."""
    app = chat.buffer.app
    if not chat.buffer.name:
        raise ParleyError(_UNSAVED)
    if unknown := next((agent for agent in agents if agent not in app.agents()), ""):
        raise ParleyError(no_such_agent(unknown, app.settings))
    if why := flaw(agents):
        raise ParleyError(why)
