"""`parley compare`: has several agents answer the same question at once, and prints their answers.

Each agent answers in a fork next to the chat, so the chat does not change, and every answer can be
continued.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.chat.answer_text import text_of_answer
from parley.chat.fork import fork_for
from parley.chat.grammar import fit
from parley.chat.reader import parse, parse_lines, split_lines
from parley.cli.ask import chat_of, chat_with, put_question, question_of
from parley.cli.batch import Batch, ChatOutcome
from parley.cli.exits import FAILED, MISSING, STOPPED, USAGE, kind_of
from parley.cli.respond import application
from parley.cli.signals import ended_as_by_ctrl_c
from parley.cli.terminal import check_agent, complain, emit, remark, say, say_line, screen
from parley.engine import NOTHING_ASKED
from parley.errors import ParleyError
from parley.policy.choice import answered_at
from parley.policy.comparisons import flaw
from parley.runtime.totals import Record, totals
from parley.storage.chat_file import Spelling
from parley.storage.content import encoded, text_of
from parley.storage.forks import fork_paths, own_path, write_new

if TYPE_CHECKING:
    from parley.runtime.app import App

_HEADS = ("agent", "end", "seconds", "input", "output", "cost", "chat")
_NO_ANSWER = "(no answer)\n"
_NO_QUESTION = "--ask needs a question"
_NEED_ASK = "--continue, --last and --with need --ask"


def compare(arguments: argparse.Namespace) -> int:
    """Ask several agents the same question, each in a fork of the chat, and print the answers."""
    screen().is_quiet = arguments.quiet
    if not arguments.ask and (arguments.chat or arguments.last or arguments.contents):
        complain(_NEED_ASK)
        return USAGE
    agents = [arguments.file, *arguments.agents] if arguments.ask else arguments.agents
    if why := flaw(agents):
        complain(why)
        return USAGE
    with ended_as_by_ctrl_c():
        return asyncio.run(_compare(arguments, agents))


async def _compare(arguments: argparse.Namespace, agents: Sequence[str]) -> int:
    async with application() as app:
        for agent in agents:
            check_agent(agent, app.settings)
        if arguments.ask:
            await _ask(app, arguments, agents[0])
        forks = _forks(app, arguments, agents)
        for file, agent in forks.items():
            if arguments.json:
                emit("fork", file=file, agent=agent)
        arguments.jobs, arguments.exchange = len(forks), None
        comparison = _Comparison(arguments, forks)
        code = await comparison.run(app)
        comparison.report(app)
        return code


async def _ask(app: App, arguments: argparse.Namespace, agent: str) -> None:
    """Write the question into a new chat, or into the chat that the arguments name. The user has
    chosen this agent.
    """
    arguments.question = [arguments.ask]
    question, pictures = question_of(arguments)
    if not question and not pictures:
        raise ParleyError(_NO_QUESTION)
    text, chat = fit(question), chat_of(app, arguments)
    arguments.file = str(chat or chat_with(app, arguments, text))
    if chat is None and not arguments.json:
        remark(f"the chat is {arguments.file}")
    arguments.agent = None if chat is None else agent
    await put_question(app, arguments, "" if chat is None else text, pictures)


def _forks(app: App, arguments: argparse.Namespace, agents: Sequence[str]) -> dict[str, str]:
    """Create a fork for each agent; returns the agents by their fork's path. Raises ParleyError."""
    path = Path(arguments.file)
    text, own = text_of(path), own_path(arguments.file)
    lines, spelling = split_lines(text), Spelling.of(text)
    exchanges = (transcript := parse_lines(lines)).exchanges
    number = arguments.exchange or len(exchanges)
    if arguments.exchange and number > len(exchanges):
        raise ParleyError(f"{path}: there is no exchange {number}: it has {len(exchanges)}")
    exchange = exchanges[answered_at(transcript, number - 1)] if exchanges else None
    if exchange is None or exchange.question is None or not exchange.question.parts:
        raise ParleyError(f"{path}: {NOTHING_ASKED}")
    forks = dict[str, str]()
    for agent in agents:
        try:
            fork = fork_for(lines, exchange, own.name, agent)
        except ValueError as error:
            raise ParleyError(f"{path}: {error}") from error
        content = encoded(spelling.text(fork))
        place = next(
            place
            for place in fork_paths(own, agent)
            if not app.ledger(str(place)).is_known() and write_new(place, content)
        )
        forks[str(place if path.is_symlink() else path.with_name(place.name))] = agent
    return forks


class _Comparison(Batch):
    """Continues the forks, each with its agent."""

    def __init__(self, arguments: argparse.Namespace, forks: Mapping[str, str]) -> None:
        super().__init__(arguments, list(forks))
        self._forks = forks

    def agent(self, file: str) -> str:
        """The agent of this fork."""
        return self._forks[file]

    def tell(self, outcome: ChatOutcome) -> None:
        """Report a problem at once; the answers follow when all agents have answered."""
        if outcome.code in (FAILED, STOPPED, MISSING):
            complain(outcome.message)
        if self.arguments.json:
            emit("chat_end", code=outcome.code, kind=kind_of(outcome.code))

    def report(self, app: App) -> None:
        """Print each agent's answer, then a table with its time, tokens and cost."""
        ends = {outcome.file: outcome.code for outcome in self.outcomes}
        rows = list[Sequence[str]]()
        for file, agent in self._forks.items():
            facts, code = _facts(app.ledger(file).history()), ends.get(file, FAILED)
            if self.arguments.json:
                end = {"code": code, "kind": kind_of(code)}
                emit("comparison", file=file, agent=agent, **end, text=_text(file), **facts)
                continue
            say_line(f"# {agent}")
            say("")
            screen().stream(_text(file) or _NO_ANSWER)
            screen().end_text()
            say("")
            rows.append(_row(agent, kind_of(code), file, facts))
        if rows and not self.arguments.quiet:
            _print_table([_HEADS, *rows])


def _text(file: str) -> str:
    """The text of a fork's answer; "" if there is none."""
    transcript = parse(text_of(Path(file)))
    at = answered_at(transcript, len(transcript.exchanges) - 1)
    answers = transcript.exchanges[at].answers
    return text_of_answer(answers[-1]) if answers else ""


def _facts(records: Sequence[Record]) -> dict[str, Any]:
    """The time from the first request to the last reply or result, the tokens and their cost."""
    spans = [
        (at, at + facts["seconds"]) for at, kind, facts in records if kind in ("request", "call")
    ]
    seconds = max(end for _, end in spans) - min(at for at, _ in spans) if spans else 0.0
    sums = totals(records)
    return {"seconds": round(seconds, 3), "tokens": dict(sums.tokens), "cost": sums.cost}


def _row(agent: str, end: str, file: str, facts: Mapping[str, Any]) -> Sequence[str]:
    tokens, cost = facts["tokens"], facts["cost"]
    counts = (str(tokens.get("input", 0)), str(tokens.get("output", 0)))
    price = "-" if cost is None else f"{cost:.4f}"
    return agent, end, f"{facts['seconds']:.1f}", *counts, price, os.path.relpath(file)


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if 2 <= at <= 5 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        say_line("  ".join(cells).rstrip())
