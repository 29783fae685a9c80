"""The default settings. Inner values have no defaults of their own, so tests take them from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from parley.chat.transcript import Transcript
from parley.engine import ChatSettings
from parley.mcp.servers import Servers
from parley.models.attempts import Attempts
from parley.models.request import TextTools
from parley.models.text_tools.template import Template, builtin_templates
from parley.policy.turn_limits import Limits
from parley.settings.resolve import agent_of, chat_settings
from parley.settings.values import TEXT_TOOLS_MAX_TOKENS, Settings
from parley.tools.server_settings import ServerSettings

SETTINGS = Settings()
MAX_BYTES = SETTINGS.loop.result_max_bytes


def _chat_settings() -> ChatSettings:
    chat = Transcript()
    return chat_settings(chat, SETTINGS, agent_of(chat, SETTINGS, {}, None))


CHAT_SETTINGS = _chat_settings()


def limits_with(**more: Any) -> Limits:
    """A chat's limits, with these changes."""
    return replace(CHAT_SETTINGS.limits, **more)


def attempts_with(**more: Any) -> Attempts:
    """The retries of a failed request, with these changes."""
    tools = SETTINGS.prompt_tools
    return replace(
        Attempts(tools.max_retries, tools.retry_delay_ms, tools.temperature_reduction), **more
    )


def text_tools(mode: Any, template: Template | None = None, **more: Any) -> TextTools:
    """Text tools in this mode."""
    most, template = TEXT_TOOLS_MAX_TOKENS, template or builtin_templates()[-1]
    return TextTools(mode, template, **{"filter": SETTINGS.xml.filter, "most_tokens": most, **more})


def new_servers(servers: Mapping[str, ServerSettings], **more: Any) -> Servers:
    """These servers, with defaults for everything else."""
    return Servers(servers, **{"max_bytes": MAX_BYTES, **more})
