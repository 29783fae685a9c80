"""Settings: a flaw is reported by its path, the default replaces it, and everything still starts."""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.bounded_files import MOST_SETTINGS
from parley.chat.options import CallLimits, ThinkingSettings
from parley.models.quirks import COMPATIBLE
from parley.models.text_tools.template import builtin_templates, load_templates
from parley.paths import config_path
from parley.policy.rules import Pattern
from parley.settings.load import SettingsFile, load_settings, merged
from parley.settings.read import read_settings
from parley.settings.values import (
    AGENTS,
    PROVIDERS,
    Agent,
    ChoiceKeys,
    Key,
    Settings,
    WorkspaceSettings,
)
from parley.tools.server_settings import ServerSettings

NO_EXPRESSION = 'expected a regular expression (nothing to repeat at position 0), got "*"'
PROJECT_OR_BOOL = 'expected "project", true or false'
WRONG: list[tuple[Any, str]] = [
    (
        {"thinking": {"budget_tokens": "many"}},
        'thinking.budget_tokens: expected an integer ≥ 1024, got "many"',
    ),
    (
        {"thinking": {"budget_tokens": 1023}},
        "thinking.budget_tokens: expected an integer ≥ 1024, got 1023",
    ),
    (
        {"thinking": {"budget_tokens": 2000.5}},
        "thinking.budget_tokens: expected an integer ≥ 1024, got 2000.5",
    ),
    (
        {"thinking": {"budget_tokens": True}},
        "thinking.budget_tokens: expected an integer ≥ 1024, got true",
    ),
    (
        {"thinking": 7},
        (
            "thinking: expected true, false or a table of enabled, budget_tokens, effort and show, "
            "got 7"
        ),
    ),
    ({"thinking": {"enabled": "yes"}}, 'thinking.enabled: expected true or false, got "yes"'),
    ({"loop": {"max_iterations": 0}}, "loop.max_iterations: expected an integer ≥ 1, got 0"),
    (
        {"loop": {"max_consecutive_errors": 0}},
        "loop.max_consecutive_errors: expected an integer ≥ 1, got 0",
    ),
    ({"loop": {"timeout_s": -1}}, "loop.timeout_s: expected a number ≥ 0, got -1"),
    ({"loop": {"timeout_s": float("inf")}}, "loop.timeout_s: expected a number ≥ 0, got inf"),
    ({"loop": {"timeout_s": float("nan")}}, "loop.timeout_s: expected a number ≥ 0, got nan"),
    ({"loop": [1]}, "loop: expected a table, got [1]"),
    ({"lop": {}}, "lop: there is no such setting; did you mean loop?"),
    ({"loop": {"paralel": True}}, "loop.paralel: there is no such setting; did you mean parallel?"),
    (
        {"max_tool_calls": -1},
        "max_tool_calls: expected an integer ≥ 0 or a table of per_message and per_session, got -1",
    ),
    (
        {"max_tool_calls": "3"},
        (
            "max_tool_calls: expected an integer ≥ 0 or a table of per_message and per_session, "
            "got "
            '"3"'
        ),
    ),
    (
        {"approval": {"auto": [3]}},
        "approval.auto[1]: expected a text or a table of tool and args, got 3",
    ),
    (
        {"max_tool_calls": {"per_message": "3"}},
        'max_tool_calls.per_message: expected an integer ≥ 0, got "3"',
    ),
    (
        {"keys": {"scope": "leter"}},
        'keys.scope: expected "letter" or "case", got "leter"; did you mean letter?',
    ),
    (
        {"keys": {"choices": "yes"}},
        (
            "keys.choices: expected true, false or a table of enabled, ya, yA, yo, yO, yn and yN, "
            'got "yes"'
        ),
    ),
    ({"keys": {"choices": {"ya": 5}}}, "keys.choices.ya: expected a key or false, got 5"),
    ({"keys": {"choices": {"yes": "y"}}}, "keys.choices.yes: there is no such setting"),
    ({"agents": {"name": "x"}}, "agents: expected a list of tables, got {'name': 'x'}"),
    ({"agents": [3]}, "agents[1]: expected a table, got 3"),
    (
        {"agents": [{"name": "a]b", "provider": "demo", "model": "m"}]},
        'agents[1].name: expected a one-line name without ], got "a]b"',
    ),
    (
        {"agents": [{"name": "A", "provider": "antropic", "model": "m"}]},
        (
            'agents[1].provider: expected the name of a provider, got "antropic"; did you mean '
            "anthropic?"
        ),
    ),
    (
        {
            "agents": [
                {"name": "A", "provider": "demo", "model": "m", "thinking": {"budget_tokens": 5}}
            ]
        },
        "agents[1].thinking.budget_tokens: expected an integer ≥ 1024, got 5",
    ),
    (
        {"agents": [{"name": "A", "provider": "demo"}]},
        'agents[1].model: expected the name of a model, got ""',
    ),
    ({"agent": "Claud"}, 'agent: expected the name of an agent, got "Claud"; did you mean Claude?'),
    (
        {"mcp": {"servers": {"s": {"args": "x"}}}},
        'mcp.servers.s.args: expected a list of texts, got "x"',
    ),
    (
        {"mcp": {"servers": {"s": {"args": ["a", 2]}}}},
        "mcp.servers.s.args[2]: expected a text, got 2",
    ),
    (
        {"mcp": {"servers": {"s": {"env": {"A": 1}}}}},
        "mcp.servers.s.env.A: expected a text, got a number",
    ),
    ({"approval": {"auto": [{"args": {}}]}}, "approval.auto[1].tool: is missing"),
    ({"approval": {"deny": [{"tool": 1}]}}, "approval.deny[1].tool: expected a text, got 1"),
    ({"mcp": {"servers": {"s": 1}}}, "mcp.servers.s: expected a table, got 1"),
    ({"mcp": {"servers": [1]}}, "mcp.servers: expected a table, got [1]"),
    ({"system_prompt": "x\ny" * 99, "zebra": 1}, "zebra: there is no such setting"),
    (
        {"instructions": ["AGENTS.md", "../up.md"]},
        'instructions[2]: expected a file name without .., got "../up.md"',
    ),
    ({"chat_dir": ["a\nb"]}, "chat_dir: expected a text, got ['a\\nb']"),
    ({"loop": "a\nb"}, 'loop: expected a table, got "a\\nb"'),
    (
        {"safety": {"blocked_tool_patterns": ["rm", "/*/"]}},
        f"safety.blocked_tool_patterns[2]: {NO_EXPRESSION}",
    ),
    (
        {"approval": {"deny": [{"tool": "*", "args": {"path": "*"}}]}},
        f"approval.deny[1].args.path: {NO_EXPRESSION}",
    ),
    (
        {"providers": {"p": {"api_key_command": "sk-secret"}}},
        "providers.p.api_key_command: expected a list of texts, got a text",
    ),
    ([1], "setup: expected a table, got [1]"),
    ("x", 'setup: expected a table, got "x"'),
    (
        {"workspace": {"enabled": "projekt"}},
        f'workspace.enabled: {PROJECT_OR_BOOL}, got "projekt"; did you mean project?',
    ),
    (
        {"workspace": {"enabled": 1}},
        f"workspace.enabled: {PROJECT_OR_BOOL}, got 1",
    ),
]


