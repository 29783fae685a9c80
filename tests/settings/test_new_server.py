"""Adding a server to `config.toml` keeps all its content, including the last comment."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.settings.load import load_settings
from parley.settings.new_server import NewServer, add_server, entry, with_server
from parley.tools.known_servers import KNOWN_SERVERS
from parley.tools.server_settings import ServerSettings

NEW = ServerSettings("new", "npx", ("-y", 'a "b"\n'), {"KEY": "${KEY}", "odd key": "é"}, cwd=".")

PIECES = [
    "# a comment",
    "",
    'agent = "Claude"  # mine',
    "[loop]\nmax_iterations = 3 # few",
    '[mcp]\nstart = "chat"',
    "[mcp]\n# none yet\n[mcp.servers]\n",
    '[mcp.servers.old]\ncommand = "old"  # keep\n\n# the end',
    "[mcp.servers.old.env]\nA = '1'",
    'mcp.start = "chat"',
    "mcp.servers.old.command = 'x'",
    "mcp = { start = 'chat' }",
    "mcp = { servers = { old = { command = 'x' } } } # inline",
    "[mcp]\nservers = { old = { command = 'x' } }",
    "[[agents]]\nname = 'A'\nprovider = 'openai'\nmodel = 'm'",
    "[safety]\nblocked_tool_patterns = [\n  'rm', # no\n]",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=5, unique=True).map("\n".join)
NAMES = st.from_regex(r"[\w][\w. -]{0,10}", fullmatch=True).filter(
    lambda name: name not in ("old", "mock")
)


def is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


@given(TEXTS.filter(is_toml), NAMES, st.sampled_from(["", "\n", "\r\n"]))
@example("", "new", "")
@example(PIECES[11], "new", "")
@example(PIECES[9], "a.b", "")
@example(f"{PIECES[7]}\n{PIECES[3]}\n{PIECES[6]}", "x y", "\n")
def test_a_file_keeps_its_meaning_and_lines_and_gains_the_server(
    text: str, name: str, end: str
) -> None:
    text = text.replace("\n", "\r\n") + end if end == "\r\n" else text + end
    server = ServerSettings(name, "npx", ("-y", "x"), {"A": "1"})
    try:
        written = with_server(text, server)
    except ParleyError:
        written = ""
    if not written:
        assert "{" in text  # an inline table, whose line would have to change
        return
    before = tomllib.loads(text)
    mcp = before.get("mcp", {})
    servers = {**mcp.get("servers", {}), name: entry(server)}
    assert tomllib.loads(written) == {**before, "mcp": {**mcp, "servers": servers}}
    rest = iter(written.splitlines())
    assert all(line in rest for line in text.splitlines())


def config(folder: Path, text: str | None = None) -> tuple[dict[str, str], Path]:
    path = folder / "parley" / "config.toml"
    if text is not None:
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    return {"XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}, path


@pytest.mark.parametrize("text", [None, "", "# mine\nagent = 'Demo'\n"])
def test_the_settings_have_the_added_server(tmp_path: Path, text: str | None) -> None:
    environ, path = config(tmp_path, text)
    assert add_server(NEW, environ) == path
    settings, problems = load_settings(environ)
    assert (settings.mcp.servers, problems) == ({"new": NEW}, ())
    assert path.read_text(encoding="utf-8").startswith(text or "[mcp.servers.new]")
    assert (path.stat().st_mode & 0o777 == 0o600) == (text is None)
    assert [entry.name for entry in path.parent.iterdir()] == ["config.toml"]


def test_a_link_to_dotfiles_stays_a_link(tmp_path: Path) -> None:
    environ, path = config(tmp_path)
    (tmp_path / "dotfiles").mkdir()
    path.parent.mkdir()
    path.symlink_to("../dotfiles/config.toml")
    (tmp_path / "dotfiles" / "config.toml").write_text("# mine\n", encoding="utf-8")
    add_server(NEW, environ)
    assert path.is_symlink()
    assert load_settings(environ)[0].mcp.servers == {"new": NEW}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "# a\n\n[mcp.servers.new]\ncommand = 'x'\n",
            "config.toml:3 already has a server named 'new'",
        ),
        ("agent = \n", "config.toml: Invalid value"),
        ("mcp = 3\n", "Add it by hand"),
    ],
)
def test_a_file_that_cannot_take_a_server_stays_unchanged(
    tmp_path: Path, text: str, why: str
) -> None:
    environ, path = config(tmp_path, text)
    with pytest.raises(ParleyError, match=why):
        add_server(NEW, environ)
    assert path.read_text(encoding="utf-8") == text


def test_an_invalid_address_is_not_added(tmp_path: Path) -> None:
    environ, path = config(tmp_path)
    with pytest.raises(ParleyError, match="must begin with http:// or https://"):
        add_server(ServerSettings("web", url="example.com"), environ)
    assert not path.exists()


def test_the_words_of_a_command_line_describe_a_server(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    table: dict[str, Any] = {"mcpServers": {"hub": {"command": "hub", "env": {"A": 1}}}}
    file.write_text(json.dumps(table), encoding="utf-8")

    def server(*words: str) -> ServerSettings:
        return NewServer.of(words).settings()

    assert server("x", "--", "npx", "-y", "--", "y") == ServerSettings(
        "x", "npx", ("-y", "--", "y")
    )
    assert server("x", "--url", "https://x") == ServerSettings("x", url="https://x")
    assert server("hub", "--from", str(file)) == ServerSettings("hub", "hub", (), {"A": "1"})
    assert server("files") == KNOWN_SERVERS["files"].settings
    for words, why in {
        (): "give one of: the name",
        ("x", "--"): "give one of: the name",
        ("x", "--url"): "give one of: the name",
        ("a/b", "--", "x"): "cannot be called",
        ("mock", "--", "x"): "cannot be called",
        ("file",): "Did you mean files",
        ("other", "--from", str(file)): "has no server other. It has hub",
        ("other", "--from", str(tmp_path)): "cannot read",
    }.items():
        with pytest.raises(ParleyError, match=why):
            server(*words)


def test_ten_servers_are_known_and_each_can_be_added(tmp_path: Path) -> None:
    environ, _ = config(tmp_path)
    for known in KNOWN_SERVERS.values():
        add_server(known.settings, environ)
    settings, problems = load_settings(environ)
    assert (len(settings.mcp.servers), problems) == (10, ())
    assert settings.mcp.servers == {name: known.settings for name, known in KNOWN_SERVERS.items()}
