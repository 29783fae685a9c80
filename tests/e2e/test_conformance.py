"""The protocol project's conformance suite: it acts as servers, and checks Parley's behaviour.

The module lists the checks that Parley does not pass, with the reason. `make guests` installs the
suite and the Node version that it needs.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from parley.errors import ParleyError, ServerError
from parley.mcp.callbacks import Left
from parley.mcp.servers import Servers
from parley.tools.catalogue import Tool
from parley.tools.sampling import SamplingReply, SamplingRequest
from parley.tools.server_settings import ServerSettings
from parley.tools.visits import Visit
from tests.defaults import new_servers
from tests.mcp.oauth_server import browsed
from tests.mcp_servers import NoVisitor, only

PROGRAMS = Path(__file__).parents[2] / ".tools" / "guests" / "conformance" / "node_modules" / ".bin"
CLIENT = Path(__file__).parent / "conformance_client.py"
EXAMPLES = {"string": "text", "number": 5, "integer": 3, "boolean": True, "array": [], "object": {}}
AT_ONCE = 4  # otherwise a slow machine would reconnect too late
LIMIT_S = 60

NO_PERSON = "a program signs in without a user, with a secret: `token_command` can run that program"
FAILURES: Mapping[str, str] = {
    "auth/client-credentials-basic": NO_PERSON,
    "auth/client-credentials-jwt": NO_PERSON,
    "auth/enterprise-managed-authorization": NO_PERSON,
    "auth/wif-jwt-bearer": NO_PERSON,
    "auth/dpop": "an extension: Parley sends only `Bearer` tokens, which every server accepts",
    "auth/dpop-nonce": "the same extension",
    "auth/pre-registration": (
        "this client sets no `client_id`, so Parley registers itself at each sign-in"
    ),
    "auth/scope-step-up": "a call that needs an additional scope is refused with a message",
}
"""The scenarios with a failing check, and the reason."""
WARNINGS = {
    "auth/basic-cimd": "Parley has no web page that describes it as a client; it registers itself"
}
"""The scenarios in which Parley does not follow the suite's recommendation, and the reason."""

pytestmark = pytest.mark.guests


class Person(NoVisitor):
    """A user who leaves form fields unchanged and follows redirects; also answers as the model."""

    def __init__(self) -> None:
        self._visits = set[asyncio.Task[Any]]()

    async def ask(
        self, server: str, message: str, schema: Mapping[str, Any]
    ) -> dict[str, Any] | Left:
        fields: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
        return {name: field["default"] for name, field in fields.items() if "default" in field}

    def browse(self, page: Visit) -> None:
        self._visits.add(asyncio.ensure_future(browsed(page.url)))

    async def talk(self, request: SamplingRequest) -> SamplingReply:
        return SamplingReply("a reply", "a model", cut=False)


def calls(
    tools: Mapping[str, Tool], scenario: str, context: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """The calls that the suite expects; by default each tool with a value for each parameter."""
    if scenario == "json-schema-2020-12-preservation":
        return [("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})]
    if "toolCalls" in context:
        return [(call["name"], call["arguments"]) for call in context["toolCalls"]]
    fields = {name: tool.input_schema.get("properties", {}) for name, tool in tools.items()}
    return [
        (name, {key: EXAMPLES.get(field.get("type"), "text") for key, field in of_tool.items()})
        for name, of_tool in fields.items()
    ]


async def use(servers: Servers, person: Person, scenario: str, context: Mapping[str, Any]) -> str:
    """Sign in if a server requires it, call its tools, and read all its data."""
    for _ in range(3):
        await servers.catalogue()
        if only(servers).account == "signed out":
            await servers.sign_in("suite", person.browse)
    if only(servers).state != "ready":
        raise ServerError(only(servers).error)
    tools = {tool.name: tool for tool in only(servers).tools}
    texts = [
        (await servers.call(tools[name], values)).text
        for name, values in calls(tools, scenario, context)
    ]
    lists = await servers.resources()
    texts += [
        await servers.read_resource(s, r.uri) for s, each in lists.items() for r in each.resources
    ]
    texts += [
        await servers.get_prompt(prompt.server, prompt.name) for prompt in await servers.prompts()
    ]
    return "\n".join(texts)


async def played(task: Mapping[str, Any], state: Path) -> str:
    """Run one scenario; return its outcome as text."""
    settings, person = ServerSettings("suite", url=task["url"], sampling=True), Person()
    environ = {**os.environ, "XDG_STATE_HOME": str(state)}
    servers = new_servers({"suite": settings}, environ=environ, elicitor=person, sample=person.talk)
    try:
        return await use(servers, person, task["scenario"], task["context"])
    except ParleyError as error:
        return str(error)
    finally:
        await servers.close()


async def checks(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The checks by scenario, as the suite writes them."""
    door, numbers, results = asyncio.Semaphore(AT_ONCE), count(), folder / "results"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = json.loads(await reader.readline())
        async with door:
            writer.write((await played(task, folder / f"state{next(numbers)}")).encode())
        writer.close()

    command = shlex.join([sys.executable, "-ISE", str(CLIENT), str(folder / "socket")])
    options = f"--suite all --timeout {1000 * LIMIT_S} --output-dir {results}".split()
    async with await asyncio.start_unix_server(serve, folder / "socket"), asyncio.timeout(LIMIT_S):
        suite = await asyncio.create_subprocess_exec(
            *(PROGRAMS / "node", PROGRAMS / "conformance"),
            *("client", "--command", command, *options),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            await suite.communicate()
        finally:
            if suite.returncode is None:
                suite.kill()
    files = sorted(results.rglob("checks.json"))
    names = [str(file.parent.relative_to(results)).rsplit("-", 6)[0] for file in files]
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {name: json.loads(text) for name, text in zip(names, texts, strict=True)}


async def test_parley_passes_the_conformance_suite_except_for_explained_checks(
    tmp_path: Path,
) -> None:
    scenarios = await checks(tmp_path)
    assert len(scenarios) > 40

    def with_status(status: str) -> set[str]:
        return {
            name
            for name, found in scenarios.items()
            if status in {check["status"] for check in found}
        }

    assert with_status("FAILURE") == FAILURES.keys()
    assert with_status("WARNING") == WARNINGS.keys()
