"""Servers that speak only some protocol revisions, or speak one of them wrongly."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from parley.mcp.servers import Servers
from parley.tools.results import Outcome
from parley.tools.server_settings import Protocol, ServerSettings
from tests.mcp_servers import TABLE, only, servers_of, table, tool_of

ECHO = {"name": "echo", "inputSchema": {"type": "object"}}
HINTS = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
NEWEST = {"server/discover": {**DISCOVERED, **HINTS}}
ANSWERS = {
    "tools/list": {"tools": [ECHO]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}
DONE = Outcome("ok", "done")

WRONG: dict[str, Any] = {
    "ends": {"server/discover": "exit"},
    "refuses": {"server/discover": "error"},
    "answers nonsense": {"server/discover": {"neither": 1}},
    "answers, and then ends": {**NEWEST, "2026-07-28 tools/list": "exit"},
    "answers, and then nonsense": {**NEWEST, "2026-07-28 tools/list": {"neither": 1}},
}


@pytest.mark.parametrize("kind", WRONG)
async def test_a_server_that_fails_in_the_newest_revision_is_asked_in_an_older_one(
    kind: str,
) -> None:
    async with servers_of(table({**ANSWERS, **WRONG[kind]})) as servers:
        assert await servers.call(await tool_of(servers, "echo"), {}) == DONE
        assert (only(servers).state, only(servers).protocol) == ("ready", "2025-11-25")


async def test_the_revision_that_worked_is_used_again() -> None:
    async with servers_of(table({**ANSWERS, "server/discover": "exit"})) as servers:
        await servers.catalogue()
        servers.restart("table")
        await tool_of(servers, "echo")
        assert only(servers).stderr[0] == "2025-11-25 initialize"


async def test_a_silent_server_is_asked_in_the_older_revision_when_it_restarts() -> None:
    silent = table({**ANSWERS, "server/discover": "silence"}, start_timeout_s=0.5)
    async with servers_of(silent) as servers:
        assert (await servers.catalogue()).names() == ()
        assert "was not ready within 0.5 s" in only(servers).error
        servers.restart("table")
        assert await servers.call(await tool_of(servers, "echo"), {}) == DONE


async def test_a_server_of_the_newest_revision_may_leave_out_the_hints() -> None:
    async with servers_of(table({**ANSWERS, "server/discover": DISCOVERED})) as servers:
        assert await servers.call(await tool_of(servers, "echo"), {}) == DONE
        assert only(servers).protocol == "2026-07-28"


@pytest.mark.parametrize("protocol", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_an_older_revision_in_the_settings_is_requested(protocol: Protocol) -> None:
    async with servers_of(table({**NEWEST, **ANSWERS}, protocol=protocol)) as servers:
        assert await servers.call(await tool_of(servers, "echo"), {}) == DONE
        assert only(servers).protocol == protocol
        assert only(servers).stderr[0] == f"{protocol} initialize"


async def test_the_newest_revision_in_the_settings_is_used_at_once() -> None:
    async with servers_of(table(ANSWERS, protocol="2026-07-28")) as servers:
        assert await servers.call(await tool_of(servers, "echo"), {}) == DONE
        assert only(servers).protocol == "2026-07-28"
        assert only(servers).stderr[0] == "2026-07-28 tools/list"


async def test_a_servers_last_lines_are_reported_even_after_a_restart(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"if [ -e {flag} ]; then sleep 60; fi; : >{flag}; echo the disk is full >&2"
    async with servers_of(
        ServerSettings("s", "/bin/sh", ("-c", script), start_timeout_s=0.5)
    ) as servers:
        await servers.catalogue()
        assert only(servers).error.startswith(
            "MCP server 's' was not ready within 0.5 s; its last output: the disk is full."
        )


async def test_an_error_with_the_code_of_a_lost_connection_ends_nothing() -> None:
    async with servers_of(table({**ANSWERS, "tools/call": "error -32000"})) as servers:
        called = await servers.call(await tool_of(servers, "echo"), {})
        assert called == Outcome("error", "Tool 'echo' of MCP server 'table' failed: no such thing")
        assert only(servers).state == "ready"


# --- The environment of a local server ------------------------------------------------------------

PASSED_ON = {
    "https_proxy": "http://proxy.example:3128",
    "NO_PROXY": "localhost",
    "SSL_CERT_FILE": "/etc/company.pem",
    "NODE_EXTRA_CA_CERTS": "/etc/company.pem",
    "LC_TIME": "de_DE.UTF-8",
    "WAYLAND_DISPLAY": "wayland-0",
    "XDG_CACHE_HOME": "/home/me/.cache",
}
PRIVATE = {
    "ANTHROPIC_API_KEY": "a-key",
    "PROXY_PASSWORD": "a-password",
    "LD_PRELOAD": "/lib/other.so",
    "NODE_OPTIONS": "--require=/other.js",
    "PYTHONPATH": "/other",
}


async def test_a_local_server_gets_proxies_and_certificates_but_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**PASSED_ON, **PRIVATE}.items():
        monkeypatch.setenv(name, value)
    place = tmp_path / "environment"
    script = f"env >{place}; exit 1"
    server = ServerSettings("s", "/bin/sh", ("-c", script), {"TOKEN": "${ANTHROPIC_API_KEY}"})
    async with servers_of(server) as servers:
        await servers.catalogue()
        assert only(servers).error == (
            "MCP server 's' ended while starting. "
            "If the server needs variables from your environment, set them in mcp.servers.s.env"
        )
    environment = dict(line.split("=", 1) for line in place.read_text().splitlines() if "=" in line)
    assert PASSED_ON.items() <= environment.items()
    assert environment["TOKEN"] == "a-key"
    assert not PRIVATE.keys() & environment.keys()


# --- The memory of revisions ----------------------------------------------------------------------


def remembering(server: ServerSettings, state: Path) -> AbstractAsyncContextManager[Servers]:
    """A separate process, as far as the files on disk are concerned."""
    return servers_of(server, environ={**os.environ, "XDG_STATE_HOME": str(state)})


async def first_method(server: ServerSettings, state: Path) -> str:
    """The first method that a new process sends to a server; the process must then have the
    server's tool.
    """
    async with remembering(server, state) as servers:
        await tool_of(servers, "echo")
        return only(servers).stderr[0]


async def test_the_next_process_uses_the_revision_that_worked_and_a_wrong_entry_is_corrected(
    tmp_path: Path,
) -> None:
    flag = tmp_path / "flag"
    exits = {**ANSWERS, "server/discover": "exit"}
    old, set_one = table(exits), table(exits, protocol="2025-06-18")
    older, newest = "2025-11-25 initialize", "2026-07-28 server/discover"
    memory = tmp_path / "parley" / "ways.json"
    async with remembering(old, tmp_path) as servers:
        await tool_of(servers, "echo")
    assert "older" in memory.read_text(encoding="utf-8")
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600
    assert await first_method(old, tmp_path) == older
    assert await first_method(set_one, tmp_path) == "2025-06-18 initialize"
    # A newer version of the same server has dropped the earlier revision.
    script = f'exec {shlex.join([sys.executable, str(TABLE)])} "$(cat {flag})"'
    changing = ServerSettings("s", "/bin/sh", ("-c", script))
    flag.write_text(json.dumps(exits), encoding="utf-8")
    await first_method(changing, tmp_path)
    assert await first_method(changing, tmp_path) == older
    flag.write_text(json.dumps({**ANSWERS, **NEWEST, "initialize": "exit"}), encoding="utf-8")
    async with remembering(changing, tmp_path) as servers:
        await tool_of(servers, "echo")
        assert only(servers).protocol == "2026-07-28"
    assert await first_method(changing, tmp_path) == newest
    # After some days, Parley asks a server again whether it has been updated.
    table_of_ways = json.loads(memory.read_text(encoding="utf-8"))
    aged = {key: [way, since - 8 * 24 * 3600] for key, (way, since) in table_of_ways.items()}
    memory.write_text(json.dumps(aged), encoding="utf-8")
    async with remembering(old, tmp_path) as servers:
        await tool_of(servers, "echo")
    assert json.loads(memory.read_text(encoding="utf-8")).keys() == aged.keys()
    assert await first_method(old, tmp_path) == older


@pytest.mark.parametrize("kind", ["refuses", "answers nonsense", "knows older ones"])
async def test_the_older_revision_is_remembered_however_it_was_negotiated(
    kind: str, tmp_path: Path
) -> None:
    known = {"server/discover": {**DISCOVERED, **HINTS, "supportedVersions": ["2025-11-25"]}}
    server = table({**ANSWERS, **{**WRONG, "knows older ones": known}[kind]})
    assert await first_method(server, tmp_path) == "2026-07-28 server/discover"
    assert await first_method(server, tmp_path) == "2025-11-25 initialize"


async def test_the_newest_revision_is_not_forgotten_for_an_older_one(tmp_path: Path) -> None:
    server = table({**ANSWERS, **NEWEST})
    for _ in range(2):
        assert await first_method(server, tmp_path) == "2026-07-28 server/discover"


@pytest.mark.parametrize("junk", [b"", b"[]", b"\x00", b"{", b'{"a": 1}', b"[" * 100_000])
async def test_an_unreadable_or_unwritable_memory_counts_as_none(
    tmp_path: Path, junk: bytes
) -> None:
    place = tmp_path / "parley" / "ways.json"
    place.parent.mkdir()
    place.write_bytes(junk)
    server = table({**ANSWERS, "server/discover": "exit"})
    async with remembering(server, tmp_path) as servers:
        await tool_of(servers, "echo")
    assert "older" in place.read_text(encoding="utf-8")
    place.unlink()
    place.mkdir()
    async with remembering(server, tmp_path) as servers:
        await tool_of(servers, "echo")
    assert place.is_dir()
    assert [path.name for path in place.parent.iterdir() if path.suffix == ".new"] == []
