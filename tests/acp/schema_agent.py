"""An agent over the package's own agent side, which checks every message against the schema."""

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp import helpers
from acp.schema import (
    AgentCapabilities,
    Implementation,
    PermissionOption,
    PromptCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    ToolCallUpdate,
)


class SchemaAgent:
    """Asks about one edit, and says how it ended."""

    def __init__(self) -> None:
        self.client: Any = None
        self.mode = "auto"

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=protocol_version,
            agent_info=Implementation(name="schema", version="1"),
            agent_capabilities=AgentCapabilities(
                load_session=True, prompt_capabilities=PromptCapabilities(image=True)
            ),
        )

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id="s", config_options=self.options())

    async def load_session(self, **_: Any) -> acp.LoadSessionResponse:
        await self.client.session_update("s", helpers.update_agent_message_text("replayed"))
        return acp.LoadSessionResponse(config_options=self.options())

    def options(self) -> list[Any]:
        values = [SessionConfigSelectOption(value=v, name=v) for v in ("auto", "default")]
        return [
            SessionConfigOptionSelect(
                type="select",
                id="mode",
                name="Mode",
                category="mode",
                current_value=self.mode,
                options=values,
            )
        ]

    async def set_config_option(self, value: Any, **_: Any) -> Any:
        from acp.schema import SetSessionConfigOptionResponse

        self.mode = str(value)
        return SetSessionConfigOptionResponse(config_options=self.options())

    async def prompt(self, session_id: str, **_: Any) -> acp.PromptResponse:
        tell = self.client.session_update
        await tell(session_id, helpers.update_agent_thought_text("hm"))
        await tell(session_id, helpers.update_agent_message_text(f"In mode {self.mode}. "))
        diff = helpers.tool_diff_content("/p/a", "b", "a")
        await tell(session_id, helpers.start_tool_call("t", "Edit", kind="edit", content=[diff]))
        answer = await self.client.request_permission(
            session_id,
            ToolCallUpdate(tool_call_id="t"),
            [
                PermissionOption(option_id="1", name="Always", kind="allow_always"),
                PermissionOption(option_id="2", name="Yes", kind="allow_once"),
            ],
        )
        await tell(session_id, helpers.update_tool_call("t", status="completed"))
        await tell(session_id, helpers.update_agent_message_text(f"Chosen: {answer.outcome}"))
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, **_: Any) -> None:
        pass


if __name__ == "__main__":
    asyncio.run(acp.run_agent(SchemaAgent()))  # type: ignore[arg-type]
