"""Front matter contains only data. Each key is checked, even in a hostile file."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from parley.chat.front_matter import KEYS, FrontMatter, _known, read_front_matter, trouble
from parley.chat.reader import parse
from parley.chat.transcript import Problem
from tests.examples import examples
from tests.strategies import yaml_texts

ALL = """\
topic: Stocks
agent: Demo
provider: demo
model: m
system_prompt: Be brief.
system_prompt+: And kind.
temperature: 0.5
max_tokens: 100
thinking: false
tool_mode: json
mode: plan
web_search: true
tools: [web_*]
instructions: [AGENTS.md]
max_tool_calls: {per_message: 3, per_session: 9}
max_full_exchanges: 2
tags: [a, b]
forked_from: stocks.md"""


def test_every_key_is_read() -> None:
    read = read_front_matter(ALL)
    assert read.problems == ()
    assert set(read.keys) == set(KEYS)
    assert read.keys["max_tool_calls"] == {"per_message": 3, "per_session": 9}


@pytest.mark.parametrize("raw", [None, "", " \n\n", "# only a comment"])
def test_empty_front_matter_has_no_keys_and_no_problems(raw: str | None) -> None:
    assert read_front_matter(raw) == FrontMatter({})


WRONG = {
    "topic: 3": Problem(1, 0, "warning", "front matter topic: expected a text, got 3"),
    "\ntemperature: hot": Problem(
        2, 0, "warning", 'front matter temperature: expected a number ≥ 0, got "hot"'
    ),
    "temperature: .nan": Problem(
        1, 0, "warning", "front matter temperature: expected a number ≥ 0, got nan"
    ),
    "temperature: .inf": Problem(
        1, 0, "warning", "front matter temperature: expected a number ≥ 0, got inf"
    ),
    "temperature: true": Problem(
        1, 0, "warning", "front matter temperature: expected a number ≥ 0, got true"
    ),
    "max_tokens: true": Problem(
        1, 0, "warning", "front matter max_tokens: expected an integer ≥ 0, got true"
    ),
    "max_tool_calls: -1": Problem(
        1,
        0,
        "error",
        "front matter max_tool_calls: expected an integer ≥ 0 or a table of per_message and "
        "per_session, "
        "got -1",
    ),
    "tools: web": Problem(
        1, 0, "error", 'front matter tools: expected a list of tool names or globs, got "web"'
    ),
    "tool_mode: ['on']": Problem(
        1,
        0,
        "warning",
        'front matter tool_mode: expected "auto", "native", "json", "xml" or "off", got [\'on\']',
    ),
    **{
        f"thinking: {table}": Problem(1, 0, "warning", f"front matter thinking{message}")
        for table, message in {
            "7": (
                ": expected true, false or a table of enabled, budget_tokens, effort and show, "
                "got 7"
            ),
            "null": (
                ": expected true, false or a table of enabled, budget_tokens, effort and "
                "show, got null"
            ),
            "{budget_tokens: 1023}": ".budget_tokens: expected an integer ≥ 1024, got 1023",
            "{budget_tokens: null}": ".budget_tokens: expected an integer ≥ 1024, got null",
            "{enabled: 1}": ".enabled: expected true or false, got 1",
            "{effort: hihg}": '.effort: expected "none", "minimal", "low", "medium", "high", '
            '"xhigh" '
            'or "max", got "hihg"; did you mean high?',
            "{show: [a]}": ".show: expected true or false, got ['a']",
            "{depth: 3}": ".depth: unknown key",
        }.items()
    },
    **{
        f"max_tool_calls: {table}": Problem(1, 0, "error", f"front matter max_tool_calls{message}")
        for table, message in {
            "[]": ": expected an integer ≥ 0 or a table of per_message and per_session, got []",
            "{per_message: null}": ".per_message: expected an integer ≥ 0, got null",
            "{per_mesage: 3}": ".per_mesage: unknown key; did you mean per_message?",
        }.items()
    },
    "topik: x": Problem(1, 0, "hint", "front matter topik: unknown key; did you mean topic?"),
    "3: x": Problem(1, 0, "hint", "front matter 3: unknown key"),
    "- a": Problem(1, 0, "error", "front matter: expected keys with values"),
    "just text": Problem(1, 0, "error", "front matter: expected keys with values"),
    "a: b\nc: [": Problem(
        3,
        0,
        "error",
        "front matter is not valid YAML: expected the node content, but found '<stream end>'",
    ),
}


@pytest.mark.parametrize("raw", WRONG)
def test_a_flaw_is_reported_with_its_line(raw: str) -> None:
    read = read_front_matter(raw)
    assert read.keys == {}
    (problem,) = read.problems
    assert (problem.severity, problem.message) == (WRONG[raw].severity, WRONG[raw].message)
    assert abs(problem.line - WRONG[raw].line) <= 1


def test_a_wrong_key_does_not_affect_the_others() -> None:
    assert read_front_matter("topic: x\nmax_tokens: y").keys == {"topic": "x"}


FORBIDDEN = [
    "api_key: x",
    "base_url: x",
    "approval: {auto: ['*']}",
    "safety: {}",
    "mcp: {}",
    "trusted: true",
]


@pytest.mark.parametrize("raw", FORBIDDEN)
def test_a_file_cannot_set_keys_endpoints_approvals_or_servers(raw: str) -> None:
    read = read_front_matter(raw)
    assert read.keys == {}
    assert [p.severity for p in read.problems] == ["hint"]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
HOSTILE = [
    "topic: !!python/object/apply:os.system ['true']",
    "!!python/object/new:type {}",
    BOMB + "topic: *j",
    "topic: &t [*t]",
    "&k [a]: 1",
    "? [a, b]\n: 1",
    "? {a: b}\n: 1",
    "2024-13-45: x",
    "topic: 2024-13-45",
    "max_tokens: " + "9" * 5000,
    "[" * 5000,
    "? " * 3000,
    "topic: \x01",
    "<<: *nothing",
    "? |\n" + "  long key\n" * 5000 + ": 1",
    "%YAML 9.9\n---\ntopic: x",
    "topic: a\n---\ntopic: b",
    *[
        f"topic: {value}"
        for value in ("!!bool maybe", "!!int ''", "!!int -", "!!float ''", "!!timestamp foo")
    ],
    *[
        "topic: 2001-99-99 99:99:99",
        "topic: !!binary é",
        "topic: !!set x",
        "topic: !!omap x",
        "topic: !!merge x",
    ],
    *["!!int : 1", "!!bool x: 1", "? !!set {a}\n: 1", "<<: 3", "<<: [3]", "topic: =", "topic: 0b_"],
    *[
        "max_tokens: " + "1:" * 2500 + "1",
        "temperature: " + "1:" * 400 + "1.5",
        "max_tokens: 0x" + "f" * 5000,
    ],
    *["1:" * 2500 + "1: 1", "0x" + "f" * 5000 + ": 1", "topic: \ud800"],
]


@pytest.mark.parametrize("raw", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_file_is_reported_and_does_no_harm(raw: str) -> None:
    read = read_front_matter(raw)
    assert "topic" not in read.keys
    assert read.problems
    check(read)


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        ("topic: x\n\nmax_tokens: !!int ''", 4, "front matter is not valid YAML: invalid int"),
        ("topic: x\ntemperature: !!bool maybe", 3, "front matter is not valid YAML: invalid bool"),
        (
            "topic: x\ntags:\n- !!timestamp foo",
            4,
            "front matter is not valid YAML: invalid timestamp",
        ),
        (
            "topic: x\ntags: 0x" + "f" * 99,
            3,
            "front matter is not valid YAML: this number is too large",
        ),
        (
            "topic: x\ntags: \x01",
            3,
            "front matter is not valid YAML: special characters are not allowed",
        ),
        (
            "topic: \u2028\x85\ntemperature: !!float ''",
            3,
            "front matter is not valid YAML: invalid float",
        ),
        (
            "'topic': x\n\"temperature\": hot",
            3,
            'front matter temperature: expected a number ≥ 0, got "hot"',
        ),
    ],
)
def test_an_unreadable_value_is_reported_with_its_line(raw: str, line: int, message: str) -> None:
    (problem,) = read_front_matter(raw).problems
    assert (problem.line + 1, problem.severity) == (
        line,
        "error" if "YAML" in message else "warning",
    )
    assert problem.message == message


LARGE = [
    "topic: x\ntags: " + "[" * 9 + "]" * 9,
    "topic: x\ntags: [" + "a, " * 3000 + "]",
    "topic: x\nsystem_prompt: " + "x" * 70_000,
    "topic: x\n" + "\n".join(f"{' ' * depth}a:" for depth in range(20)),
    "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)),
]


@pytest.mark.parametrize("raw", LARGE, ids=range(len(LARGE)))
def test_oversized_front_matter_is_not_read_to_its_end(raw: str) -> None:
    read = read_front_matter(raw)
    assert read.keys == {}
    assert [p.message for p in read.problems] == [
        "front matter is too large or too deeply nested, or has aliases (*name), so it was not read"
    ]


def test_only_front_matter_that_is_read_stays_in_memory() -> None:
    def reads(raw: str) -> int:
        before = _known.cache_info().misses
        read_front_matter(raw)
        return _known.cache_info().misses - before

    assert (reads("topic: kept here"), reads("topic: kept here")) == (1, 0)
    assert reads("topic: " + "too long " * 10_000) == 0


def test_a_long_system_prompt_is_read() -> None:
    prompt = "Be brief.\n" * 2000
    raw = "system_prompt: |\n" + "".join(f"  {line}\n" for line in prompt.splitlines())
    assert read_front_matter(raw).keys == {"system_prompt": prompt}


def check(read: FrontMatter) -> None:
    for problem in read.problems:
        assert "\n" not in problem.message
        assert len(problem.message) < 300
        assert problem.line >= 1
    assert set(read.keys) <= set(KEYS)


@examples(300)
@given(yaml_texts)
@example("topic: 'x")
def test_no_text_raises_and_each_problem_has_its_line(raw: str) -> None:
    read = read_front_matter(raw)
    check(read)
    assert all(problem.line <= 1 + raw.count("\n") for problem in read.problems)


def test_broken_front_matter_must_be_fixed_before_the_next_question() -> None:
    broken = parse("---\ntopic: a\nagent: [broken\n---\n\n💬: hello\n")
    assert trouble(broken).startswith("line 3: front matter is not valid YAML")
    assert trouble(parse("---\ntools: web\n---\n\n💬: hello\n")).startswith(
        "line 2: front matter tools"
    )
    assert trouble(parse("---\ntopci: a\ntemperature: hot\n---\n\n💬: hello\n")) == ""
