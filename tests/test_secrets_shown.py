"""Signatures, defaults and `repr`s in the package never show the environment or a secret."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import pydoc
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from typing import Any

import pytest

import parley
from parley.logins.stored_logins import Login
from parley.models.package import ProviderRequest
from parley.settings.values import ProviderSettings, Settings
from parley.tables import Rule
from parley.tools.server_settings import ServerSettings

KEY = "sk-not-to-be-shown"
_RUNS = {"parley.__main__", "parley.demo.__main__"}
MODULES = [
    importlib.import_module(name)
    for _, name, _ in pkgutil.walk_packages(parley.__path__, "parley.")
    if name not in _RUNS
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def members(module: object) -> Iterator[tuple[str, Any]]:
    """The values in a module or a class, including its nested classes."""
    for name, value in vars(module).items():
        yield name, value
        if inspect.isclass(value) and value.__module__.startswith("parley") and value is not module:
            yield from ((f"{name}.{inner}", member) for inner, member in members(value))


def signature(value: object) -> str:
    """The signature of a callable in the package; "" for anything else."""
    if not str(getattr(value, "__module__", "")).startswith("parley"):
        return ""
    try:
        return str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


@pytest.mark.parametrize("what", [parley, parley.Session], ids=["parley", "Session"])
def test_help_shows_no_environment_variable(what: object) -> None:
    assert KEY in repr(os.environ)
    shown = pydoc.render_doc(what, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    assert "approve" in shown or what is parley
    assert KEY not in shown


def test_no_public_name_shows_the_environment() -> None:
    for name in parley.__all__:
        assert KEY not in signature(getattr(parley, name)), name


def test_no_member_of_any_module_shows_the_environment() -> None:
    assert len(MODULES) > 200
    shown = [
        f"{module.__name__}.{name}"
        for module in MODULES
        for name, value in members(module)
        if value is not os.environ
        if KEY in signature(value) or KEY in repr(value)
    ]
    assert shown == []


def secret_fields() -> Iterator[tuple[type, Field[Any]]]:
    for module in MODULES:
        for value in vars(module).values():
            if (
                is_dataclass(value)
                and isinstance(value, type)
                and value.__module__ == module.__name__
            ):
                yield from (
                    (value, f) for f in fields(value) if f.metadata.get("rule", Rule()).is_secret
                )


def test_no_repr_shows_a_secret_setting() -> None:
    found = [f"{cls.__name__}.{field.name}" for cls, field in secret_fields() if field.repr]
    assert len(list(secret_fields())) >= 5
    assert found == []


def test_values_with_secrets_do_not_show_them() -> None:
    table = {"X": KEY}
    server = ServerSettings("s", "x", env=table, headers=table, client_secret=KEY)
    provider = ProviderSettings("p", api_key_env=KEY, api_key_command=(KEY,), headers=table)
    settings = Settings(providers={"p": provider}).with_servers({"s": server})
    request = ProviderRequest("m", (), api_key=KEY, headers=table)
    login = Login("https://s", {"access_token": KEY}, {"client_secret": KEY}, {})
    for value in (server, provider, settings, request, login):
        assert KEY not in repr(value)


def test_no_session_shows_its_arguments() -> None:
    with parley.Session(agent="Demo", environ={"ANTHROPIC_API_KEY": KEY}) as session:
        values = [session, *vars(session).values(), *vars(session._app).values()]
        assert [
            value for value in values if KEY in repr(value) and value is not session._app.environ
        ] == []
