"""The status texts that are shown while a turn runs: the fixed texts, and the sentence about a
tool's action.

Knows the texts, but not when they are shown or which model writes the sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from parley.text import one_line

ANALYZING = "Analyzing request..."
THINKING = "Thinking..."
WRITING = "Writing a reply..."
"""Shown while text arrives that may not be the final answer, because calls may follow."""
SELECTING = "Selecting appropriate tools..."
PROCESSING = "Processing tool results..."
FORMULATING = "Formulating response..."

SENTENCE_TOKENS = 20
SENTENCE_SECONDS = 2.0
_WRITING = "Writing a call"
_LONGEST_SENTENCE = 100
_LONGEST_ARGUMENTS = 1000
_LONGEST_NAME = 64
_SHORT_CALL = 100
_SERVERS = 2

_PROMPT = (
    "Given this tool call:\nTool: {tool}\nArguments: {arguments}\n\n"
    "Generate a single, clear, natural sentence (max 10 words) describing what this action is "
    "doing "
    "from the user's perspective.\nExamples:\n"
    '- "Looking up user information in the database"\n'
    '- "Searching the web for current weather data"\n'
    '- "Reading configuration file to understand system settings"\n\n'
    "Only return the sentence, nothing else."
)


def format_tool_name(name: str) -> str:
    """A tool's name for people: `lookup_tool` is Lookup Tool."""
    return " ".join(word[:1].upper() + word[1:] for word in name.replace("_", " ").split())


def using(names: Iterable[str]) -> str:
    """The text while tools run, if there is no better sentence."""
    return f"Using {', '.join(dict.fromkeys(map(format_tool_name, names)))}..."


def writing(name: str, size: int) -> str:
    """The text while a model writes a call of this many characters; "" for a short call."""
    if size < _SHORT_CALL:
        return ""
    kilobytes = size // 1000
    # Only two digits, so that the status does not change with every kilobyte.
    step = 10 ** max(0, len(str(kilobytes)) - 2)
    done = f", {kilobytes // step * step} kB" if kilobytes else ""
    return f"{_WRITING}{' of ' if name else ''}{one_line(name, _LONGEST_NAME)}{done}..."


def is_of_call(text: str) -> bool:
    """Whether this text reports that a model is about to make a call, or is writing one."""
    return text == SELECTING or text.startswith(_WRITING)


def failed(name: str) -> str:
    """The text after a tool failed, while the model decides how to continue."""
    return f"Tool {format_tool_name(name)} failed, trying alternative approach..."


def asking_again(reason: str) -> str:
    """The text while Parley asks a question again, because its reply broke off."""
    return f"{reason}: asking again..."


def stopped(reason: str) -> str:
    """The text after a limit ended the loop."""
    return f"Stopped: {reason}"


def summing_up(number: int, count: int) -> str:
    """The text while one of several exchanges is summarized."""
    return f"Summing up {number} of {count}..."


def starting(agent: str) -> str:
    """The text while an agent of another program starts."""
    return f"Starting {one_line(agent, _LONGEST_NAME)}..."


def waiting_for(servers: Sequence[str]) -> str:
    """The text while servers start."""
    names, more = ", ".join(servers[:_SERVERS]), len(servers) - _SERVERS
    rest = f" and {more} more" if more > 0 else ""
    return f"Waiting for MCP server{'s' if len(servers) > 1 else ''} {names}{rest}"


def without(servers: Sequence[str]) -> str:
    """The message about a question that was asked without these servers' tools."""
    which = f"MCP server{'s' if len(servers) > 1 else ''} {', '.join(servers)}"
    return f"asked without the tools of {which}. :ParleyTools shows why"


_RATE_LIMITED = "Rate limit reached, waiting "


def rate_limited(seconds: float) -> str:
    """The text while a turn waits for the rate limit."""
    return f"{_RATE_LIMITED}{max(1, round(seconds))}s..."


def is_rate_limited(text: str) -> bool:
    """Whether a text is the text about the rate limit."""
    return text.startswith(_RATE_LIMITED)


def sentence_prompt(name: str, arguments: str) -> str:
    """The prompt that asks a model for the sentence about a call."""
    return _PROMPT.format(tool=format_tool_name(name), arguments=arguments[:_LONGEST_ARGUMENTS])


def sentence(reply: str) -> str | None:
    """A model's reply as a status text: one line of fewer than 100 characters, else None."""
    text = reply.strip()
    if text.startswith('"'):
        try:
            unquoted = json.loads(text)
        except ValueError:
            unquoted = text.strip('"')
        text = unquoted.strip() if isinstance(unquoted, str) else ""
    fits = text and len(text) < _LONGEST_SENTENCE and text == one_line(text)
    return text if fits else None


def planning(tasks: str) -> str:
    """The status for an agent's plan, a Markdown list of tasks: the first task that is not done."""
    lines = tasks.split("\n")
    left = [line for line in lines if line.startswith("- [ ] ")]
    task = one_line(left[0].removeprefix("- [ ] "), 60) if left else "done"
    return f"Plan {len(lines) - len(left)}/{len(lines)}: {task}"