@pytest.mark.parametrize(("table", "problem"), WRONG, ids=[problem for _, problem in WRONG])
def test_a_wrong_value_is_reported_by_its_path(table: Any, problem: str) -> None:
    _, problems = read_settings(table)
    assert problems == (f"parley: {problem}",)


names = st.sampled_from(
    [
        "thinking",
        "loop",
        "mcp",
        "servers",
        "agents",
        "providers",
        "approval",
        "auto",
        "keys",
        "max_tool_calls",
    ]
)
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(names | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_like, json_like)
def test_no_table_stops_anything_and_each_problem_is_one_line(below: Any, above: Any) -> None:
    tables = isinstance(below, dict) and isinstance(above, dict)
    for table in (above, merged(below, above) if tables else below):
        settings, problems = read_settings(table)
        assert isinstance(settings, Settings)
        assert all(line.startswith("parley: ") and "\n" not in line for line in problems)


def read(table: Any) -> Settings:
    settings, problems = read_settings(table)
    assert problems == ()
    return settings


@pytest.mark.parametrize("empty", [{}, [], ()])
def test_an_empty_lua_table_is_a_table_and_a_list(empty: Any) -> None:
    assert read(empty) == Settings()
    tables = [
        "loop",
        "mcp",
        "thinking",
        "approval",
        "keys",
        "providers",
        "agents",
        "max_tool_calls",
    ]
    assert read(dict.fromkeys(tables, empty)) == Settings()
    inside = {
        "safety": {"blocked_tool_patterns": empty},
        "mcp": {"servers": empty},
        "approval": {"auto": empty},
    }
    assert read(inside) == Settings()


