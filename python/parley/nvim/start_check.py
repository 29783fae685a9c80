"""Checks whether a turn may begin in a chat: which agent would answer, and whether the user has
agreed.

Knows which agents the file asked for when it was loaded, and which warnings the user has seen;
`settings.readiness` knows the rules.
"""

from __future__ import annotations

from parley.chat.transcript import Transcript
from parley.nvim.chat_buffer import ChatBuffer
from parley.settings.readiness import Ready, Refusal, wanted_agent


class StartCheck:
    """The check of one chat."""

    def __init__(self, buffer: ChatBuffer) -> None:
        self._buffer = buffer
        self.was_loaded = True
        """Whether the file was loaded since the last `note`."""
        self._file_agents = set[str]()
        """The agents (or providers and models) that the file asked for when it was loaded."""
        self._previous = ("", "")
        """The previous agent and the next agent in the last warning to the user."""
        self._to_confirm = ""

    def note(self, transcript: Transcript) -> None:
        """If the file was just loaded, record the agent that it asks for."""
        self._file_agents |= {wanted_agent(transcript)} if self.was_loaded else set()
        self.was_loaded = False

    def is_agreed(self, transcript: Transcript) -> bool:
        """Whether the user has agreed to everything that the file asks for."""
        self.note(transcript)
        wish = wanted_agent(transcript)
        is_typed = wish not in self._file_agents
        return not wish or self._buffer.app.ledger(self._buffer.path).may_want(
            wish, is_typed=is_typed
        )

    def refusal(
        self, transcript: Transcript, chosen: str | None, question: str | None = None
    ) -> str | None:
        """Why no turn with the agent that the user has `chosen` may begin; None if it may, "" if the
        user must confirm the agent first.

        Shows the hint about the chat's agent, if there is one.
        """
        self.note(transcript)
        buffer = self._buffer
        is_typed = wanted_agent(transcript) not in self._file_agents
        folder = buffer.folder
        match buffer.app.start(
            transcript,
            buffer.path,
            chosen,
            is_typed=is_typed,
            question=question,
            folder=lambda: folder,
        ):
            case Refusal("unconfirmed agent", wish):
                self._to_confirm = wish
                return ""
            case Refusal("unreadable settings", problem):
                return f"{problem}. Fix it, then restart Neovim"
            case Refusal() as refusal:
                return refusal.text(":ParleyAgent")
            case Ready(hint, previous):
                if change := self._change_of_agent(transcript, previous, chosen):
                    return change
                buffer.editor.message(hint and f"{hint} before you start Neovim")
                return None

    def _change_of_agent(self, transcript: Transcript, previous: str, chosen: str | None) -> str:
        """A message, returned once, before an agent other than `previous` answers; else ""."""
        name = self._buffer.app.agent_name(transcript, chosen)
        if not previous or (previous, name) == self._previous:
            return ""
        self._previous = previous, name
        return (
            f"{previous} answered last, but {name} would answer now. Press again to ask {name}, "
            "or use :ParleyAgent"
        )

    def ask_to_confirm(self) -> None:
        """Ask the user about the agent in the last refusal, if any."""
        agent, self._to_confirm = self._to_confirm, ""
        if agent:
            self._buffer.editor.tell("confirm_agent", self._buffer.buf, agent)
