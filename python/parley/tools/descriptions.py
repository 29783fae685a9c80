"""Describes all effects of a server file's entry to the user who decides whether to trust it. Pure.

Both front ends show these lines before they record anything. The lines contain the file's raw text:
the front end must escape it. The lines hide secrets that are written out in the file, and show
`${VAR}` unexpanded.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from parley.addresses import MASK, shown_address
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.tools.server_settings import ServerSettings, placeholders

_STEERING = late_pattern(
    r"(?i)(SHELL|ENV|IFS|PYTHON\w*|(LD|DYLD|NODE|PERL|RUBY|JAVA|JDK|DOTNET|CORECLR|GIT|UV|PIP|NPM|DENO|BUN|GO"
    r"|LUA|PHP|CARGO|DOCKER|SSH|BASH)_.*|.*(PATH|PRELOAD|PROXY|OPTIONS|OPTS?|LIB|FLAGS|HOME|ENV|ASKPASS"
    r"|EDITOR|PAGER|REGISTRY|INDEX_URL))"
)
"""Variables that decide which code a program loads, or from where."""
_SECRET = late_pattern(
    r"(?i)(.*[-_])?(?:api_?)?(key|token|secret|password|passwd|authorization|cookie)"
)


@frozen
class Findings:
    """The files to which an entry's words refer here; the project's files are relative to the
    project's folder.

    `program` is the file that would start; "" if there is none.
    """

    program: str = ""
    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()


def described(server: ServerSettings, findings: Findings) -> list[str]:
    """All effects of an entry, one line each."""
    lines = [*(_remote(server) if server.url is not None else _local(server, findings))]
    if server.variables:
        lines.append(f"receives your variables {', '.join(server.variables)}")
    if server.enabled_tools is not None:
        lines.append(
            f"offers only the tools {', '.join(server.enabled_tools) or '(an empty list)'}"
        )
    if server.disabled_tools:
        lines.append(f"leaves out the tools {', '.join(server.disabled_tools)}")
    return lines if server.enabled else [*lines, "is switched off in this file"]


def _remote(server: ServerSettings) -> Iterator[str]:
    yield f"connects to {shown_address(server.url or '')}"
    for name, value in server.headers.items():
        yield f"sends the header {name}: {_visible_value(name, value)}"


def _local(server: ServerSettings, findings: Findings) -> Iterator[str]:
    yield f"starts the program {shlex.join((server.command or '', *server.args))}"
    if not findings.program:
        yield f"{server.command} was not found here"
    elif findings.program != server.command:
        yield f"{server.command} is {findings.program} here"
    yield f"in the folder {server.cwd or '.'}"
    yield from _variables(server.env)
    for kind, paths in (("files", findings.files), ("folders", findings.folders)):
        if paths:
            yield (
                f"uses {kind} from the project, whose content may change: "
                f"{', '.join(map(str, paths))}"
            )


def _variables(env: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        note = ", which may decide what code runs" if _STEERING.fullmatch(name) else ""
        yield f"{'! ' if note else ''}sets {name}={_visible_value(name, value)}{note}"


def _visible_value(name: str, value: str) -> str:
    """A value as written in the file, but with any written-out secret hidden."""
    is_hidden = value and _SECRET.fullmatch(name) and not placeholders(value)
    return MASK if is_hidden else shlex.quote(value)