def test_lua_numbers_may_be_integers(tmp_path: Path) -> None:
    assert read({"loop": {"max_iterations": 3.0, "timeout_s": 5}}).loop.max_iterations == 3


def test_each_short_spelling_is_read() -> None:
    assert read({"max_tool_calls": 3}).max_tool_calls == CallLimits(per_message=3)
    assert read({"max_tool_calls": 0}).max_tool_calls == CallLimits(per_message=0)
    both = {"max_tool_calls": {"per_message": 3, "per_session": 9}}
    assert read(both).max_tool_calls == CallLimits(3, 9)
    assert read({"thinking": False}).thinking == ThinkingSettings(enabled=False)
    assert read({"workspace": False}).workspace == WorkspaceSettings(enabled=False)
    assert read({"workspace": "project"}).workspace == WorkspaceSettings()
    mixed = {"approval": {"auto": ["a/*", {"tool": "b", "args": {"x": "y"}}]}}
    assert read(mixed).approval.auto == (Pattern("a/*"), Pattern("b", {"x": "y"}))


@pytest.mark.parametrize(
    "slip", [{"args": {"path": 5}}, {"arg": {"path": "/home/.*"}}, {"args": "/home/.*"}]
)
def test_a_rule_with_a_mistake_allows_nothing_and_forbids_everything_that_it_names(
    slip: Any,
) -> None:
    rule = {"tool": "fs/*", **slip}
    settings, problems = read_settings({"approval": {"auto": [rule, "a/b"], "deny": [rule]}})
    assert settings.approval.auto == (Pattern("a/b"),)
    assert settings.approval.deny == (Pattern("fs/*"),)
    assert len(problems) == 2


@pytest.mark.parametrize(
    "approval", [{"ask": [5, "a/*"]}, {"ask": "a/*"}, {"ask": [{"args": {}}]}, "ask"]
)
def test_with_an_unreadable_rule_to_ask_parley_asks_about_every_call(approval: Any) -> None:
    settings, problems = read_settings({"approval": approval})
    assert settings.approval.ask[-1] == Pattern("*")
    assert len(problems) == 1


def test_with_readable_rules_parley_asks_only_about_their_calls() -> None:
    rules = ["a/*", {"tool": "b", "args": {"x": "("}}]
    settings, problems = read_settings({"approval": {"ask": rules}})
    assert settings.approval.ask == (Pattern("a/*"), Pattern("b", {"x": "("}))
    assert len(problems) == 1, "the expression, which covers any value"
    others, _ = read_settings({"approval": {"deny": [5]}})
    assert others.approval.ask == ()


def test_a_value_named_by_its_key_knows_its_name() -> None:
    settings = read(
        {"mcp": {"servers": {"s": {"command": "c"}}}, "providers": {"p": {"kind": "openai"}}}
    )
    assert settings.mcp.servers == {"s": ServerSettings("s", "c")}
    provider = settings.provider("p")
    assert provider
    assert provider.name == "p"


def test_a_wrong_value_leaves_the_others_unchanged() -> None:
    settings, problems = read_settings({"loop": {"max_iterations": "x", "parallel": False}})
    assert (settings.loop.max_iterations, settings.loop.parallel, len(problems)) == (10, False, 1)


def test_a_users_agent_replaces_the_built_in_one_with_its_name() -> None:
    settings = read({"agents": [{"name": "Claude", "provider": "demo", "model": "m"}]})
    assert settings.named_agent("Claude") == Agent("Claude", "demo", "m")
    assert len(settings.all_agents()) == len(AGENTS)


def test_without_a_key_the_demo_answers() -> None:
    assert Settings().default_agent({}).name == "Demo"
    assert Settings().default_agent({"OPENAI_API_KEY": "x"}).name == "ChatGPT"
    assert Settings(agent="Gemini").default_agent({"OPENAI_API_KEY": "x"}).name == "Gemini"


DEFAULTS = Settings()


def test_a_missing_keys_variable_is_known() -> None:
    def missing(name: str, settings: Settings = DEFAULTS, **environ: str) -> str:
        agent = settings.named_agent(name)
        assert agent
        return settings.missing_key(agent, environ)

    assert missing("Claude") == "ANTHROPIC_API_KEY"
    assert missing("Claude", ANTHROPIC_API_KEY="x") == ""
    assert (missing("Ollama"), missing("Demo")) == ("", "")
    printed = read({"providers": {"openai": {"api_key_command": ["pass", "openai"]}}})
    assert missing("ChatGPT", printed) == ""


