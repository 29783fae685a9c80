"""Functions that the commands share: read settings and files, print results and messages."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parley.cli.screen import Screen
from parley.errors import ParleyError
from parley.late_patterns import late_pattern
from parley.tables import listed
from parley.text import one_line, visible

if TYPE_CHECKING:
    from parley.chat.transcript import Transcript
    from parley.providers.model_lists import ModelLists
    from parley.runtime.app import App
    from parley.settings.load import SettingsFile
    from parley.settings.values import Settings


_screen: ContextVar[Screen] = ContextVar("screen")
_file: ContextVar[str] = ContextVar("file", default="")
_IN_THE_SHELL = {
    ":ParleyRespond!": "parley respond --again",
    " (:ParleyAllow widens it)": "",
    ":ParleyRespond": "parley respond",
    ":ParleyRequest": "parley messages",
    ":ParleyTools": "parley tools",
    ":ParleyLogin": "parley login",
    ":ParleyCompact": "parley compact",
    ":ParleyAgent": "--agent",
    ":ParleyApprove": "--choose",
    ":ParleyInstall": "reinstall Parley",
    " before you start Neovim": " in this shell",
    "then press --choose": "then pass --choose",
    "hidden, so not read": "hidden, so not read (--hidden PATH includes it)",
}
"""The shell's wording of remedies in messages that the editor also shows."""
_IN_A_CONVERSATION = {
    ":ParleyRespond!": "/again",
    ":ParleyRespond": "/go",
    ":ParleyAgent": "/agent NAME",
    ":ParleyApprove": "/go",
    "--agent": "/agent",
}
"""The wording of these remedies in `parley chat`."""
_BYTES = late_pattern("([\udc80-\udcff]+)")
"""Bytes in a path that are not UTF-8 (PEP 383)."""
_STANDARD_INPUT = "standard input"
_SLOW_S = 0.5
PIPE = "-"
"""The file name for standard input."""


def open_screen() -> Screen:
    """Create this command's screen."""
    screen = Screen(sys.stdout, sys.stderr, os.environ)
    _screen.set(screen)
    return screen


def screen() -> Screen:
    """This command's screen."""
    return _screen.get(None) or open_screen()


def say(text: str, end: str = "\n") -> None:
    """Write to standard output, at once."""
    screen().say(text + end)


def say_line(text: str) -> None:
    """Write one line to standard output with hidden characters escaped; paths keep their bytes."""
    pieces = _BYTES.split(text.replace("\n", "\\n"))
    say("".join(piece if at % 2 else visible(piece) for at, piece in enumerate(pieces)))


def say_json(value: Any) -> None:
    """Write a value as valid JSON: bytes that are not UTF-8 become escapes."""
    text = json.dumps(_numbered(value), indent=2, ensure_ascii=False, default=str)
    say(re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text))


@contextmanager
def about(file: str) -> Iterator[None]:
    """Inside this context, add the name of one of several files to the messages."""
    token = _file.set(file)
    try:
        yield
    finally:
        _file.reset(token)


def emit(kind: str, /, **facts: Any) -> None:
    """Write one line of JSON for programs, with `kind` as its `type`."""
    file = {"file": _file.get()} if _file.get() else {}
    say(json.dumps({"type": kind, **file, **_numbered(facts)}))


def _numbered(value: Any) -> Any:
    """A value without NaN and infinity, which a server's schema may contain but JSON does not
    allow.
    """
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _numbered(each) for key, each in value.items()}
        case list() | tuple():
            return [_numbered(each) for each in value]
        case _:
            return value


