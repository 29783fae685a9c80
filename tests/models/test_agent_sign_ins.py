"""The sign-in methods that agents name: those of real agents, and any JSON."""

from __future__ import annotations

import pytest
from hypothesis import given

from parley.models.agent_sign_ins import SignInMethod, sign_in_methods
from tests.models.test_agent_records import JSON

# As claude-agent-acp 0.101.0 and codex-acp 2.6.0 sent them (2026-11-26); the third is from the
# protocol's page about methods, and the fourth has the older form.
CLAUDE = {
    "id": "claude-ai-login", "name": "Claude Subscription", "description": "Use a subscription",
    "type": "terminal", "args": ["--cli", "auth", "login", "--claudeai"],
    "_meta": {"terminal-auth": {"command": "/usr/bin/node", "args": ["x"], "label": "Login"}},
}  # fmt: skip
CODEX = {"id": "chat-gpt", "name": "ChatGPT", "description": "Use ChatGPT to authenticate"}
KEY = {
    "id": "k", "name": "API key", "type": "env_var",
    "vars": [{"name": "OPENAI_API_KEY"}, {"name": "ORG", "optional": True}],
}  # fmt: skip
OLDER = {"id": "o", "name": "Old", "_meta": {"terminal-auth": {"command": "old", "args": ["in"]}}}


def test_each_kind_of_method_is_read() -> None:
    assert sign_in_methods({"authMethods": [CLAUDE, CODEX, KEY, OLDER]}) == (
        SignInMethod(
            "claude-ai-login",
            "Claude Subscription",
            "terminal",
            "Use a subscription",
            words=("--cli", "auth", "login", "--claudeai"),
        ),
        SignInMethod("chat-gpt", "ChatGPT", about="Use ChatGPT to authenticate"),
        SignInMethod("k", "API key", "variables", variables=("OPENAI_API_KEY",)),
        SignInMethod("o", "Old", "terminal", command="old", words=("in",)),
    )


@pytest.mark.parametrize(
    "raw",
    [
        3,
        {"id": "", "name": "x"},
        {"id": "x" * 1001, "name": "x"},
        {"id": "x", "name": "x", "type": "gateway"},
        {"id": "x", "name": "x", "type": "terminal", "args": "ls"},
        {"id": "x", "name": "x", "type": "terminal", "args": [1]},
        {"id": "x", "name": "x", "type": "terminal", "args": ["a\0b"]},
        {"id": "x", "name": "x", "type": "terminal", "env": {"A": 1}},
        {"id": "x", "name": "x", "type": "terminal", "args": ["x", " " * 500, "hidden"]},
        {"id": "x", "name": "x", "type": "terminal", "args": ["a\u202eb"]},
        {"id": "x", "name": "x", "type": "terminal", "env": {"A": "\x1b[2J"}},
        {"id": "x", "name": "x", "type": "terminal", "env": {"A=B": "x"}},
    ],
)
def test_a_method_that_cannot_be_used_is_left_out(raw: object) -> None:
    assert sign_in_methods({"authMethods": [raw]}) == ()


@given(JSON)
def test_any_json_gives_methods_that_can_be_shown(raw: object) -> None:
    for method in sign_in_methods({"authMethods": raw}):
        assert method.name.isprintable()