# --- The file -------------------------------------------------------------------------------------


def environ(tmp_path: Path, text: str | bytes | None) -> dict[str, str]:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    path = config_path(home)
    path.parent.mkdir()
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return home


def test_the_settings_path_follows_the_environment() -> None:
    assert config_path({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == Path("/c/parley/config.toml")
    assert config_path({"HOME": "/h"}) == Path("/h/.config/parley/config.toml")


def test_setup_overrides_the_file_key_by_key(tmp_path: Path) -> None:
    text = """
        system_prompt = "file"
        max_tool_calls = 7
        [loop]
        max_iterations = 3
        timeout_s = 9
        [mcp.servers.one]
        command = "one"
        [[agents]]
        name = "File"
        provider = "demo"
        model = "m"
    """
    setup = {
        "loop": {"max_iterations": 4},
        "mcp": {"servers": {"two": {"command": "two"}}},
        "max_tool_calls": {"per_session": 2},
        "thinking": [],
        "keys": {},
    }
    settings, problems = load_settings(environ(tmp_path, text), setup)
    assert problems == ()
    assert (settings.system_prompt, settings.loop.max_iterations, settings.loop.timeout_s) == (
        "file",
        4,
        9.0,
    )
    assert list(settings.mcp.servers) == ["one", "two"]
    assert settings.max_tool_calls == CallLimits(per_session=2)
    assert [agent.name for agent in settings.agents] == ["File"]


@pytest.mark.parametrize("setup", [None, {}, [], {"loop": []}, {"loop": {}}])
def test_empty_lua_tables_remove_nothing_from_the_file(tmp_path: Path, setup: Any) -> None:
    settings, problems = load_settings(environ(tmp_path, "[loop]\nmax_iterations = 3\n"), setup)
    assert (settings.loop.max_iterations, problems) == (3, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[loop\n", "config.toml: Expected"),
        (b"\xff", "config.toml: 'utf-8' codec"),
        ("x = " + "[" * 100_000, "config.toml: "),
        ("[loop]\nmax_iterations = 'x'\n", 'loop.max_iterations: expected an integer ≥ 1, got "x"'),
        ("agent = 1979-05-27\n", "agent: expected a text, got datetime.date(1979, 5, 27)"),
    ],
)
def test_a_broken_file_is_reported_and_setup_still_applies(
    tmp_path: Path, text: str | bytes, problem: str
) -> None:
    settings, problems = load_settings(environ(tmp_path, text), {"loop": {"parallel": False}})
    assert settings.loop.parallel is False
    assert len(problems) == 1
    assert problem in problems[0]


PLACED = """\
# what I like
agent = "Dmeo"
approval.auto = [
  "a/b",
  5,
]

[loop]
timeout_s = 5
paralel = true

[mcp.servers."dot.ted"]
command = 5

[[agents]]
name = "One"
provider = "demo"
model = "m"

[[agents]]
name = "Two"
provider = "demo"
"""


def test_a_flaw_is_reported_with_its_line(tmp_path: Path) -> None:
    setup = {"nonsense": 1, "loop": {"max_iterations": 0}, "max_tool_calls": "x"}
    _, problems = load_settings(environ(tmp_path, PLACED), setup)
    assert [
        problem.removeprefix("parley: ").partition(": expected")[0] for problem in problems
    ] == [
        "config.toml:3: approval.auto[2]",
        "config.toml:10: loop.paralel: there is no such setting; did you mean parallel?",
        "setup: loop.max_iterations",
        "config.toml:13: mcp.servers.dot.ted.command",
        "setup: nonsense: there is no such setting",
        "setup: max_tool_calls",
        "config.toml:20: agents[2].model",
        "config.toml:2: agent",
    ]


@pytest.mark.parametrize(("items", "line"), [(200, ":205"), (1_500, "")])
def test_the_search_for_a_line_below_a_long_list_is_bounded(
    tmp_path: Path, items: int, line: str
) -> None:
    text = "approval.auto = [\n" + '  "server/some_tool",\n' * items + "]\n\n\nnonsense = 1\n"
    file = SettingsFile(tmp_path / "config.toml", text, tomllib.loads(text))
    read, before = list[int](), sys.getprofile()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is tomllib.loads.__code__:
            read.append(len(next(iter(frame.f_locals.values()))))

    sys.setprofile(profile)
    try:
        place = file.place("nonsense")
    finally:
        sys.setprofile(before)
    assert place == f"config.toml{line}"
    assert 0 < sum(read) < 2_000_000


def test_a_wrong_setting_in_both_is_reported_for_the_effective_one(tmp_path: Path) -> None:
    _, problems = load_settings(environ(tmp_path, "tool_mode = 'x'\n"), {"tool_mode": "y"})
    assert [problem.split(": ")[1] for problem in problems] == ["setup"]


def test_a_file_too_long_to_search_is_named_without_a_line(tmp_path: Path) -> None:
    text = "#" * 70_000 + "\nnonsense = 1\n"
    _, problems = load_settings(environ(tmp_path, text), None)
    assert problems == ("parley: config.toml: nonsense: there is no such setting",)


def test_a_folder_instead_of_the_file_is_reported_and_a_missing_file_is_accepted(
    tmp_path: Path,
) -> None:
    home = environ(tmp_path, None)
    assert load_settings(home) == (Settings(), ())
    config_path(home).mkdir()
    _, (problem,) = load_settings(home)
    assert "Is a directory" in problem


def test_a_setup_that_is_not_a_table_is_reported(tmp_path: Path) -> None:
    settings, problems = load_settings(environ(tmp_path, None), "x")
    assert (settings, problems) == (Settings(), ('parley: setup: expected a table, got "x"',))


def test_the_built_in_servers_names_are_reserved() -> None:
    entry = {"command": "x"}
    settings, problems = read_settings(
        {"mcp": {"servers": {"workspace": entry, "mock": entry, "s": {"command": "c"}}}}
    )
    assert settings.mcp.servers == {"s": ServerSettings("s", "c")}
    assert problems == tuple(
        f"parley: mcp.servers.{name}: this name is reserved for a built-in server"
        for name in ("mock", "workspace")
    )


def test_the_settings_have_precedence_over_a_server_file(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text('{"mcpServers": {"s": {"command": "other"}, "t": {"command": "t"}, "u": {}}}')
    setup = {"mcp": {"servers": {"s": {"command": "c"}}, "config_file": str(path)}}
    settings, problems = load_settings({"HOME": str(tmp_path)}, setup)
    assert settings.mcp.servers == {"t": ServerSettings("t", "t"), "s": ServerSettings("s", "c")}
    assert problems == (f"parley: {path}: mcpServers.u: needs a command or a url",)


@pytest.mark.parametrize("name", ["none.json", ".", "a\0b", "~nobody-of-this-name/x"])
def test_an_unreadable_server_file_is_a_problem(tmp_path: Path, name: str) -> None:
    path = name if name.startswith("~") else str(tmp_path / name)
    settings, problems = load_settings({"HOME": str(tmp_path)}, {"mcp": {"config_file": path}})
    assert settings == Settings(mcp=settings.mcp)
    assert len(problems) == 1
    assert problems[0].startswith("parley: mcp.config_file: ")


def test_an_impossible_agent_is_dropped() -> None:
    settings, problems = read_settings(
        {"agents": [{"provider": "openai"}, {"name": "A", "model": "m"}]}
    )
    assert settings.agents == ()
    assert len(problems) == 3


@pytest.mark.parametrize(
    ("choices", "keys"),
    [
        (True, ChoiceKeys()),
        (False, ChoiceKeys(enabled=False)),
        ({}, ChoiceKeys()),
        ([], ChoiceKeys()),
        ({"ya": "<leader>a", "yN": False}, ChoiceKeys(ya=Key("<leader>a"), yN=Key(""))),
        ({"enabled": False, "yo": ""}, ChoiceKeys(enabled=False, yo=Key(""))),
    ],
)
def test_choices_can_be_disabled_or_have_other_keys(choices: object, keys: ChoiceKeys) -> None:
    settings, problems = read_settings({"keys": {"choices": choices}})
    assert (settings.keys.choices, problems) == (keys, ())


def test_false_disables_a_key() -> None:
    settings, problems = read_settings({"keys": {"respond": False, "stop": 5}})
    assert (settings.keys.respond, settings.keys.stop) == ("", "<C-g>x")
    assert problems == ("parley: keys.stop: expected a key or false, got 5",)


HUGE = "0x" + "f" * 5000
DEEP = "[" * 5000 + "]" * 5000
HOSTILE = [
    f"a = {DEEP}",
    "a = " + "{a = " * 3000 + "1" + "}" * 3000,
    f"agent = {HUGE}",
    f"agents = [{HUGE}]",
    f"loop.timeout_s = {HUGE}",
    f"loop.max_iterations = {HUGE}",
    f"thinking.budget_tokens = {HUGE}",
    f"keys.scope = {HUGE}",
    f"mcp.servers = {HUGE}",
    f"mcp.servers.x.command = {HUGE}",
    f"approval.auto = [{{tool = 'a', args = {{path = {HUGE}}}}}]",
    "prompt_tools.templates = '~nobody_of_that_name/x'",
    "mcp.config_file = '~nobody_of_that_name/x'",
    'prompt_tools.templates = "\\u0000"',
    'mcp.config_file = "\\u0000"',
    "agent = 1979-05-27",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_settings_file_is_reported_on_a_line_and_stops_nothing(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / "parley").mkdir()
    (tmp_path / "parley" / "config.toml").write_text(text, encoding="utf-8")
    settings, problems = load_settings({"XDG_CONFIG_HOME": str(tmp_path)})
    assert problems
    assert all(
        problem.startswith("parley: ") and len(problem.splitlines()) == 1 for problem in problems
    )
    assert (settings.loop, settings.thinking, settings.agents) == (
        Settings().loop,
        ThinkingSettings(),
        (),
    )


@pytest.mark.parametrize("text", [f"models = {DEEP}", f"style = {HUGE}", f"json = {HUGE}", "\0"])
def test_a_hostile_template_is_reported_on_a_line_and_stops_nothing(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / "x.toml").write_text(text, encoding="utf-8")
    templates, problems = load_templates(str(tmp_path))
    assert templates == builtin_templates()
    assert [problem.split(": ")[1] for problem in problems] == ["prompt_tools.templates"]


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
@pytest.mark.parametrize("place", ["config.toml", "mcp.config_file", "prompt_tools.templates"])
def test_an_endless_file_instead_of_a_settings_file_is_a_problem(
    tmp_path: Path, place: str, kind: str
) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    config, folder = config_path(environ), tmp_path / "parley" / "own"
    folder.mkdir(parents=True)
    path = config if place == "config.toml" else folder / "file.toml"
    match kind:
        case "a pipe":
            os.mkfifo(path)
        case "a device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    setting = {
        "config.toml": "",
        "mcp.config_file": '[mcp]\nconfig_file = "own/file.toml"\n',
        "prompt_tools.templates": '[prompt_tools]\ntemplates = "own"\n',
    }[place]
    if setting:
        config.write_text(setting, encoding="utf-8")
    _, problems = load_settings(environ)
    why = "Is a directory" if kind == "a folder" else "it is a pipe or a device, not a file"
    assert [problem.endswith(f"{path.name}: {why}") for problem in problems] == [True], problems


@pytest.mark.parametrize("place", ["config.toml", "mcp.config_file"])
def test_an_endless_settings_file_is_not_read(tmp_path: Path, place: str) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    config = config_path(environ)
    config.parent.mkdir()
    config.write_text('[mcp]\nconfig_file = "large.json"\n', encoding="utf-8")
    path = config if place == "config.toml" else config.parent / "large.json"
    with path.open("wb") as file:
        file.truncate(MOST_SETTINGS + 1)
    _, problems = load_settings(environ)
    assert [
        problem.endswith(f"it is larger than {MOST_SETTINGS} bytes") for problem in problems
    ] == [True]


@pytest.mark.parametrize(
    ("name", "entry", "quirks"),
    [
        ("gemini", {"base_url": "https://proxy.example/v1"}, (*COMPATIBLE, "thought_signatures")),
        ("gemini", {"quirks": ["max_tokens"]}, ("max_tokens",)),
        ("openai", {"api_key_command": ["pass", "key"]}, ()),
        ("openai", {"base_url": "https://gateway.example/v1"}, COMPATIBLE),
        ("lab", {}, COMPATIBLE),
    ],
)
def test_a_provider_that_replaces_a_built_in_one_has_its_quirks(
    name: str, entry: dict[str, object], quirks: tuple[str, ...]
) -> None:
    settings, problems = read_settings({"providers": {name: entry}})
    assert problems == ()
    assert settings.providers[name].quirks == quirks


def test_an_entry_without_an_address_changes_only_what_it_sets_of_a_built_in_provider() -> None:
    entry = {"headers": {"x-team": "a"}}
    settings, problems = read_settings({"providers": {"anthropic": entry, "openai": entry}})
    assert problems == ()
    for name in ("anthropic", "openai"):
        assert settings.providers[name] == replace(PROVIDERS[name], headers=entry["headers"])


def test_an_entry_with_an_address_receives_no_key_of_a_built_in_provider() -> None:
    entry = {"base_url": "https://gateway.example/v1"}
    settings, _ = read_settings({"providers": dict.fromkeys(PROVIDERS, entry)})
    assert all(provider.api_key_env is None for provider in settings.providers.values())


def test_a_server_from_an_empty_lua_table_knows_its_name() -> None:
    settings, problems = read_settings({"mcp": {"servers": {"dull": []}}})
    assert (settings.mcp.servers["dull"].name, problems) == ("dull", ())


def provider_table(**entries: Any) -> dict[str, Any]:
    return {"providers": {"lab": {"base_url": "http://127.0.0.1", **entries}}}


SECRET = "s3cret-value-of-a-gateway"
BAD_HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"headers": {"a b": SECRET}}, "headers.a b: expected letters, digits and hyphens"),
    ({"headers": {"": SECRET}}, "headers.: expected letters, digits and hyphens"),
    ({"headers": {"x-a": f"{SECRET}\r\nx-b: 1"}}, "headers.x-a: expected one line of ASCII"),
    ({"headers": {"x-a": f" {SECRET}"}}, "headers.x-a: expected one line of ASCII"),
    ({"headers": {"Host": SECRET}}, "headers.Host: Parley sets this header itself"),
    ({"headers": {"x-a": 7}}, "headers.x-a: expected a text, got a number"),
    (
        {"headers": {"Authorization": SECRET}, "api_key_env": "LAB_KEY"},
        "headers.Authorization: it would replace the key that api_key_env or api_key_command",
    ),
    ({"headers": [SECRET]}, "headers: expected a table of texts, got a list"),
]


