"""Every setting with its value and origin: the default, a file, or the environment.

The result contains no secrets: possible secrets keep their names, but a mark replaces the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any
from urllib.parse import urlsplit

from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.paths import chats_folder
from parley.programs import program_name
from parley.settings.load import ABSENT, SettingsFile
from parley.settings.values import HIDDEN, PROVIDERS, ProviderSettings, Settings, variable_name
from parley.tables import Rule

DEFAULT = "default"

_NO_RULE = Rule()
_FALLBACK = late_pattern(r"(\$\{[^}]*?:-)[^}]+")
_FILLED_IN = late_pattern(rf"\$\{{(?:env:)?\w+(?::-{HIDDEN})?\}}")
"""A text that is only a placeholder for an environment variable."""
_COMMANDS = ("api_key_command", "token_command")
_ADDRESSES = ("base_url", "url")
_SECRETIVE = r"[\w.-]*(?:key|token|secret|passw|pwd|auth|bearer|credential|cookie|dsn)[\w.-]*"
_SECRET_OPTION = late_pattern(rf"-+(?:{_SECRETIVE}|[\w-]*headers?|pat|(?-i:H))", re.IGNORECASE)
_SECRETS = (
    late_pattern(rf"((?:{_SECRETIVE}|-headers?|-pat)\s*[=:]).+", re.IGNORECASE | re.DOTALL),
    late_pattern(r"(\b(?:bearer|basic)\s+)[^\s\"']+", re.IGNORECASE),
    late_pattern(r"(://)(?:[^\s/?#]*|[^\s/?#]*:[^\s@]*)(?=@)"),
    late_pattern(r"(://[^\s?#]*[?#])[^\s\"']+"),
    late_pattern(
        r"(\b)(?:(?:[sprg]k|gsk|xai|glpat|xox[a-z])-|(?:gh[a-z]|github_pat|npm|hf|[spr]k)_|AKIA|AIza|eyJ)"
        r"(?=[\w.-]*\d)[\w.-]{16,}"
    ),
)
"""Secrets in an argument: the values of options with secret names, an address's user part and
query, and words that look like the keys of providers and hosts. The text that the group matches is
kept.
"""


@frozen
class SettingOrigin:
    """A setting: its value as plain JSON, and its origin."""

    name: str
    value: Any
    origin: str


def entries(
    settings: Settings, file: SettingsFile, environ: Mapping[str, str]
) -> list[SettingOrigin]:
    """All settings that are in effect in a shell with this environment.

    `settings` must be the result of `load_settings` for the `file`.
    """
    all_entries = [*_below(settings, Settings(), "", file), *_addresses(settings, environ)]
    by_name = {entry.name: entry for entry in all_entries}  # variables override files
    return [_in_effect(entry, settings, file, environ) for entry in by_name.values()]


def address(url: str) -> str:
    """An address for display, without the user, the password, the query and the defaults of
    placeholders.
    """
    try:
        parts = urlsplit(_without_fallback(url))
    except ValueError:
        return HIDDEN
    host, at = parts.netloc.rpartition("@")[2], HIDDEN + "@" if "@" in parts.netloc else ""
    query = HIDDEN if parts.query else ""
    return parts._replace(netloc=at + host, query=query, fragment="").geturl()


def _below(value: Any, default: Any, path: str, file: SettingsFile) -> Iterator[SettingOrigin]:
    """A table's settings; in a table with a name from the user, only changed settings.

    `default` is None for a table with a name from the user, for example a server.
    """
    for field in fields(value):
        rule: Rule = field.metadata.get("rule", _NO_RULE)
        if rule.is_internal:
            continue
        inner, name = (
            getattr(value, field.name),
            f"{path}.{rule.name or field.name}".removeprefix("."),
        )
        if is_dataclass(inner) and default is not None:
            yield from _below(inner, getattr(default, field.name), name, file)
        elif isinstance(inner, Mapping) and any(map(is_dataclass, inner.values())):
            for key, item in inner.items():
                yield from _below(item, None, f"{name}.{key}", file)
        elif isinstance(inner, tuple) and any(map(is_dataclass, inner)):
            yield from (
                _item(item, number, name, inner, file) for number, item in enumerate(inner, 1)
            )
        elif (place := _spelling(name, file, is_short=rule.is_short)) and _is_used(
            inner, field, file.value(place)
        ):
            yield SettingOrigin(name, _without_secrets(field.name, inner, rule), file.place(place))
        elif default is not None:
            yield SettingOrigin(name, _without_secrets(field.name, inner, rule), DEFAULT)
        elif field.name != "name" and inner != field.default and inner not in ((), {}):
            yield SettingOrigin(
                name, _without_secrets(field.name, inner, rule), _elsewhere(name, file)
            )


def _item(
    item: Any, number: int, path: str, all_items: tuple[Any, ...], file: SettingsFile
) -> SettingOrigin:
    """A table in a list, as one value. The table's number is uncertain if flawed tables were
    dropped.
    """
    written = file.value(path)
    is_sure = isinstance(written, list) and len(written) == len(all_items)
    name = f"{path}[{number}]"
    return SettingOrigin(name, _table(item), file.place(name if is_sure else path))


def _table(item: Any) -> Any:
    """A user's table as JSON, without default values."""
    if not is_dataclass(item):
        return (
            list(item)
            if isinstance(item, tuple)
            else _nested("", item)
            if isinstance(item, Mapping)
            else item
        )
    inner = {field.name: getattr(item, field.name) for field in fields(item)}
    defaults = {field.name: field.default for field in fields(item)}
    return {
        name: _table(value) for name, value in inner.items() if value not in (defaults[name], {})
    }


