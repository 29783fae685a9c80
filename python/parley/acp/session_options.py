"""The mode and the model of one session of an agent: which it has, and how it gets others.

An agent that leaves its mode during a prompt is switched back, and one that insists is ended. Knows
nothing about prompts and calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from parley.acp.agent_process import AgentProcess
from parley.errors import ModelError
from parley.models.agent_modes import (
    ModeState,
    mode_state,
    model_state,
    wanted_mode,
    wanted_model,
)
from parley.models.agent_offers import AgentOffer
from parley.text import one_line

_MOST_MODE_CHANGES = 5
_NAME_SHOWN = 60


class SessionOptions:
    """The options of a session; `is_open` returns whether its prompt is open."""

    def __init__(self, process: AgentProcess, is_open: Callable[[], bool]) -> None:
        self.offer = AgentOffer()
        """The modes, models and commands that the agent offers."""
        self._process = process
        self._is_open = is_open
        self._session = ""
        """The session's id."""
        self._modes = ModeState()
        self._models = ModeState()
        self._first_model = ""
        """The model that the agent chose itself."""
        self._wanted_mode = ""
        """The mode in which the agent must stay; "" for any."""
        self._mode_changes = 0
        self._restoring = set[asyncio.Task[None]]()

    def begin(self, session: str, response: Any) -> None:
        """Note the modes and models in the response that opened the session with this id."""
        self._session = session
        self._modes, self._models = mode_state(response), model_state(response)
        self._first_model = self._models.current
        self.offer = self.offer.with_state(response)

    @property
    def mode(self) -> str:
        """The mode that the session is in; "" if the agent has no modes."""
        return self._modes.current

    async def set_model(self, chosen: str) -> None:
        """Give the session the user's model, else the agent's own. Raises ModelError."""
        state = self._models
        model = wanted_model(state, self._first_model, chosen)
        if not model or model == state.current:
            return
        if not state.option:
            await self._request("session/set_model", modelId=model)
            self._models = ModeState(model, state.available)
            return
        await self._set_option(state.option, model)
        if self._models.current != model:
            raise ModelError(
                f"the agent did not switch to the model {one_line(model, _NAME_SHOWN)}, so no prompt "
                "was sent. Choose another model",
                reason="the model was not set",
            )

    async def set_mode(self, chosen: str) -> None:
        """Switch the session to the user's mode, else to the mode that asks. Raises ModelError."""
        wanted = wanted_mode(self._process.name, self._modes, chosen)
        self._wanted_mode, self._mode_changes = wanted, 0
        if wanted and wanted != self._modes.current:
            await self._change_mode(wanted)

    async def _change_mode(self, mode: str) -> None:
        state = self._modes
        if not state.option:
            await self._request("session/set_mode", modeId=mode)
            self._modes = ModeState(mode, state.available)
            return
        await self._set_option(state.option, mode)
        if self._modes.current != mode:
            raise ModelError(
                f"the agent did not switch to the mode {one_line(mode, _NAME_SHOWN)}, so no prompt "
                "was sent. Ask again, or set another mode in the chat's front matter",
                reason="the mode was not set",
            )

    async def _set_option(self, option: str, value: str) -> None:
        response = await self._request("session/set_config_option", configId=option, value=value)
        self._note(response)

    async def _request(self, method: str, **params: str) -> Any:
        return await self._process.request(method, {"sessionId": self._session, **params})

    def _note(self, response: Any) -> None:
        """Note the options after a change; modes and models that are not options stay unchanged."""
        modes, models = mode_state(response), model_state(response)
        self._modes = modes if modes.option or self._modes.option else self._modes
        self._models = models if models.option or self._models.option else self._models
        self.offer = self.offer.with_state(response)

    def update(self, update: Mapping[str, Any]) -> None:
        """Receive an update about the session; others are ignored."""
        match update.get("sessionUpdate"):
            case "current_mode_update":
                self._note_mode(update.get("currentModeId"))
            case "config_option_update":
                before, state = self._modes, mode_state(update)
                self._note(update)
                self._modes = before
                if state.option:
                    self._modes = ModeState(before.current, state.available, state.option)
                    self._note_mode(state.current)
            case "available_commands_update":
                self.offer = self.offer.with_commands(update.get("availableCommands"))

    def check_mode(self) -> None:
        """Change the mode back if the agent has left it."""
        self._note_mode(self._modes.current)

    def _note_mode(self, mode: Any) -> None:
        """Note the mode that the agent is in; change it back if the agent must not leave its mode."""
        if not isinstance(mode, str):
            return
        self._modes = ModeState(mode, self._modes.available, self._modes.option)
        if not self._wanted_mode or mode == self._wanted_mode or not self._is_open():
            return
        self._mode_changes += 1
        if self._mode_changes > _MOST_MODE_CHANGES:
            self._process.end()
            return
        restoring = asyncio.ensure_future(self._restore_mode())
        self._restoring.add(restoring)
        restoring.add_done_callback(self._restoring.discard)

    async def _restore_mode(self) -> None:
        try:
            await self._change_mode(self._wanted_mode)
        except ModelError:
            self._process.end()