@pytest.mark.parametrize(("entries", "problem"), BAD_HEADERS)
def test_an_impossible_header_is_dropped_and_its_value_never_shown(
    entries: dict[str, Any], problem: str
) -> None:
    settings, problems = read_settings(provider_table(**entries))
    (line,) = problems
    assert line.startswith(f"parley: providers.lab.{problem}")
    assert SECRET not in line
    assert settings.providers["lab"].headers == {}


def test_two_spellings_of_a_header_are_one_header() -> None:
    settings, problems = read_settings(provider_table(headers={"X-A": "1", "x-a": "2"}))
    assert problems == ("parley: providers.lab.headers.x-a: this header is already set as X-A",)
    assert settings.providers["lab"].headers == {"X-A": "1"}


def test_without_a_key_a_header_may_be_the_key() -> None:
    table = provider_table(headers={"Authorization": "Bearer ${LAB_TOKEN}"})
    table |= {"agents": [{"name": "A", "provider": "lab", "model": "m"}]}
    settings, problems = read_settings(table)
    agent = settings.agents[0]
    assert problems == ()
    assert settings.missing_key(agent, {}) == "LAB_TOKEN"
    assert settings.missing_key(agent, {"LAB_TOKEN": "t"}) == ""
    assert settings.default_agent({"LAB_TOKEN": "t"}) == agent
    assert settings.default_agent({}).name == "Demo"


def test_parameters_are_any_json() -> None:
    parameters = {"a": [1, -2.5, None, {"b": True}], "c": {}, "d": "x", "e": -1}
    settings, problems = read_settings(
        provider_table(parameters=parameters)
        | {"agents": [{"name": "A", "provider": "lab", "model": "m", "parameters": parameters}]}
    )
    assert problems == ()
    assert settings.providers["lab"].parameters == settings.agents[0].parameters == parameters
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    for value in (
        tomllib.loads("a = 1999-12-31")["a"],
        float("nan"),
        10**30,
        deep,
        {"x": object()},
    ):
        settings, problems = read_settings(provider_table(parameters={"a": value, "b": 1}))
        assert [line.split(", got")[0] for line in problems] == [
            "parley: providers.lab.parameters.a: expected a JSON value"
        ]
        assert settings.providers["lab"].parameters == {"b": 1}