def _spelling(path: str, file: SettingsFile, *, is_short: bool) -> str:
    """A setting's path in the file, possibly in its short form; "" if the file does not set it."""
    if file.value(path) is not ABSENT:
        return path
    above = path.rpartition(".")[0]
    is_above = is_short and above and not isinstance(file.value(above), Mapping)
    return above if is_above and file.value(above) is not ABSENT else ""


def _is_used(value: Any, field: Field[Any], raw: Any) -> bool:
    """Whether a setting still has the value from the file; the default replaces an invalid
    value.
    """
    return bool(value != field.default or value == (tuple(raw) if isinstance(raw, list) else raw))


def _elsewhere(path: str, file: SettingsFile) -> str:
    """The origin of a setting that is not in the settings file."""
    named = file.value("mcp.config_file")
    return named if path.startswith("mcp.servers.") and isinstance(named, str) else DEFAULT


def _without_secrets(name: str, value: Any, rule: Rule) -> Any:
    """A value as JSON, without possible secrets."""
    match value:
        case str() if name in _ADDRESSES:
            return address(value)
        case str() if name == "api_key_env":
            return variable_name(value)
        case str() if rule.is_secret:
            return _secret(value)
        case tuple() if rule.is_secret or name in _COMMANDS:
            return [*map(program_name, [value] if value else ()), *(HIDDEN for _ in value[1:])]
        case Mapping() if rule.is_secret:
            return {key: _secret(text) for key, text in value.items()}
        case tuple() if name == "args":
            return list(_arguments(value))
        case tuple():
            return list(value)
        case Mapping():
            return _nested(name, value)
        case _:
            return value


def _nested(name: str, value: Any) -> Any:
    """A value of any kind under a name from the user, such as a parameter, without possible
    secrets.
    """
    match value:
        case Mapping():
            return {key: _nested(key, inner) for key, inner in value.items()}
        case list() | tuple():
            return [_nested(name, inner) for inner in value]
        case str() if re.fullmatch(_SECRETIVE, name, re.IGNORECASE):
            return _secret(value)
        case str():
            return _argument(value)
        case _:
            return value


def _secret(text: str) -> str:
    """A possible secret, for display: hidden unless it consists only of placeholders."""
    bare = _without_fallback(text)
    return bare if _FILLED_IN.fullmatch(bare) else HIDDEN


def _without_fallback(text: str) -> str:
    """A text without the defaults in `${VAR:-default}`."""
    return _FALLBACK.sub(rf"\1{HIDDEN}", text)


def _arguments(arguments: tuple[str, ...]) -> Iterator[str]:
    """A program's arguments, without the values of options for a key, a token or the like."""
    is_secret = False
    for text in arguments:
        yield _secret(text) if is_secret else _argument(text)
        is_secret = _SECRET_OPTION.fullmatch(text) is not None


def _argument(text: str) -> str:
    """An argument without words that look like secrets."""
    text = _without_fallback(text)
    if not _FILLED_IN.fullmatch(text):
        for pattern in _SECRETS:
            text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def _in_effect(
    entry: SettingOrigin, settings: Settings, file: SettingsFile, environ: Mapping[str, str]
) -> SettingOrigin:
    """A setting with the value that is in effect, if the user has not set it."""
    if entry.name == "chat_dir" and not settings.chat_dir:
        origin = "environment XDG_DATA_HOME" if environ.get("XDG_DATA_HOME") else DEFAULT
        return SettingOrigin(entry.name, str(chats_folder(environ)), origin)
    if entry.name == "agent" and not (settings.agent and settings.named_agent(settings.agent)):
        agent = settings.default_agent(environ)
        return SettingOrigin(
            entry.name, agent.name, _key_origin(settings.provider(agent.provider), file)
        )
    return entry


def _key_origin(provider: ProviderSettings | None, file: SettingsFile) -> str:
    """The origin of a provider's key; the key makes the provider's agent the default."""
    if provider and provider.api_key_command:
        return file.place(f"providers.{provider.name}.api_key_command")
    if provider and provider.signed_in:
        return "sign-in"
    return f"environment {provider.key_variable}" if provider and provider.key_variable else DEFAULT


def _addresses(settings: Settings, environ: Mapping[str, str]) -> Iterator[SettingOrigin]:
    """Providers' addresses that variables set."""
    for name, provider in {**PROVIDERS, **settings.providers}.items():
        if provider.base_url_env and (url := environ.get(provider.base_url_env)):
            yield SettingOrigin(
                f"providers.{name}.base_url", address(url), f"environment {provider.base_url_env}"
            )
