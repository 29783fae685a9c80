"""Whether a turn may begin: one table for the editor, the shell and the library."""

from __future__ import annotations

import pytest

from parley.chat.reader import parse
from parley.engine import NOTHING_ASKED
from parley.settings.readiness import Ready, Refusal, depends_on_logins, readiness
from parley.settings.values import Agent, ProviderSettings, Settings, key_source

KEYS = {"OPENAI_API_KEY": "k"}
AGENTS = (
    "Claude, ChatGPT, Gemini, OpenRouter, Ollama, Claude-Code, Codex, Gemini-CLI, Copilot, Demo, "
    "Demo-OpenAI, Demo-Text"
)
HINT = (
    "no key is set, so this is the demo model. "
    "To use another model, sign in with :ParleyLogin openrouter, or set "
    "ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY"
)
BROKEN = "front matter is not valid YAML: expected ',' or ']', but got '<stream end>'"


def chat(front_matter: str = "", question: str = "💬: hello\n") -> str:
    return f"---\n{front_matter}\n---\n\n{question}" if front_matter else question


CASES: dict[str, tuple[str, str | None, Ready | Refusal]] = {
    "a question": (chat(), None, Ready("")),
    "no question": (chat("topic: a", ""), None, Refusal("no question", NOTHING_ASKED)),
    "broken front matter": (
        chat("topic: a\nagent: [broken"),
        None,
        Refusal("broken front matter", f"line 3: {BROKEN}. Fix it, then ask again"),
    ),
    "broken front matter and an agent chosen": (
        chat("agent: [broken"),
        "Demo",
        Refusal("broken front matter", f"line 2: {BROKEN}. Fix it, then ask again"),
    ),
    "an agent of nobody's": (
        chat("agent: Nobody"),
        None,
        Refusal(
            "unknown agent",
            (
                "this chat asks for the agent Nobody, which is not set up here: choose one of "
                f"{AGENTS}"
            ),
        ),
    ),
    "an agent of nobody's, and another chosen": (chat("agent: Nobody"), "Demo", Ready("")),
    "a provider of nobody's": (
        chat("provider: nobody"),
        None,
        Refusal(
            "unknown agent", "this chat asks for the provider nobody, which is not set up here"
        ),
    ),
    "an agent not agreed to": (
        chat("agent: Demo\nmodel: other"),
        None,
        Refusal("unconfirmed agent", "agent Demo, model other"),
    ),
    "a search not agreed to": (
        chat("model: other\nweb_search: true"),
        None,
        Refusal("unconfirmed agent", "model other, web search"),
    ),
    "no search": (chat("web_search: false"), None, Ready("")),
    "an agent not agreed to, but chosen": (chat("agent: Demo"), "Demo", Ready("")),
    "an agent agreed to": (chat("agent: Gemini"), None, Ready("")),
    "nobody's agent chosen": (
        chat(),
        "Nobody",
        Refusal("no such agent", f"there is no agent 'Nobody': choose one of {AGENTS}"),
    ),
}


def answered(front_matter: str = "", agent: str = "Ollama") -> str:
    return chat(front_matter, f"💬: hello\n\n🤖:[{agent}]\n\nHi.\n\n💬: more\n")


CASES |= {
    "another agent answered last": (answered(), None, Ready("", "Ollama")),
    "the same agent answered last": (answered(agent="ChatGPT"), None, Ready("")),
    "another agent answered last, and one is chosen": (answered(), "ChatGPT", Ready("")),
    "another agent answered last, and the file names one": (
        answered("agent: Gemini"),
        None,
        Ready(""),
    ),
    "an agent of nobody's answered last": (answered(agent="Nobody"), None, Ready("")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_turn_begins_if_nothing_prevents_it(case: str) -> None:
    text, chosen, outcome = CASES[case]
    agreed = {"agent Gemini"}
    assert readiness(parse(text), Settings(), KEYS, chosen, may_want=agreed.__contains__) == outcome


@pytest.mark.parametrize(
    ("text", "chosen", "begins"),
    [(chat(), None, False), (chat(), "Demo", True), (chat("agent: Gemini"), None, True)],
)
def test_if_the_settings_name_no_agent_no_other_provider_is_asked(
    text: str, chosen: str | None, begins: bool
) -> None:
    outcome = readiness(parse(text), Settings(agent="Mine"), KEYS, chosen, may_want=lambda _: True)
    assert (outcome == Ready("")) is begins
    if isinstance(outcome, Refusal):
        assert outcome.problem.startswith(
            "your settings refer to the agent 'Mine', which does not exist: choose one of "
        )


@pytest.mark.parametrize(
    ("text", "settings", "chosen", "hint"),
    [
        (chat(), Settings(), None, HINT),
        (chat(), Settings(agent="Demo"), None, ""),
        (chat(), Settings(), "Demo", ""),
        (chat("agent: Demo"), Settings(), None, ""),
    ],
)
def test_a_user_who_gets_the_demo_without_a_key_is_told(
    text: str, settings: Settings, chosen: str | None, hint: str
) -> None:
    assert readiness(parse(text), settings, {}, chosen, may_want=lambda _: True) == Ready(hint)


@pytest.mark.parametrize(("question", "begins"), [("hello", True), ("", False), (" \n\t\n", False)])
def test_a_question_need_not_be_in_the_chat_yet(question: str, begins: bool) -> None:
    outcome = readiness(
        parse(""), Settings(), KEYS, None, may_want=lambda _: True, question=question
    )
    assert outcome == (Ready("") if begins else Refusal("no question", NOTHING_ASKED))


def test_a_key_instead_of_its_variables_name_is_never_shown() -> None:
    corp, mine = ProviderSettings("corp", api_key_env="gsk_1234"), Agent("Mine", "corp", "m")
    settings = Settings(agents=(mine,), providers={"corp": corp})
    ready = readiness(parse(chat()), settings, {}, None, may_want=lambda wish: True)
    assert isinstance(ready, Ready)
    hidden = [ready.hint, settings.missing_key(mine, {}), key_source(corp)]
    assert [("…" in text, "gsk_" in text) for text in hidden] == [(True, False)] * 3


def test_a_demo_agent_answers_without_naming_the_previous_agent() -> None:
    text = parse(answered(agent="ChatGPT"))
    outcome = readiness(text, Settings(agent="Demo"), KEYS, None, may_want=lambda _: True)
    assert outcome == Ready("")


@pytest.mark.parametrize(
    ("front_matter", "agent", "chosen", "depends"),
    [
        ("", None, None, True),
        ("", "Nobody", None, True),
        ("", "Claude", None, False),
        ("agent: Claude", None, None, False),
        ("", None, "Claude", False),
        ("", "OpenRouter", None, True),
        ("", "Claude", "Codex", True),
        ("provider: openrouter", "Claude", None, True),
        ("provider: nobody", "Claude", None, True),
    ],
)
def test_logins_and_programs_matter_unless_an_agent_is_named_that_needs_neither(
    front_matter: str, agent: str | None, chosen: str | None, depends: bool
) -> None:
    settings = Settings(agent=agent)
    assert depends_on_logins(parse(chat(front_matter)), settings, chosen) is depends
