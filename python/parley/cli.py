"""The command line: moves chats on without an editor, and shows what is in them.

Each command reads its arguments, calls one function, and returns an exit code; nothing is decided here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from parley import __version__, engine
from parley.chat.front_matter import read_front_matter
from parley.chat.reader import parse
from parley.chat.transcript import CHOICES, Result, Transcript
from parley.config import load_settings
from parley.errors import GoneError, ParleyError
from parley.settings import Settings
from parley.tools.catalogue import Catalogue, Tool
from parley.turn import plan

WIRES = ("openai", "openai-responses", "anthropic")
COMPLETE, FAILED, WAITING, STOPPED = 0, 1, 3, 4
_EXITS: dict[engine.EndKind, int] = {
    "complete": COMPLETE,
    "answered": COMPLETE,
    "waiting": WAITING,
    "stopped": STOPPED,
    "interrupted": FAILED,
    "nothing": FAILED,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code says how it ended."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except ParleyError as error:
        _complain(str(error))
        return FAILED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return COMPLETE
    except KeyboardInterrupt:
        return 130
    return code


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(f"parley: {text.removeprefix('parley: ')}\n")


def _settings() -> Settings:
    settings, problems = load_settings(os.environ)
    for problem in problems:
        _complain(problem)
    return settings


def _read(path: str) -> str:
    try:
        written = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ParleyError(f"cannot read {path}: {error.strerror}") from error
    return written.decode("utf-8", "surrogateescape")


# --- respond ------------------------------------------------------------------------------------------------


def respond(arguments: argparse.Namespace) -> int:
    """Move the last exchange of a file one turn on, as the editor would."""
    return asyncio.run(_respond(arguments))


async def _respond(arguments: argparse.Namespace) -> int:
    from parley.drivers.files import FileDocument
    from parley.drivers.home import Home
    from parley.drivers.world import PlainWorld

    home = Home(_settings(), os.environ)
    if arguments.agent and arguments.agent not in home.agents():
        raise ParleyError(f"there is no agent {arguments.agent!r}: choose one of {', '.join(home.agents())}")
    told = _Told(arguments.json)
    document = FileDocument(Path(arguments.file), shown=told.text)
    ports = home.ports(document, arguments.file, PlainWorld(told.status, told.happened))
    resolve = home.resolve(arguments.agent)
    try:
        end = await _turns(ports, resolve, list(arguments.choose))
    except GoneError as error:
        raise ParleyError(str(error)) from error
    finally:
        await home.close()
    told.end(end)
    return _EXITS[end.kind]


async def _turns(ports: engine.Ports, resolve: engine.Resolve, choices: list[Any]) -> engine.End:
    """Turns until all is said, or until a choice is wanted and none is left."""
    while (end := await engine.run_turn(ports, resolve)).kind == "waiting" and choices:
        seen = await engine.look(ports, resolve)
        waiting = plan.waiting(seen.snapshot.answer)
        open_calls = [c for c in waiting if not seen.is_decided(c)]
        line = (open_calls or waiting)[0].span.start
        made = await engine.choose(ports, resolve, line, choices.pop(0), "command")
        if made.message:
            _complain(made.message)
    return end


class _Told:
    """What a person, or with `--json` a program, is told while a turn runs."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def text(self, piece: str) -> None:
        if not self._as_json:
            _say(piece, end="")

    def status(self, text: str) -> None:
        if self._as_json:
            _say(json.dumps({"type": "status", "text": text}))
        elif text and sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{text}\r\x1b[K")

    def happened(self, what: engine.Happening) -> None:
        if self._as_json:
            _say(json.dumps({"type": type(what).__name__, **_plain(what)}, ensure_ascii=True))
            return
        match what:
            case engine.CallBegan(proposal, tool):
                _say(f"\n❓ {tool.server}/{tool.name} {proposal.call.arguments}")
            case engine.CallEnded(_, result):
                _say(f"🛠️ {result.body}\n")
            case _:
                pass

    def end(self, end: engine.End) -> None:
        if self._as_json:
            _say(json.dumps({"type": "end", "kind": end.kind, "message": end.message}))
            return
        _say("")
        if end.kind == "waiting":
            _complain("tool calls wait for a choice: --choose ya says yes to all, --choose yN no")
        elif end.message:
            _complain(end.message)


def _plain(value: Any) -> Any:
    """A value of Parley's as plain JSON: its fields by name, without positions and spellings."""
    from dataclasses import fields, is_dataclass

    if is_dataclass(value):
        kept = [f.name for f in fields(value) if f.compare]
        return {name: _plain(getattr(value, name)) for name in kept}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return dict(value) if hasattr(value, "items") else value


# --- messages, parse, check ---------------------------------------------------------------------------------


def messages(arguments: argparse.Namespace) -> int:
    """Print the request that the file would send."""
    body = asyncio.run(_messages(arguments))
    _say(json.dumps(body, indent=2, ensure_ascii=False).encode("utf-8", "replace").decode())
    return COMPLETE


async def _messages(arguments: argparse.Namespace) -> dict[str, Any]:
    from parley.drivers.files import TextDocument
    from parley.drivers.home import Home
    from parley.drivers.ledger import LedgerFile
    from parley.drivers.wire import FORMATS, wire_format
    from parley.drivers.world import PlainWorld

    home = Home(_settings(), os.environ, LedgerFile(None))
    text = _read(arguments.file)
    agent = _agent_for(home.settings, arguments)
    document = TextDocument(text, text.count("\n") + 1)
    ports = home.ports(document, arguments.file, PlainWorld())
    resolve = home.resolve(agent)
    try:
        if not arguments.tools:
            ports = replace(ports, tools=_NoTools())
        seen = await engine.look(ports, resolve)
        ask = seen.next_ask()
        chosen = arguments.provider or ""
        name = {"anthropic": "anthropic", "openai": "chat", "openai-responses": "responses"}.get(chosen)
        form = FORMATS[name] if name else wire_format(home.provider(ask.provider), ask)
        return form.request(ask)
    finally:
        await home.close()


class _NoTools:
    """No servers: a request is shown without starting anything."""

    async def catalogue(self) -> Catalogue:
        return Catalogue()

    async def call(self, tool: Tool, arguments: str) -> Result:
        raise ParleyError(f"{tool.name} is not called while a request is only shown")


def _agent_for(settings: Settings, arguments: argparse.Namespace) -> str | None:
    """The agent named; else, where only a provider is named, the first agent of its kind."""
    if arguments.agent or not arguments.provider:
        return arguments.agent or None
    provider = "anthropic" if arguments.provider == "anthropic" else "openai"
    return next((a.name for a in settings.all_agents() if a.provider == provider), None)


def show(arguments: argparse.Namespace) -> int:
    """Print a transcript as JSON."""
    transcript = parse(_read(arguments.file))
    tree = {**_plain(transcript), "problems": [_plain(problem) for problem in transcript.problems]}
    _say(json.dumps(_typed(transcript, tree), indent=2, ensure_ascii=False))
    return COMPLETE


def _typed(transcript: Transcript, tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with the kind of each segment beside its fields."""
    for exchange, branch in zip(transcript.exchanges, tree["exchanges"], strict=True):
        for answer, twig in zip(exchange.answers, branch["answers"], strict=True):
            twig["segments"] = [
                {"kind": type(segment).__name__.lower(), **leaf}
                for segment, leaf in zip(answer.segments, twig["segments"], strict=True)
            ]
    return tree


def check(arguments: argparse.Namespace) -> int:
    """Print the problems of files as `file:line:col: level: text`."""
    failed = False
    for path in arguments.files:
        transcript = parse(_read(path))
        problems = [*read_front_matter(transcript.front_matter).problems, *transcript.problems]
        for problem in problems:
            failed = failed or problem.severity == "error"
            _say(f"{path}:{problem.line + 1}:{problem.column + 1}: {problem.severity}: {problem.message}")
    return FAILED if failed else COMPLETE


# --- convert, tools, demo-server ----------------------------------------------------------------------------


def convert(arguments: argparse.Namespace) -> int:
    """Turn MCP tool definitions on standard input into a provider's."""
    from parley.tools.convert import convert_all

    try:
        converted = convert_all(json.loads(_read("-")), arguments.to)
    except ValueError as error:
        raise ParleyError(f"standard input: {error}") from error
    _say(json.dumps(converted, indent=2, ensure_ascii=False))
    return COMPLETE


def tools(arguments: argparse.Namespace) -> int:
    """List the servers and their tools."""
    return asyncio.run(_tools(arguments))


async def _tools(arguments: argparse.Namespace) -> int:
    from parley.drivers.home import Home

    home = Home(_settings(), os.environ)
    try:
        await home.hub.catalogue()
        status = home.hub.status()
    finally:
        await home.close()
    if arguments.json:
        _say(json.dumps(_plain(status), indent=2, default=str))
        return COMPLETE
    for server in status:
        _say(f"{server.name}: {server.state}" + (f" ({server.error})" if server.error else ""))
        for tool in server.tools:
            _say(f"  {tool.name}: {' '.join(tool.description.split())[:90]}")
    return COMPLETE


def demo_server(arguments: argparse.Namespace) -> int:
    """Serve the demo model until Ctrl-C."""
    from parley.demo.server import main as serve

    return serve([f"--port={arguments.port}", f"--pace={arguments.pace}"])


# --- arguments ----------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="parley", description="A Markdown file is the conversation with a language model."
    )
    parser.add_argument("--version", action="version", version=f"parley {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = (run.__doc__ or "").strip()
        added = commands.add_parser(name, help=text.split("\n")[0].rstrip("."), description=text)
        added.set_defaults(run=run)
        return added

    asked = command("respond", respond)
    asked.add_argument("file")
    asked.add_argument("--agent", help="the agent to talk to, instead of the file's")
    asked.add_argument(
        "--choose", action="append", default=[], choices=CHOICES, help="the n-th answers the n-th wait"
    )
    asked.add_argument("--json", action="store_true", help="one JSON object a line, for programs")
    shown = command("messages", messages)
    shown.add_argument("file")
    shown.add_argument("--agent", help="the agent whose request is shown")
    shown.add_argument("--provider", choices=WIRES)
    shown.add_argument("--tools", action="store_true", help="with tools: starts the servers")
    command("parse", show).add_argument("file")
    command("check", check).add_argument("files", nargs="+", metavar="file")
    command("convert", convert).add_argument(
        "--to", required=True, choices=["openai", "openai-responses", "anthropic"]
    )
    command("tools", tools).add_argument("--json", action="store_true")
    served = command("demo-server", demo_server)
    served.add_argument("--port", type=int, default=0, help="0 takes a free one")
    served.add_argument("--pace", type=float, default=0.02, help="seconds between two pieces of a reply")
    return parser
