"""`parley trust`: agree to a project's server files, instructions, skills and prompts, after
reading them.

Without a terminal, the command needs a text's digest as an option, so a script can agree only to
one content.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

from parley.chat.transcript import Transcript
from parley.cli.exits import COMPLETE
from parley.cli.terminal import complain, say_line, screen, settings
from parley.display.offered_text_rows import HIDDEN_SHOWN, has_hidden, offered_text_rows
from parley.errors import ParleyError
from parley.storage.text_trust import OfferedText, TextTrust
from parley.tools.mcp_files import ServersFile, project_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from parley.runtime.app import App

_YES = ("y", "yes")
_TEXTS = (".md", ".txt")
"""The endings of texts; without a digest, a file with another ending is a server file."""
_UNSEEN = "nothing was trusted, because the description could not be written"


def trust(arguments: argparse.Namespace) -> int:
    """Trust a project's server files and texts, with their current content."""
    files = [Path(file) for file in arguments.files]
    # A yes by digest is for a text, such as a skill's script, and never for servers.
    servers = [] if arguments.digest else [path for path in files if path.suffix not in _TEXTS]
    for path in servers:
        _trust_servers(path, is_pinned=arguments.pin)
    texts = [path for path in files if path not in servers]
    if texts or not files:
        asyncio.run(_trust_project(texts, arguments))
    return COMPLETE


@asynccontextmanager
async def _application() -> AsyncIterator[App]:
    from parley.runtime.app import App

    app = App(settings(), os.environ)
    try:
        yield app
    finally:
        await app.close()


async def _trust_project(files: Sequence[Path], arguments: argparse.Namespace) -> None:
    """Ask about these texts of the project, or about all its files if none is named."""
    async with _application() as app:
        servers = [] if files else app.untrusted()
        known = app.instructions(Transcript())
        offered = {_place(text.path): text for text in _offered(app)}
        wanted = [_place(path) for path in files] or list(offered)
        for place in wanted:
            if text := offered.get(place):
                _agree(text, app.text_trust, arguments.digest)
            elif place in map(_place, known.paths):
                say_line(f"you have already agreed to {place}")
            else:
                complain(f"{place}: {_flaw(place)}")
        for path in servers:
            if screen().can_ask:
                _trust_servers(path, is_pinned=arguments.pin)
            else:
                say_line(f"To read what {path} does and trust it, run: {_command(path)}")
        if not (servers or wanted):
            say_line("nothing to agree to here")
        for problem in app.problems():
            complain(problem)


def _offered(app: App) -> list[OfferedText]:
    """The project's instructions, skills and prompts to which the user has not agreed."""
    app.skills.look()
    prompts = (entry.file for entry in app.prompts.files() if entry.needs_trust)
    return [
        *app.instructions(Transcript()).offered,
        *app.skills.offered(),
        *(app.prompts.folders.offered(file) for file in prompts if file and file.content),
    ]


def _place(path: Path) -> Path:
    return Path(os.path.realpath(path.parent)) / path.name


def _flaw(place: Path) -> str:
    is_there = os.path.lexists(place)
    return (
        "it is not a text of this project, or you have already agreed to it"
        if is_there
        else "there is no such file"
    )


def _command(path: Path) -> str:
    return f"parley trust {shlex.quote(str(path))}"


def _agree(text: OfferedText, trust: TextTrust, digests: Sequence[str]) -> None:
    """Show a text, or its changes, and record the user's yes; report a no.

    Raises ParleyError if the text cannot be shown.
    """
    for line in _description(text, trust.previous(text.path)):
        say_line(line)
    if not screen().has_shown_all:
        raise ParleyError(_UNSEEN)
    name = text.name
    if text.digest in digests or (screen().can_ask and _wants(text)):
        trust.trust(text.path, text.content)
        say_line(f"Parley uses {name} from now on, and asks again if it changes")
    elif screen().can_ask:
        complain(f"{name} is not used")
    else:
        command = f"{_command(text.path)} --digest {text.digest}"
        complain(f"{name} is not used. To agree to exactly this text, run: {command}")


def _wants(text: OfferedText) -> bool:
    return screen().line(f"Use {text.noun} in {text.name}? (y/N) ").lower() in _YES


def _description(text: OfferedText, before: str | None) -> Iterator[str]:
    content = text.content.decode("utf-8", "replace")
    yield f"{text.name} has changed:" if before is not None else f"{text.name}:"
    for row in offered_text_rows(content, before):
        yield "".join(chunk[0] for chunk in row)
    yield ""
    if has_hidden(content):
        yield HIDDEN_SHOWN
    yield text.effect


def _trust_servers(path: Path, *, is_pinned: bool) -> None:
    """Describe a server file, and record the user's yes. Raises ParleyError."""
    from parley.storage.ledger import LedgerFile, default_path
    from parley.storage.trust import offered
    from parley.storage.trust import trust as record

    file, digest = offered(path)
    for problem in file.problems:
        complain(problem)
    _describe(file, path)
    if not screen().has_shown_all:
        raise ParleyError(_UNSEEN)
    if (
        screen().can_ask
        and screen().line("Trust these servers to do this? (y/N) ").lower() not in _YES
    ):
        raise ParleyError(f"{path} is not trusted")
    with closing(LedgerFile(default_path(os.environ))) as ledger:
        record(ledger, path, digest, pinned=is_pinned)
    say_line(_trusted(path, file, is_pinned=is_pinned))


def _describe(file: ServersFile, path: Path) -> None:
    from parley.storage.trust import findings
    from parley.tools.descriptions import described

    folder = project_of(path.absolute())
    for name, server in file.servers.items():
        say_line(f"{name}:")
        for line in described(server, findings(server, folder)):
            say_line(f"  {line}")


def _trusted(path: Path, file: ServersFile, *, is_pinned: bool) -> str:
    """The message that trust was recorded, and which changes end it."""
    from parley.storage.trust import programs

    binding = "Parley asks again if this file changes"
    if names := programs(file, project_of(path.absolute())):
        listed = ", ".join(map(str, names))
        if is_pinned:
            binding = f"Parley asks again if this file or a project program that it uses changes ({listed})"
        else:
            binding += (
                f", but not if a project program that it uses changes ({listed}). To pin programs, "
                "too, pass --pin"
            )
    elif is_pinned:
        binding += "; the file mentions no project programs to pin"
    return f"{path} is trusted. {binding}"
