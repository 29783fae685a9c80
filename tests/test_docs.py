"""The documents are true: these tests read and run the examples, and compare defaults and names
with the code.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from parley.chat.reader import parse
from parley.chat.writer import render
from parley.cli import servers
from parley.cli.arguments import parser
from parley.cli.exits import EXITS
from parley.cli.export_import import EXPORTS
from parley.cli.terminal import in_the_shell
from parley.conversion import IMPORT_FORMATS
from parley.mcp.server_client import MOST_OFFERED
from parley.media import PICTURE_BYTES as MOST_PICTURE_BYTES
from parley.nvim import tools_page
from parley.policy.summaries import KEEP
from parley.providers.client import READ_TIMEOUT_S
from parley.settings.read import read_settings
from parley.settings.values import AGENTS, PROVIDERS, SYSTEM_PROMPT, ProviderSettings, Settings
from parley.storage.bounds import Bounds
from parley.tools.server_settings import ServerSettings
from release.address import NO_ADDRESS, address, named
from tests.e2e.test_demo import ANSWER, PROXIES
from tests.forks import forks
from tests.nvim.harness import nvim_path

ROOT = Path(__file__).parent.parent
README, HELP = ROOT / "README.md", ROOT / "doc" / "parley.txt"
FORMAT, SHELL, LIBRARY, JSON = (
    ROOT / "doc" / f"{name}.md" for name in ("transcript", "shell", "library", "json")
)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "doc").glob("*.md"))]

_FENCE = re.compile(
    r"^(?P<in> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=in)(?P=ticks)$", re.M | re.S
)


def examples(page: Path, info: str) -> list[str]:
    """A page's fenced blocks with this info string, without their fence's indentation."""
    found = _FENCE.finditer(page.read_text(encoding="utf-8"))
    return [re.sub(rf"^{f['in']}", "", f["body"], flags=re.M) for f in found if f["info"] == info]


def table(page: Path, *columns: str) -> Iterator[list[str]]:
    """The rows of the table with these first columns, as cells."""
    lines = page.read_text(encoding="utf-8").split("\n")
    head = "| " + " | ".join(columns)
    start = next(number for number, line in enumerate(lines) if line.startswith(head)) + 2
    for line in lines[start:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line[1:-1].split("|")]


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


# --- Chats ----------------------------------------------------------------------------------------

CHATS = [example for page in (SHELL, FORMAT) for example in examples(page, "parley")]


@pytest.mark.parametrize("chat", CHATS)
def test_an_example_reads_without_problems_and_round_trips(chat: str) -> None:
    transcript = parse(chat)
    assert transcript.problems == ()
    assert parse(render(transcript)) == transcript
    assert without_blank_lines(render(transcript)) == without_blank_lines(chat)


@pytest.mark.parametrize("chat", examples(FORMAT, "parley problems"))
def test_an_example_with_problems_has_problems_and_round_trips(chat: str) -> None:
    transcript = parse(chat)
    assert len(transcript.problems) == 3
    assert all(problem.severity != "error" for problem in transcript.problems)
    assert parse(render(transcript)) == transcript


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_not_a_chat_itself(page: Path) -> None:
    assert parse(page.read_text(encoding="utf-8")).exchanges == ()


# --- Settings -------------------------------------------------------------------------------------


def lua(value: object) -> str:
    """A default as written in the documents."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case (str(), *_):
            return f"{{ {', '.join(map(lua, value))} }}"
        case _:
            assert not value, f"a default that is neither plain nor empty: {value!r}"
            return "{}"


def is_internal(field: Field[Any]) -> bool:
    """Whether Parley sets a field, and tables cannot set it."""
    return "rule" in field.metadata and bool(field.metadata["rule"].is_internal)


