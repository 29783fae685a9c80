"""`parley check`: lists problems in chats. Imports little: editors run it at every save."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from parley.chat.front_matter import read_front_matter
from parley.chat.grammar import MARKERS
from parley.chat.reader import parse
from parley.chat.transcript import Problem, Transcript
from parley.cli.exits import COMPLETE
from parley.cli.terminal import (
    chat_path,
    complain,
    emit,
    model_lists,
    plain,
    read,
    say_line,
    screen,
    with_logins,
)
from parley.errors import ParleyError
from parley.paths import state_folder
from parley.policy.approval import Approvals
from parley.policy.choice import open_keys
from parley.policy.doubts import cautions
from parley.storage.attachment_files import ChatAttachments
from parley.text import one_line
from parley.tools.catalogue import Catalogue

_NO_QUESTION = Problem(0, 0, "warning", f"no question: no line begins with {MARKERS['question']}")


def problem_facts(problem: Problem) -> dict[str, Any]:
    """A problem as JSON; line and column start at 1."""
    return {**plain(problem), "line": problem.line + 1, "column": problem.column + 1}


def check(arguments: argparse.Namespace) -> int:
    """Print the problems in chats as `file:line:col: level: text`; exit with 1 on errors."""
    for path in arguments.files:
        try:
            transcript = parse(read(path))
        except ParleyError as error:  # still check the others
            complain(str(error))
            continue
        front = read_front_matter(transcript.front_matter)
        attached = ChatAttachments(chat_path(path)).problems(transcript)
        problems = [*front.problems, *transcript.problems, *attached, *_cautions(path, transcript)]
        problems += _model_problems(transcript)
        if not transcript.exchanges:
            problems.append(_NO_QUESTION)
        for problem in problems:
            screen().has_failure |= problem.severity == "error"
            if arguments.json:
                emit("problem", file=path, **problem_facts(problem))
                continue
            say_line(
                f"{path}:{problem.line + 1}:{problem.column + 1}: {problem.severity}: "
                f"{problem.message}"
            )
    return COMPLETE


def _model_problems(transcript: Transcript) -> list[Problem]:
    """A warning about the model of the chat's agent, from its provider's list if that is known.

    Without any list, the settings are not even read: editors run this command at every save.
    """
    if not any((state_folder(os.environ) / "models").glob("*.json")):
        return []
    from parley.display.model_rows import day
    from parley.models.model_choice import model_problem
    from parley.settings.load import load_settings
    from parley.settings.resolve import agent_of, listed_agent

    known, _ = load_settings(os.environ)
    agent = agent_of(transcript, with_logins(known), os.environ, None)
    provider = known.provider(agent.provider)
    if provider is None:
        return []
    listed = model_lists().known(provider)
    model = listed_agent(agent, listed).model
    if not (why := model_problem(model, listed, day(time.time()))):
        return []
    remedy = "parley agents --models lists others"
    text = f"{model} of {agent.provider}: {why}. {remedy}"
    return [Problem(0, 0, "warning", one_line(text))]


def _cautions(path: str, transcript: Transcript) -> list[Problem]:
    """Warnings about waiting calls that, according to this machine's ledger, may have run."""
    if not (keys := open_keys(transcript)):
        return []
    from parley.storage.ledger import shell_ledger

    with shell_ledger(os.environ) as ledger:
        view = ledger.chat(path).view(keys) if ledger else None
    return list(cautions(Approvals(transcript, Catalogue(), view))) if view else []