def snake_case(kind: type) -> str:
    """A class's name in JSON."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def complain(text: str) -> None:
    """Report an error: the command will not exit with 0."""
    screen().has_failure = True
    _tell("error", text)


def remark(text: str) -> None:
    """Print a note that is not an error."""
    _tell("note", text)


def _tell(kind: str, text: str) -> None:
    if kind == "note" and screen().is_quiet:
        return
    message = (in_a_conversation if screen().is_conversation else in_the_shell)(text).removeprefix(
        "parley: "
    )
    if screen().as_json:
        emit(kind, message=message)
    else:
        file = _file.get()
        screen().complain(f"parley: {message}" if file in message else f"parley: {file}: {message}")


def in_the_shell(message: str) -> str:
    """A message that the editor also shows, with its remedy reworded for the shell."""
    return _replaced(message, _IN_THE_SHELL)


def in_a_conversation(message: str) -> str:
    """A message with its remedy reworded for `parley chat`."""
    return _replaced(message, {**_IN_THE_SHELL, **_IN_A_CONVERSATION})


def _replaced(message: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, words)), lambda match: words[match[0]], message)


def settings(file: SettingsFile | None = None) -> Settings:
    """Load the shell's settings from `file` or from the user's file; print their problems."""
    from parley.settings.load import load_settings

    loaded, problems = load_settings(os.environ, file=file)
    for problem in problems:
        remark(problem)
    return loaded


def with_logins(known: Settings) -> Settings:
    """Settings that know which providers the user is signed in to, and which agents' programs are
    installed."""
    from parley.providers.provider_accounts import ProviderAccounts
    from parley.settings.installed_agents import with_installed

    accounts = ProviderAccounts(os.environ)
    signed_in = accounts.signed_in(known.all_providers().values())
    return with_installed(known.with_logins(signed_in), os.environ)


def model_lists() -> ModelLists:
    """The providers' lists of models, as last fetched."""
    from parley.providers.client import ProviderClient
    from parley.providers.model_lists import ModelLists

    async def no_demo() -> str:
        raise ParleyError("the demo model lists no models")

    return ModelLists(ProviderClient(os.environ, no_demo), os.environ)


def check_agent(name: str | None, known: Settings) -> None:
    """Raises ParleyError if no agent has this name."""
    from parley.settings.readiness import no_such_agent

    if name and known.named_agent(name) is None:
        raise ParleyError(no_such_agent(name, known))


def warn_of_project(app: App) -> None:
    """Print the project's untrusted server files and skills, and the problems in its trusted server
    files.
    """
    for path in app.untrusted():
        trust = f"parley trust {shlex.quote(str(path))}"
        remark(f"the servers in {path} are not used yet. Read the file, then run: {trust}")
    if names := [skill.skill.name for skill in app.skills.untrusted]:
        skill, them = ("skill", "it") if len(names) == 1 else ("skills", "them")
        remark(
            f"this project's {skill} {listed(names)} cannot be read by models, because you have "
            f"not agreed to {them}. To read {them} and agree, run: parley trust"
        )
    for problem in app.problems():
        remark(problem)


def warn_of_instructions(app: App, transcript: Transcript) -> None:
    """Print, once, which instructions for a chat are not sent, and how to agree to them."""
    names, problems = app.instruction_news(transcript)
    for problem in problems:
        remark(problem)
    if names:
        are, them = ("is", "it") if len(names) == 1 else ("are", "them")
        remark(
            f"{listed(map(one_line, names))} {are} not sent to the model, because you have not "
            f"agreed to {them}. To read {them} and agree, run: parley trust"
        )


def read(path: str) -> str:
    """The text of a file or, for `-`, of standard input. Raises ParleyError."""
    from parley.storage.content import decoded, text_of

    return decoded(_standard_input()) if path == PIPE else text_of(Path(path))


def chat_path(file: str) -> str:
    """The path of a chat's file; "" for standard input."""
    return "" if file == PIPE else file


def file_name(file: str) -> str:
    """A file's name in messages."""
    return _STANDARD_INPUT if file == PIPE else file


def piped(*, is_needed: bool) -> bytes:
    """Standard input, if it `is_needed` or not a terminal, else b"". Raises ParleyError."""
    return (
        _standard_input()
        if is_needed or (sys.stdin is not None and not sys.stdin.isatty())
        else b""
    )


def _standard_input() -> bytes:
    from parley.storage.content import CHAT_BYTES, too_large

    if sys.stdin is None:
        raise ParleyError(f"cannot read {_STANDARD_INPUT}: it is closed")
    try:
        is_typed = sys.stdin.isatty()
        with nullcontext() if is_typed else status_if_slow(f"reading {_STANDARD_INPUT}..."):
            content = sys.stdin.buffer.read(CHAT_BYTES + 1)
    except OSError as error:
        raise ParleyError(f"cannot read {_STANDARD_INPUT}: {error.strerror}") from error
    if len(content) > CHAT_BYTES:
        raise too_large(_STANDARD_INPUT)
    return content


@contextmanager
def status_if_slow(text: str) -> Iterator[None]:
    """Show a status if the work takes long."""
    from threading import Timer

    if screen().as_json or not screen().shows_status:
        yield
        return
    timer = Timer(_SLOW_S, screen().status, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        screen().status("")


def plain(value: Any) -> Any:
    """A Parley value as plain JSON: its fields by name, except positions and spellings."""
    if is_dataclass(value):
        shared = [f.name for f in fields(value) if f.compare]
        return {name: plain(getattr(value, name)) for name in shared}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return dict(value) if hasattr(value, "items") else value