def defaults(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Every setting by its path, with its default."""
    for each in fields(value):
        default = getattr(value, each.name)
        if is_internal(each):
            continue
        if is_dataclass(default):
            yield from defaults(default, f"{path}{each.name}.")
        else:
            yield f"{path}{each.name}", default


def entries(heading: str, ending: str) -> dict[str, str]:
    """The names in backticks, with their defaults, that begin the help's lines between two texts."""
    part = HELP.read_text(encoding="utf-8").split(heading, 1)[1].split(ending, 1)[0]
    return {
        name: default.strip()
        for names, default in re.findall(r"^((?:`[\w.]+`(?:, )?)+)(.*)$", part, re.M)
        for name in re.findall(r"`([\w.]+)`", names)
    }


SETTINGS_OF_HELP = ("Each setting with its default:", "The default `system_prompt`")


def test_the_help_names_every_setting_with_its_default() -> None:
    rows = entries(*SETTINGS_OF_HELP)
    assert rows.pop("system_prompt") == "see below"
    assert rows == {
        name: lua(default) for name, default in defaults(Settings()) if name != "system_prompt"
    }


def test_the_help_begins_with_ten_settings_and_their_defaults() -> None:
    part = _help().split("*parley-ten-settings*", 1)[1].split("|parley-settings|", 1)[0]
    rows = dict(re.findall(r"^  `([\w.]+)` +(see below|\S+)  ", part, re.M))
    all_rows = entries(*SETTINGS_OF_HELP)
    assert len(rows) == 10
    assert rows == {name: all_rows[name] for name in rows}


def test_the_help_quotes_the_system_prompt() -> None:
    quote = _help().split("The default `system_prompt`: >\n\n", 1)[1].split("<\n", 1)[0]
    assert quote.split() == SYSTEM_PROMPT.split()


def test_the_help_names_the_fields_of_a_server_with_their_defaults() -> None:
    rows = entries("Fields of a server, with their defaults:", "More servers")
    known = dict(defaults(ServerSettings("")))
    assert set(rows) == set(known) - {"name", "builtin", "origin"}
    assert all(lua(known[name]) == default for name, default in rows.items() if default)


def test_the_help_names_every_agent_with_its_key_and_address() -> None:
    rest = _help().split("model             key\n", 1)[1]
    lines, after = rest.split("\n\n", 1)
    providers = [PROVIDERS[agent.provider] for agent in AGENTS]
    known = [
        [*filter(None, (a.name, a.provider, a.model, p.api_key_env))]
        for a, p in zip(AGENTS, providers, strict=True)
    ]
    assert [line.split() for line in lines.splitlines()] == known
    addresses = re.findall(r"\b[A-Z]+_BASE_URL", after.split("\n\n", 1)[0])
    assert set(addresses) == {p.base_url_env for p in providers if p.base_url_env}


def test_the_help_names_the_fields_of_a_provider() -> None:
    rows = entries("A provider of your own has these fields", "Parley never writes a key")
    known = {each.name for each in fields(ProviderSettings) if not is_internal(each)}
    assert set(rows) == known - {"name", "base_url_env", "official", "builtin"}


def _help() -> str:
    return HELP.read_text(encoding="utf-8")


def help_examples(language: str) -> list[str]:
    """The help's blocks in one language; "" for blocks without a language."""
    return [
        textwrap.dedent(block)
        for block in re.findall(rf">{language}\n(.*?)^<", _help(), re.M | re.S)
    ]


@pytest.mark.parametrize("example", [e for e in help_examples("") if "[[agents]]" in e])
def test_a_toml_example_is_read_without_complaint(example: str) -> None:
    assert read_settings(tomllib.loads(example))[1] == ()


@pytest.mark.parametrize(
    "example",
    [e for e in examples(README, "lua") + help_examples("lua") if 'require("parley").setup(' in e],
)
def test_a_lua_example_is_read_without_complaint(example: str, tmp_path: Path) -> None:
    script = tmp_path / "example.lua"
    script.write_text(
        "package.loaded.parley = { setup = function(t) io.write(vim.json.encode(t)) end }\n"
        + example,
        encoding="utf-8",
    )
    ran = subprocess.run(
        [nvim_path(), "--clean", "-l", script], capture_output=True, text=True, check=True
    )
    assert read_settings(json.loads(ran.stdout or ran.stderr))[1] == ()


# --- The address ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [*PAGES, HELP], ids=lambda page: page.name)
def test_a_page_names_the_projects_address(page: Path) -> None:
    """`[project.urls]` contains the address; without it, the pages say "this repository"."""
    own = address((ROOT / "pyproject.toml").read_text(encoding="utf-8")) or NO_ADDRESS
    text = page.read_text(encoding="utf-8")
    assert set(named(text)) <= {own}
    assert "URL-OF" not in text


# --- Commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [*PAGES, HELP], ids=lambda page: page.name)
def test_every_named_command_exists(page: Path) -> None:
    defined = re.findall(
        r"^  (\w+) = \{", (ROOT / "plugin" / "parley.lua").read_text(encoding="utf-8"), re.M
    )
    named = re.findall(r":Parley([A-Z]\w*)", page.read_text(encoding="utf-8"))
    assert set(named) <= set(defined)


def test_the_help_names_every_function_of_the_module() -> None:
    defined = re.findall(
        r"^function M\.(\w+)\(", (ROOT / "lua/parley/init.lua").read_text("utf-8"), re.M
    )
    assert sorted(re.findall(r"\*parley\.(\w+)\(\)\*", _help())) == sorted(defined)


def test_the_shell_page_names_every_command_with_its_options() -> None:
    rows = {
        cells[0].split()[1].strip("`"): " ".join(cells)
        for cells in table(SHELL, "command", "what it does")
    }
    commands = parser().commands
    assert sorted(rows) == sorted(commands)
    options = [
        (n, a.option_strings) for n, c in commands.items() for a in c.arguments if a.option_strings
    ]
    assert [
        (name, names) for name, names in options if not any(each in rows[name] for each in names)
    ] == []


def test_the_exit_codes_are_one_table() -> None:
    assert {
        int(code): (kind.strip("`"), meaning)
        for code, kind, meaning in table(SHELL, "exit code", "in JSON")
    } == EXITS
    printed = parser().format_help().partition("exit codes:\n")[2]
    assert max(map(len, printed.splitlines())) < 80
    rows = [f"  {code:<4} {meaning.replace('`', '')}\n" for code, (_, meaning) in EXITS.items()]
    assert re.sub(r"\n {7}", " ", printed) == "".join(rows)


def test_the_page_lists_the_shells_chat_formats() -> None:
    forms = [name.strip("`") for name, _ in table(SHELL, "`--to`", "what `parley export` prints")]
    assert forms == list(EXPORTS)
    formats = [name.strip("`") for name, _ in table(SHELL, "`--from`", "what it is")]
    assert formats == list(IMPORT_FORMATS)


# --- Numbers --------------------------------------------------------------------------------------

NUMBERS = [
    (SHELL, f"their first {servers.RESOURCES_SHOWN} resources"),
    (SHELL, f"lists up to {MOST_OFFERED:,} of them"),
    (SHELL, f"all exchanges but the last {KEEP}"),
    (SHELL, f"The limit is {Bounds().all_bytes // 1_000_000} MB for standard input"),
    (SHELL, f"{MOST_PICTURE_BYTES // 1_000_000} MB for a picture"),
    (LIBRARY, f"{READ_TIMEOUT_S:g} seconds of silence"),
    (HELP, f"the first {tools_page.RESOURCES_LISTED} of their resources"),
]


@pytest.mark.parametrize(("page", "words"), NUMBERS)
def test_a_page_states_the_codes_number(page: Path, words: str) -> None:
    assert words in " ".join(page.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_link_has_a_target(page: Path) -> None:
    links = re.findall(
        r"\]\((?!https?:|#|stocks\.assets/)([^)#]+)", page.read_text(encoding="utf-8")
    )
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment with nothing from the user's."""
    homes = {
        f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CONFIG", "STATE", "DATA", "CACHE")
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **homes,
        "HOME": str(tmp_path),
        "PATH": path,
        "PARLEY_DEMO_PACE": "0",
        "LC_ALL": "C.UTF-8",
    }


def test_the_pages_session_matches_its_commands(tmp_path: Path, shell: dict[str, str]) -> None:
    commands = [line.removeprefix("$ ") for line in examples(SHELL, "console")[0].splitlines()]
    parley = tmp_path / "bin" / "parley"
    parley.parent.mkdir()
    parley.write_text(
        f'#!/bin/sh\nexec {shlex.quote(forks().python)} -m parley "$@"\n', encoding="utf-8"
    )
    parley.chmod(0o755)
    shell["PATH"] = f"{parley.parent}{os.pathsep}{shell['PATH']}"
    ran = [
        subprocess.run(["sh", "-c", c], cwd=tmp_path, env=shell, capture_output=True)
        for c in commands
    ]
    assert [each.returncode for each in ran] == [0, 3, 0, 0]
    assert (tmp_path / "stocks.md").read_text(encoding="utf-8") == examples(SHELL, "parley")[0]


@pytest.mark.parametrize("number", range(len(examples(LIBRARY, "python"))))
def test_a_library_example_prints_the_pages_output(
    number: int, tmp_path: Path, shell: dict[str, str]
) -> None:
    code, output = examples(LIBRARY, "python")[number], examples(LIBRARY, "text")[number]
    ran = subprocess.run(
        [forks().python, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=shell,
        capture_output=True,
        text=True,
    )
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout == output


# --- Messages -------------------------------------------------------------------------------------


def messages_of(folder: Path, *without: Path) -> Iterator[str]:
    """The texts in a folder's code, except docstrings; {} replaces their fields."""
    for path in sorted(folder.rglob("*.py")):
        if not any(map(path.is_relative_to, without)):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            shown = [n for n in ast.walk(tree) if not isinstance(n, ast.Expr)]
            yield from (
                leaf.value
                for node in shown
                for leaf in ast.iter_child_nodes(node)
                if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
            )


def test_the_shell_never_suggests_an_editor_command() -> None:
    package = ROOT / "python" / "parley"
    shared = [
        text
        for text in messages_of(package, package / "nvim", package / "demo")
        if "Neovim" in text or ":Parley" in text
    ]
    assert len(shared) > 20
    assert [
        text for text in map(in_the_shell, shared) if "start Neovim" in text or ":Parley" in text
    ] == []


# --- The README -----------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) < 140


# These are all shell blocks on the page; another block would need its own test.
DEMO, PACKAGES = examples(README, "sh")

# A `git clone` hook: the demo's downloads are already in place.
WITH_ENVIRONMENT = """#!/bin/sh
mkdir .venv && ln -s {prefix}/* .venv && touch .venv/.all
"""


def test_the_readme_commands_run_the_demo_in_any_locale_and_leave_no_files(
    tmp_path: Path, shell: dict[str, str]
) -> None:
    hook, home = tmp_path / "template" / "hooks" / "post-checkout", tmp_path / "home"
    hook.parent.mkdir(parents=True)
    hook.write_text(WITH_ENVIRONMENT.format(prefix=shlex.quote(sys.prefix)), encoding="utf-8")
    hook.chmod(0o755)
    home.mkdir()
    # The search for Neovim and uv may write a log and a cache; the demo must not write any files.
    places = {"XDG_STATE_HOME": shell["XDG_STATE_HOME"], "UV_CACHE_DIR": str(tmp_path / "uv")}
    env = {name: value for name, value in shell.items() if not name.startswith("XDG_")}
    env |= {**PROXIES, **places, "HOME": str(home), "LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}
    env |= {"PATH": with_nvim(shell), "GIT_TEMPLATE_DIR": str(tmp_path / "template")}
    ran = subprocess.run(
        ["sh", "-ec", here(DEMO)],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    chat = ran.stdout.decode()
    assert not parse(chat).problems
    assert chat.count("\n❓:[yA]") == 2
    assert "I have fixed cart.py, and the tests pass." in chat
    assert ANSWER in chat.splitlines()
    assert list(home.iterdir()) == []


def here(script: str) -> str:
    """Commands with this checkout's address."""
    return script.replace("<this repository>", shlex.quote(str(ROOT)))


def with_nvim(shell: dict[str, str]) -> str:
    """A search path with the tests' Neovim."""
    return f"{Path(nvim_path()).parent}{os.pathsep}{shell['PATH']}"


def test_the_readme_commands_install_the_plugin_and_its_help(
    tmp_path: Path, shell: dict[str, str]
) -> None:
    home = {"XDG_DATA_HOME": str(tmp_path / ".local/share"), "PATH": with_nvim(shell)}
    subprocess.run(
        ["sh", "-ec", here(PACKAGES)], env={**shell, **home}, check=True, capture_output=True
    )
    asks = [
        "--headless",
        "+help :ParleyRespond",
        "+verbose echo expand('%:t') exists(':ParleyStop')",
        "+qa!",
    ]
    ran = subprocess.run(
        [nvim_path(), *asks], env={**shell, **home}, capture_output=True, text=True, check=True
    )
    assert ran.stderr.split() == ["parley.txt", "2"]
