"""Servers' settings: identity, globs and environment variables."""

import pytest

from parley.errors import SettingsError
from parley.tools.server_settings import ServerSettings, expand, placeholders


def test_variables_are_filled_in_everywhere() -> None:
    server = ServerSettings(
        name="web",
        command="${BIN}/server",
        args=("--key=${KEY}", "$KEY", "${KEY}${KEY}"),
        env={"TOKEN": "${KEY}"},
        cwd="${BIN}",
        url="http://${KEY}/",
        headers={"Authorization": "Bearer ${KEY}"},
    )
    assert server.expanded({"BIN": "/bin", "KEY": "k"}) == ServerSettings(
        name="web",
        command="/bin/server",
        args=("--key=k", "$KEY", "kk"),
        env={"TOKEN": "k"},
        cwd="/bin",
        url="http://k/",
        headers={"Authorization": "Bearer k"},
    )


def test_an_unknown_variable_is_an_error_that_names_it_and_the_setting() -> None:
    server = ServerSettings(name="web", command="x", args=("a", "${MISSING}"))
    with pytest.raises(SettingsError, match=r"mcp\.servers\.web\.args\[1\]: .* MISSING "):
        server.expanded({})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:KEY}", "k"),
        ("${KEY:-other}", "k"),
        ("${env:KEY:-other}", "k"),
        ("${MISSING:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("${MISSING:-}", ""),
        ("${MISSING:-a:-b}/${KEY}", "a:-b/k"),
        ("http://${HOST:-localhost:80}/", "http://localhost:80/"),
    ],
)
def test_a_variable_has_the_spellings_of_other_programs_and_a_default(
    text: str, value: str
) -> None:
    server = ServerSettings(name="web", command="x", args=(text,))
    assert server.expanded({"KEY": "k", "EMPTY": ""}).args == (value,)


def test_variables_are_listed_in_every_spelling() -> None:
    server = ServerSettings(
        name="web", command="${A}", args=("${env:B}", "${C:-${D}"), env={"X": "${A:-1}"}
    )
    assert server.variables == ("A", "B", "C")


@pytest.mark.parametrize("text", ["${input:token}", "${config:a.b}", "${A:-${B}}", "${env:a:b}"])
def test_an_invalid_placeholder_is_an_error_that_names_valid_ones(text: str) -> None:
    server = ServerSettings(name="web", url="http://x", headers={"A": text})
    with pytest.raises(
        SettingsError, match=r"mcp.servers.web.headers.A: \$\{.*: write \$\{VAR\}, "
    ):
        server.expanded({"A": "1", "B": "2"})


def test_an_unclosed_placeholder_is_text() -> None:
    assert expand("${A:-b}${A", {}, "x") == "b${A"
    assert placeholders("${A} ${B") == ["A"]


def test_a_text_full_of_unclosed_placeholders_is_scanned_once() -> None:
    server = ServerSettings("s", "x", args=("${" * 500_000,))
    assert server.variables == ()
    assert server.expanded({}) == server


def test_a_variables_value_is_not_expanded_again() -> None:
    server = ServerSettings(name="web", command="${A}")
    assert server.expanded({"A": "${B}", "B": "no"}).command == "${B}"


def test_the_identity_names_a_servers_origin_and_contains_no_secret() -> None:
    stdio = ServerSettings(name="a", command="run", args=("x",), cwd="/d", env={"TOKEN": "secret"})
    assert stdio.identity == '{"args":["x"],"command":"run","cwd":"/d"}'
    http = ServerSettings(name="a", url="http://h/", headers={"Authorization": "secret"})
    assert http.identity == '{"url":"http://h/"}'
    assert ServerSettings(name="mock", builtin=True).identity == '{"builtin":true}'
    assert ServerSettings(name="a", builtin=True).identity == '{"builtin":"a"}'


@pytest.mark.parametrize(
    ("enabled", "disabled", "taken"),
    [
        (None, (), ["read", "write", "write_all"]),
        (("write*",), (), ["write", "write_all"]),
        (None, ("*_all",), ["read", "write"]),
        (("write*",), ("*_all",), ["write"]),
        ((), (), []),
    ],
)
def test_globs_choose_the_tools(
    enabled: tuple[str, ...] | None, disabled: tuple[str, ...], taken: list[str]
) -> None:
    server = ServerSettings(name="s", enabled_tools=enabled, disabled_tools=disabled)
    assert [name for name in ("read", "write", "write_all") if server.takes(name)] == taken
