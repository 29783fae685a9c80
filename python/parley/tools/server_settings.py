"""The settings of an MCP server: how to reach it, which of its tools to use, how long to wait for
it.

Contains only values: `parley.mcp` starts servers. Knows how `${VAR}` is written and expanded, but
not from which environment its value comes.
"""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Literal, Self

from parley.errors import SettingsError
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.tables import rule
from parley.tools.catalogue import Tool, canonical

State = Literal["stopped", "starting", "ready", "failed"]

Protocol = Literal["auto", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
NEWEST: Protocol = "2026-07-28"

Account = Literal["none", "signed out", "signing in", "signed in"]
"""Whether the user is signed in at a server; "none" if the server has not required a sign-in."""

Origin = Literal["settings", "config file", "project"]
"""The place of a server's entry: the user's settings, the server file in these settings, or a
project.
"""

MOCK, WORKSPACE = "mock", "workspace"
RESERVED = (MOCK, WORKSPACE)
"""The names of the built-in servers; no other server can have them."""

_PLACEHOLDER = late_pattern(r"\$\{([^}]*)(\}?)")
"""An unclosed placeholder extends to the end; otherwise, each `${` in a hostile text would cost a
scan.
"""


@frozen
class ServerSettings:
    """One server: `builtin` (in this process), a command, or a url.

    `enabled_tools` and `disabled_tools` are globs for the tools' own names; None enables all. With
    `roots`, the server may know the working directory; None means that it may unless its arguments
    name a folder. With `sampling`, the server may use the model. `token_command` prints a bearer
    token for the url. `client_id`, with its secret, identifies Parley at the sign-in; without it,
    Parley registers there. The browser returns to the `callback_port`; 0 means any port. `protocol`
    is the revision to use; "auto" tries the newest revision, then older revisions.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False, metadata=rule(is_secret=True))
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata=rule(is_secret=True)
    )
    enabled: bool = True
    enabled_tools: tuple[str, ...] | None = None
    disabled_tools: tuple[str, ...] = ()
    timeout_s: float = 60.0
    start_timeout_s: float = 30.0
    trusted: bool = False
    roots: bool | None = None
    sampling: bool = False
    token_command: tuple[str, ...] = field(default=(), repr=False, metadata=rule(is_secret=True))
    client_id: str = ""
    client_secret: str = field(default="", repr=False, metadata=rule(is_secret=True))
    callback_port: int = 0
    protocol: Protocol = "auto"
    builtin: bool = False
    origin: Origin = field(default="settings", compare=False, metadata=rule(is_internal=True))

    @property
    def identity(self) -> str:
        """The server's origin as canonical JSON; contains `${VAR}` unexpanded, so no secret."""
        if self.builtin:
            place = {"cwd": self.cwd} if self.name == WORKSPACE else {}
            return canonical({"builtin": True if self.name == MOCK else self.name, **place})
        if self.url is not None:
            return canonical({"url": self.url})
        return canonical({"command": self.command, "args": list(self.args), "cwd": self.cwd})

    @property
    def variables(self) -> tuple[str, ...]:
        """The user's environment variables that the fields contain."""
        texts = (
            *(
                self.command,
                *self.args,
                *self.env.values(),
                self.cwd,
                self.url,
                *self.headers.values(),
            ),
            *(self.client_id, self.client_secret),
        )
        bodies = (body for text in texts if text for body in placeholders(text))
        return tuple(dict.fromkeys(_variable(body)[0] for body in bodies))

    @property
    def takes_logins(self) -> bool:
        """Whether a login identifies the user, because these settings do not identify the user."""
        has_token = self.token_command or "authorization" in map(str.lower, self.headers)
        return self.url is not None and not has_token

    def takes(self, tool: str) -> bool:
        """Whether Parley offers models a tool with this name."""
        is_enabled = self.enabled_tools is None or _matches(tool, self.enabled_tools)
        return is_enabled and not _matches(tool, self.disabled_tools)

    def expanded(self, environ: Mapping[str, str]) -> Self:
        """These settings with each `${VAR}` expanded; raises SettingsError for unset variables."""

        def fill(text: str, where: str) -> str:
            return expand(text, environ, f"mcp.servers.{self.name}.{where}")

        return replace(
            self,
            command=fill(self.command, "command") if self.command is not None else None,
            args=tuple(fill(text, f"args[{index}]") for index, text in enumerate(self.args)),
            env={key: fill(text, f"env.{key}") for key, text in self.env.items()},
            cwd=fill(self.cwd, "cwd") if self.cwd is not None else None,
            url=fill(self.url, "url") if self.url is not None else None,
            headers={key: fill(text, f"headers.{key}") for key, text in self.headers.items()},
            client_id=fill(self.client_id, "client_id"),
            client_secret=fill(self.client_secret, "client_secret"),
        )


@frozen
class ServerStatus:
    """A server's state, as `:ParleyTools` and the health report show it.

    `protocol` is the negotiated revision, "" before that. `error` is the reason why the server
    failed, or tells which of its parts are unusable. `stderr` contains the server's last lines,
    `log` its last log messages, and `instructions` its text about all its tools. `page` is the
    user's current sign-in page. A local server starts in `folder`; with `has_own_folder`, the
    settings do not contain a folder.
    """

    name: str
    state: State
    enabled: bool
    protocol: str
    tools: tuple[Tool, ...]
    error: str
    stderr: tuple[str, ...]
    log: tuple[str, ...] = ()
    instructions: str = ""
    account: Account = "none"
    page: str = ""
    folder: str = ""
    has_own_folder: bool = False


def again(server: str, scope: str) -> str:
    """The remedy if a server requires a further scope."""
    return f"sign in again for the scope {scope} with :ParleyLogin {server}"


def placeholders(text: str) -> list[str]:
    """The content of each `${…}` in a text."""
    return [match[1] for match in _PLACEHOLDER.finditer(text) if match[2]]


def expand(text: str, environ: Mapping[str, str], where: str) -> str:
    """`text` with each `${VAR}` replaced from `environ`; in errors, the setting is called `where`.

    `${env:VAR}` means the same. As in a shell, `${VAR:-default}` becomes the default if VAR is
    unset or empty.
    """

    def value(match: re.Match[str]) -> str:
        if not match[2]:
            return match[0]
        name, colon, default = _variable(match[1])
        if ":" in name or "${" in default:
            raise SettingsError(
                f"{where}: {match[0]} cannot be expanded: write ${{VAR}}, ${{env:VAR}} or "
                "${VAR:-default}, which come from the environment"
            )
        if colon:
            return environ.get(name) or default
        if name not in environ:
            raise SettingsError(
                f"{where}: the environment variable {name} (in {match[0]}) is not set"
            )
        return environ[name]

    return _PLACEHOLDER.sub(value, text)


def _variable(body: str) -> tuple[str, str, str]:
    """The variable in a placeholder, the separator if there is a default, and the default."""
    return body.removeprefix("env:").partition(":-")


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
