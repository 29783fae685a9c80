"""Parley's own tool that reads a file of a skill, without a server."""

from __future__ import annotations

from typing import Any

from parley.chat.transcript import Result
from parley.engine.observation import Observation
from parley.engine.ports import Ports
from parley.errors import ParleyError
from parley.tools.catalogue import Tool
from parley.tools.results import result_text


async def read_skill(
    ports: Ports, observation: Observation, _tool: Tool, arguments: dict[str, Any]
) -> Result:
    """Return a file's text, escaped and limited like any result. Nothing in it runs."""
    try:
        text = await ports.skills.read(str(arguments["name"]), str(arguments.get("path") or ""))
    except ParleyError as error:
        return Result("error", str(error))
    most = observation.settings.result_max_bytes
    return Result("ok", result_text([{"type": "text", "text": text}], max_bytes=most))
