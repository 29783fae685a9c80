"""Which agents can be compared."""

from __future__ import annotations

import pytest

from parley.policy.comparisons import MOST_AGENTS, flaw


@pytest.mark.parametrize(
    ("agents", "why"),
    [
        (["A", "B"], ""),
        ([str(n) for n in range(MOST_AGENTS)], ""),
        (["A"], "expected 2 to 8 agents to compare, got 1"),
        ([str(n) for n in range(MOST_AGENTS + 1)], "expected 2 to 8 agents to compare, got 9"),
        (["A", "B", "A"], "A is named twice. Name each agent once"),
    ],
)
def test_two_to_eight_different_agents_can_be_compared(agents: list[str], why: str) -> None:
    assert flaw(agents) == why
