"""Both front ends describe all effects of a server file's entry."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from string import ascii_letters

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.nvim.pages import THE_FILE, project_page
from parley.storage.trust import findings
from parley.text import contained, legible
from parley.tools.descriptions import Findings, described
from parley.tools.mcp_files import read_servers
from parley.tools.server_settings import ServerSettings

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
NAMES = st.text(ascii_letters + "_", min_size=1, max_size=12)


@given(
    WORDS.filter(bool),
    st.lists(WORDS, max_size=4),
    st.dictionaries(NAMES, WORDS, max_size=4),
    WORDS,
)
@example(
    "npx", ["-y", "x" * 300], {"LD_PRELOAD": "./x.so", "Path": "a\nb", "GIT_ASKPASS": "./x"}, "bin"
)
@example("x", ["\u202e"], {"A": "${TOKEN}"}, "")
def test_every_word_of_an_entry_is_in_its_description_and_on_the_page(
    command: str, args: list[str], env: dict[str, str], cwd: str
) -> None:
    table = {"mcpServers": {"s": {"command": command, "args": args, "env": env, "cwd": cwd}}}
    content = json.dumps(table).encode()
    file = read_servers(content, "f", "/p")
    if not file.servers:
        return  # a placeholder that only VS Code fills in
    server = file.servers["s"]
    lines = described(server, findings(server, Path("/p"), {}))
    page = project_page(Path("/p/.mcp.json"), content, file)
    page = page[: page.index(THE_FILE)]
    text = "\n".join(lines)
    assert shlex.join((server.command or "", *server.args)) in text
    assert f"in the folder {server.cwd}" in text
    for name, value in server.env.items():
        assert f"sets {name}={shlex.quote(value)}" in text or f"sets {name}=…" in lines
        assert any(f"sets {name}=" in line for line in page)
    assert all(f"- {contained(legible(line))}" in page for line in lines)


@pytest.mark.parametrize("name", ["API_KEY", "GITHUB_TOKEN", "secret", "DB_PASSWORD"])
def test_a_secret_written_out_in_a_file_is_hidden_but_a_variable_is_not(name: str) -> None:
    server = ServerSettings("s", "x", env={name: "hunter2", "A_TOKEN": "${B}"})
    text = "\n".join(described(server, Findings()))
    assert "hunter2" not in text
    assert "sets A_TOKEN='${B}'" in text


STEERING = """
    PATH LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES NODE_OPTIONS NODE_PATH PYTHONPATH PYTHONSTARTUP
    BASH_ENV PERL5LIB RUBYOPT JAVA_TOOL_OPTIONS GIT_SSH_COMMAND NPM_CONFIG_REGISTRY npm_config_registry
    UV_INDEX_URL PIP_INDEX_URL GOFLAGS HTTPS_PROXY
"""


@pytest.mark.parametrize("name", STEERING.split())
def test_a_variable_that_chooses_the_code_is_marked(name: str) -> None:
    server = ServerSettings("s", "x", env={name: "y"})
    assert f"! sets {name}=y, which may decide what code runs" in described(server, Findings())


@pytest.mark.parametrize(
    "name", ["GOOGLE_API_KEY", "LOG_LEVEL", "PORT", "LDAP_URL", "DATABASE_URL"]
)
def test_other_variables_are_not_marked(name: str) -> None:
    server = ServerSettings("s", "x", env={name: "y"})
    assert not any("may decide" in line for line in described(server, Findings()))
