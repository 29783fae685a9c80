"""Real servers in this process, over stdio and over HTTP, both well behaved and faulty."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from mcp.server.mcpserver import Context, MCPServer

from parley.mock_server import PIXEL, web_search
from parley.tools.catalogue import Tool
from parley.tools.results import Outcome
from parley.tools.schema import check_arguments
from parley.tools.server_settings import ServerSettings
from tests.defaults import new_servers
from tests.mcp_servers import (
    EXTRA,
    MOCK,
    fake,
    only,
    served,
    servers_of,
    table,
    tool_of,
    until,
    until_stderr,
)

GOOGLE = json.dumps({"matches": ["google stock GOOGL price is $911 as of today"]})


def test_importing_the_servers_does_not_import_the_sdk() -> None:
    script = (
        "import sys, parley.mcp.servers; sys.exit('mcp' in sys.modules or 'jsonschema' in "
        "sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


async def test_no_server_starts_before_it_is_needed() -> None:
    async with servers_of(MOCK, fake()) as servers:
        assert [status.state for status in servers.status()] == ["stopped", "stopped"]


async def test_the_mock_server_answers_in_this_process() -> None:
    async with servers_of(MOCK) as servers:
        catalogue = await servers.catalogue()
        assert catalogue.names() == ("web_search",)
        tool = await tool_of(servers, "web_search")
        assert (tool.title, tool.annotations["readOnlyHint"]) == ("Web search", True)
        assert tool.identity == '{"builtin":true}'
        assert await servers.call(tool, {"query": "google stock price"}) == Outcome("ok", GOOGLE)
        status = only(servers)
        assert (status.state, status.protocol, status.tools) == ("ready", "2026-07-28", (tool,))
        assert await servers.catalogue() is catalogue
    assert only(servers).state == "stopped"


async def test_failing_hostile_long_and_binary_tools_are_outcomes() -> None:
    async with servers_of(EXTRA) as servers:
        catalogue = await servers.catalogue()

        async def result(name: str, **arguments: object) -> Outcome:
            tool = catalogue.get(name)
            assert tool is not None
            return await servers.call(tool, arguments)

        assert await result("fail") == Outcome(
            "error", "Error executing tool fail: it did not work"
        )
        assert (await result("web_search")).status == "error"  # no query
        assert (await result("picture")) == Outcome("ok", "", (PIXEL,))
        assert (await result("long", bytes=200_000)).text.endswith(
            "… [truncated: 97600 bytes omitted]"
        )
        hostile = (await result("hostile")).text
        assert "\x1b" not in hostile
        assert hostile.startswith("💬: ")
        assert not catalogue.get("write_note").annotations["readOnlyHint"]  # type: ignore[union-attr]


async def test_progress_is_reported_and_calls_run_concurrently() -> None:
    told: list[tuple[float, float | None, str | None]] = []
    async with servers_of(EXTRA) as servers:
        slow = await tool_of(servers, "slow")
        both: object = await asyncio.gather(
            servers.call(slow, {"seconds": 0.2}, progress=lambda *step: told.append(step)),
            servers.call(slow, {"seconds": 0.2}, progress=lambda *step: told.append(step)),
        )
    assert both == [Outcome("ok", "waited 0.2 s")] * 2
    first_half = [step for step, _, _ in told[:4]]
    assert first_half == [0, 0, 1, 1]  # interleaved


async def test_a_cancelled_call_in_this_process_is_cancelled_at_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with servers_of(EXTRA) as servers:
        slow = await tool_of(servers, "slow")
        started = asyncio.Event()
        call = asyncio.create_task(
            servers.call(slow, {"seconds": 60}, progress=lambda *_: started.set())
        )
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "slow: cancelled" in caplog.text)
        assert only(servers).state == "ready"


async def test_the_mock_server_answers_over_stdio_and_receives_cancellations() -> None:
    server = ServerSettings(
        name="s", command=sys.executable, args=("-m", "parley.mock_server", "--extra")
    )
    async with servers_of(server) as servers:
        search = await tool_of(servers, "web_search")
        assert await servers.call(search, {"query": "google"}) == Outcome("ok", GOOGLE)
        assert only(servers).protocol == "2026-07-28"
        slow, started = await tool_of(servers, "slow"), asyncio.Event()
        call = asyncio.create_task(
            servers.call(slow, {"seconds": 60}, progress=lambda *_: started.set())
        )
        await started.wait()
        call.cancel()
        await until_stderr(servers, "slow: cancelled")


async def test_the_mock_server_answers_over_http_with_parleys_headers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[dict[str, str]] = []
    async with served(seen) as url:
        server = ServerSettings(name="web", url=url, headers={"X-Token": "${TOKEN}"})
        servers = new_servers({"web": server}, environ={"TOKEN": "secret"})
        search = await tool_of(servers, "web_search")
        assert await servers.call(search, {"query": "google"}) == Outcome("ok", GOOGLE)
        assert {each["x-token"] for each in seen} == {"secret"}
        slow, started = await tool_of(servers, "slow"), asyncio.Event()
        call = asyncio.create_task(
            servers.call(slow, {"seconds": 60}, progress=lambda *_: started.set())
        )
        await started.wait()
        call.cancel()
        await until(lambda: "slow: cancelled" in caplog.text)
        await servers.close()


async def test_a_refusal_of_an_http_server_names_the_status() -> None:
    async with served([]) as url:
        servers = new_servers(
            {"web": ServerSettings(name="web", url=url.replace("/mcp", "/nothing"))}
        )
        assert (await servers.catalogue()).names() == ()
        assert only(servers).error == "MCP server 'web': HTTP 404 Not Found"
        await servers.close()


async def test_an_http_server_that_disappeared_is_an_error_until_it_returns() -> None:
    seen: list[dict[str, str]] = []
    async with served(seen) as url:
        server = ServerSettings(name="web", url=url)
        servers = new_servers({"web": server})
        search = await tool_of(servers, "web_search")
    gone = await servers.call(search, {"query": "google"})
    assert gone.status == "error"
    assert "web" in gone.text
    port = int(url.rpartition(":")[2].removesuffix("/mcp"))
    async with served(seen, port):
        assert await servers.call(search, {"query": "google"}) == Outcome("ok", GOOGLE)
        await servers.close()


async def test_a_server_with_an_older_revision_works() -> None:
    async with servers_of(fake()) as servers:
        echo = await tool_of(servers, "echo")
        assert await servers.call(echo, {"a": 1}) == Outcome("ok", '{"a": 1}')
        assert only(servers).protocol == "2025-06-18"


@pytest.mark.parametrize(
    ("server", "complaint"),
    [
        (
            ServerSettings(name="s", command="no-such-command"),
            "mcp.servers.s.command: no-such-command was not found or is not executable",
        ),
        (
            ServerSettings(name="s", command="./x", cwd="/no/such"),
            "mcp.servers.s.cwd: there is no directory /no/such",
        ),
        (
            ServerSettings(name="s", command="./x", cwd="~nobody-at-all/x"),
            "mcp.servers.s.cwd: there is no directory ~nobody-at-all/x",
        ),
        (ServerSettings(name="s"), "mcp.servers.s needs a command or a url"),
        (
            ServerSettings(name="s", command="${NO_SUCH_VARIABLE}"),
            "mcp.servers.s.command: the environment variable NO_SUCH_VARIABLE",
        ),
        (
            fake("--die", name="s"),
            (
                "MCP server 's' ended while starting; its last output: no licence found. If the "
                "server needs var"
            ),
        ),
        (
            fake("--mute", name="s", start_timeout_s=0.5),
            "MCP server 's' was not ready within 0.5 s; its last",
        ),
        (
            ServerSettings(name="s", url="http://127.0.0.1:9/mcp", cwd="~nobody-at-all"),
            "MCP server 's': Connection refused",
        ),
    ],
)
async def test_a_server_that_cannot_start_says_why_and_harms_no_other(
    server: ServerSettings, complaint: str
) -> None:
    async with servers_of(server, MOCK) as servers:
        assert (await servers.catalogue()).names() == ("web_search",)
        failed, well = servers.status()
        assert (failed.state, well.state) == ("failed", "ready")
        assert failed.error.startswith(complaint)


async def test_a_server_that_hangs_at_its_start_does_not_delay_the_others() -> None:
    async with servers_of(fake("--mute"), MOCK) as servers:
        await servers.begin()
        assert servers.awaited() == ("fake", "mock")
        assert await servers.settled(servers.awaited(), None) == {"mock"}
        assert servers.offered().names() == ("web_search",)
        assert servers.offered().missing == ("fake",)
        assert [status.state for status in servers.status()] == ["starting", "ready"]


async def test_a_server_that_hangs_at_its_start_is_awaited_until_it_fails() -> None:
    async with servers_of(fake("--mute", start_timeout_s=0.3), MOCK) as servers:
        assert (await servers.catalogue()).missing == ("fake",)
        assert [status.state for status in servers.status()] == ["failed", "ready"]
        assert servers.awaited() == ()


async def test_a_server_that_hangs_at_its_start_delays_no_call_of_another() -> None:
    async with servers_of(fake("--mute"), fake("--many", name="quick")) as servers:
        await servers.begin()
        await until(lambda: servers.status()[1].state == "ready", 30)
        quick = servers.status()[1]
        assert servers.status()[0].state == "starting"
        for number in range(3):
            called = await servers.call(quick.tools[0], {"n": number})
            assert called == Outcome("ok", f'{{"n": {number}}}')
            assert servers.offered().get("tool_299")
        assert servers.status()[0].state == "starting"
        assert servers.status()[1].stderr.count("listed") == 1


async def test_a_failed_server_is_retried_only_after_a_while_or_on_request() -> None:
    async with servers_of(fake("--die")) as servers:
        await servers.catalogue()
        before = only(servers)
        assert before.state == "failed"
        await servers.begin()
        assert only(servers) == before
        await servers.begin(again=True)
        assert only(servers).state == "starting"
        await servers.catalogue()
        assert only(servers) == before


async def test_a_server_that_dies_during_a_call_is_an_error_and_restarts() -> None:
    async with servers_of(fake()) as servers:
        die, echo = await tool_of(servers, "die"), await tool_of(servers, "echo")
        assert await servers.call(die, {}) == Outcome(
            "error", "MCP server 'fake' ended during the call; its last output: about to die"
        )
        assert await servers.call(echo, {}) == Outcome("ok", "{}")


async def test_a_server_that_died_while_idle_restarts_before_the_next_call() -> None:
    async with servers_of(fake()) as servers:
        echo = await tool_of(servers, "echo")
        await until_stderr(servers, "pid ")
        pid = only(servers).stderr[0].removeprefix("pid ")
        os.kill(int(pid), signal.SIGKILL)
        await until(lambda: only(servers).state == "failed")
        assert only(servers).error == "MCP server 'fake' ended unexpectedly"
        assert await servers.call(echo, {}) == Outcome("ok", "{}")


async def test_a_call_without_an_answer_ends_in_an_error_and_is_cancelled_at_the_server() -> None:
    async with servers_of(fake(timeout_s=0.3)) as servers:
        hang, echo = await tool_of(servers, "hang"), await tool_of(servers, "echo")
        assert await servers.call(hang, {}) == Outcome(
            "error", "Tool 'hang' of MCP server 'fake' did not answer within 0.3 s"
        )
        await until_stderr(servers, "cancelled ")
        assert await servers.call(echo, {}) == Outcome("ok", "{}")


async def test_a_protocol_error_is_an_error_for_the_model() -> None:
    async with servers_of(fake()) as servers:
        broken = await tool_of(servers, "break")
        assert await servers.call(broken, {}) == Outcome(
            "error", "Tool 'break' of MCP server 'fake' failed: broken inside"
        )


async def test_junk_on_stdout_and_a_flood_on_stderr_disturb_nothing() -> None:
    async with servers_of(fake()) as servers:
        for name in ("junk", "flood"):
            assert await servers.call(await tool_of(servers, name), {}) == Outcome("ok", "{}")
        await until(lambda: only(servers).stderr[-1:] == ("noise 49999",))
        assert len(only(servers).stderr) == 200


async def test_a_flood_of_junk_on_stdout_is_skipped() -> None:
    async with servers_of(fake("--more")) as servers:
        assert await servers.call(await tool_of(servers, "spill"), {}) == Outcome("ok", "{}")
        assert only(servers).state == "ready"


async def test_a_result_of_fifty_megabytes_is_cut() -> None:
    async with servers_of(fake("--more", timeout_s=20)) as servers:
        result = await servers.call(await tool_of(servers, "huge"), {"bytes": 50_000_000})
        head = "x" * 102_400 + "… [truncated: 49897600 bytes omitted]"
        assert result == Outcome("ok", head, whole="x" * 50_000_000)


async def test_three_hundred_tools_are_listed_once_and_then_cached() -> None:
    async with servers_of(fake("--many")) as servers:
        first = await servers.catalogue()
        assert len(first.tools) == 307
        assert await servers.catalogue() is first
        assert await servers.call(await tool_of(servers, "tool_299"), {"a": 1}) == Outcome(
            "ok", '{"a": 1}'
        )
        await servers.close()
        assert only(servers).stderr.count("listed") == 1  # of all requests so far


async def test_a_long_name_with_dots_is_called_by_a_name_that_providers_accept() -> None:
    async with servers_of(fake("--odd")) as servers:
        ((wire, tool),) = [
            pair for pair in (await servers.catalogue()).tools if len(pair[1].name) == 128
        ]
        assert len(wire) <= 64
        assert set(wire) <= set("xy_0123456789abcdef")
        assert await servers.call(tool, {"a": 1}) == Outcome("ok", '{"a": 1}')


async def test_a_broken_schema_prevents_no_call() -> None:
    async with servers_of(fake("--odd")) as servers:
        strange = await tool_of(servers, "strange")
        assert check_arguments('{"a": 1}', strange.input_schema) is None
        assert await servers.call(strange, {"a": 1}) == Outcome("ok", '{"a": 1}')


async def test_a_tool_that_only_runs_as_a_task_is_reported_and_not_offered() -> None:
    async with servers_of(fake("--odd")) as servers:
        names = (await servers.catalogue()).names()
        assert [name for name in names if name.startswith("task")] == ["task_optional"]
        assert only(servers).error == "left out: tools that run only as tasks (1: task_required)"


async def test_a_servers_instructions_are_bounded_visible_and_part_of_each_tool() -> None:
    texts = ["Ask \x1b[31mfirst.\n", "é" * 9_000, "  "]
    tools = list[Tool]()
    for text in texts:
        async with servers_of(fake(env={"FAKE_SAYS": text})) as servers:
            tools.append(await tool_of(servers, "echo"))
            assert only(servers).instructions == tools[-1].instructions
    first, second, third = tools
    assert first.instructions == "Ask \\x1b[31mfirst."
    assert second.instructions.startswith("éé")
    assert second.instructions.endswith("… [truncated: 14000 bytes omitted]")
    async with servers_of(fake()) as servers:
        assert await tool_of(servers, "echo") == third
    assert len({tool.digest for tool in tools}) == 3


async def test_the_last_log_messages_are_kept_as_bounded_lines() -> None:
    async with servers_of(fake("--logs", "--more")) as servers:
        await servers.catalogue()
        await until(lambda: len(only(servers).log) == 3)
        first, second, third = only(servers).log
        assert first == "warning fake.list: one\\x1b[2J"
        assert second == 'warning fake.list: {"number": 2}'
        assert third.startswith("warning fake.list: xxx")
        assert len(third) <= 300
        for _ in range(20):
            await servers.call(await tool_of(servers, "grow"), {})
            await servers.catalogue()
        assert len(only(servers).log) == 20


async def test_a_server_with_an_invalid_list_says_so_in_a_line_and_harms_no_other() -> None:
    async with servers_of(table({"tools/list": {"tools": "none"}}), MOCK) as servers:
        assert (await servers.catalogue()).names() == ("web_search",)
        failed = servers.status()[0]
        assert failed.state == "failed"
        assert failed.error.startswith("MCP server 'table': ")
        assert "\n" not in failed.error


async def test_a_changed_list_of_tools_is_a_changed_catalogue() -> None:
    async with servers_of(fake()) as servers:
        grow = await tool_of(servers, "grow")
        await servers.call(grow, {})
        await until(lambda: any(tool.name == "grown" for tool in only(servers).tools))
        assert (await servers.catalogue()).get("grown") is not None


async def test_a_server_of_the_newest_revision_reports_changes_to_subscribers() -> None:
    growing = MCPServer("growing", log_level="CRITICAL")

    async def grow(ctx: Context) -> str:
        growing.add_tool(web_search)
        await ctx.notify_tools_changed()
        return "grown"

    growing.add_tool(grow, structured_output=False)
    async with served([], mcp=growing) as url:
        servers = new_servers({"web": ServerSettings(name="web", url=url)})
        tool = await tool_of(servers, "grow")
        await until(lambda: growing._subscriptions._listeners)  # type: ignore[attr-defined]
        assert await servers.call(tool, {}) == Outcome("ok", "grown")
        await until(lambda: len(only(servers).tools) == 2)
        assert (await servers.catalogue()).names() == ("grow", "web_search")
        await servers.close()


async def test_a_paged_list_is_read_to_its_end_even_if_its_cursors_repeat() -> None:
    async with servers_of(fake("--pages", "4")) as servers:
        assert set((await servers.catalogue()).names()) == set(fake_tools())


def fake_tools() -> list[str]:
    return ["echo", "die", "hang", "junk", "flood", "grow", "break"]


async def test_two_servers_with_the_same_tools_are_distinguished() -> None:
    chosen: dict[str, object] = {"enabled_tools": ("echo", "h*"), "disabled_tools": ("hang",)}
    async with servers_of(fake(name="a", **chosen), fake(name="b", **chosen)) as servers:
        catalogue = await servers.catalogue()
        assert catalogue.names() == ("a__echo", "b__echo")
        for wire, tool in catalogue.tools:
            assert await servers.call(tool, {"to": wire}) == Outcome("ok", json.dumps({"to": wire}))


async def test_a_tool_that_differs_from_the_approved_one_is_not_called() -> None:
    async with servers_of(fake(), replace(MOCK, enabled=False)) as servers:
        echo = await tool_of(servers, "echo")
        changed = await servers.call(replace(echo, description="other"), {})
        gone = await servers.call(replace(echo, name="gone"), {})
        other = await servers.call(replace(echo, server="none"), {})
        disabled = await servers.call(replace(echo, server="mock"), {})
    assert changed.text == "Tool 'echo' of MCP server 'fake' has changed its definition since"
    assert gone.text == "Tool 'gone' of MCP server 'fake' is no longer offered"
    assert other.text == "there is no MCP server 'none' in the settings"
    assert disabled.text == "MCP server 'mock' is disabled in the settings"


async def test_closing_answers_running_calls_and_ends_a_stubborn_server() -> None:
    async with servers_of(fake("--stubborn")) as servers:
        hang = await tool_of(servers, "hang")
        call = asyncio.create_task(servers.call(hang, {}))
        await until_stderr(servers, "hanging")
        pid = only(servers).stderr[0].removeprefix("pid ")
        await servers.close()
        outcome = await call
        assert outcome.status == "error"
        assert outcome.text.startswith("MCP server 'fake' ended during the call")
        assert (await servers.call(hang, {})).text == "MCP server 'fake' is not available"
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


async def test_closing_during_a_start_leaves_nothing_running() -> None:
    async with servers_of(fake("--mute"), EXTRA) as servers:
        catalogue = asyncio.create_task(servers.catalogue())
        await until(lambda: any(status.stderr for status in servers.status()))
        await servers.close()
        assert len((await catalogue).tools) in (0, 7)


async def test_a_token_that_a_command_prints_is_in_each_request() -> None:
    seen = list[dict[str, str]]()
    async with served(seen) as url:
        web = ServerSettings("web", url=url, token_command=("echo", "printed-token"))
        async with servers_of(web) as servers:
            assert (await servers.catalogue()).get("web_search")
            assert {headers.get("authorization") for headers in seen} == {"Bearer printed-token"}
        async with servers_of(replace(web, token_command=("false",))) as servers:
            await servers.catalogue()
            assert only(servers).error == "mcp.servers.web.token_command: false did not print a key"


async def test_an_unusable_server_says_what_is_missing_and_why() -> None:
    async with servers_of(MOCK, ServerSettings("gone", "/no/such/program")) as servers:
        assert servers.news(()) == {}
        missing = (await servers.catalogue()).missing
        assert servers.news(()) == {}
        line = servers.news(missing)["gone"]
        assert line.startswith("no tools from MCP server 'gone': mcp.servers.gone.command: ")
        assert line.endswith(". See :ParleyTools")
        assert servers.news(missing) == {}
