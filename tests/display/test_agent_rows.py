"""Rows about agents: nothing in them can hide."""

from __future__ import annotations

import pytest

from parley.display.agent_rows import sign_in_row
from parley.models.agent_sign_ins import SignInMethod


@pytest.mark.parametrize(
    ("method", "row"),
    [
        (SignInMethod("t", "Account", "terminal", words=("log", "in x")), "Account: $ a b log 'in x'"),
        (SignInMethod("o", "Old", "terminal", command="sh", words=("-c", "\u202ex")), "Old: $ sh -c"),
        (SignInMethod("t", "It", "terminal", words=("in",), env={"A": "b c"}), "It: $ A='b c' a b in"),
        (SignInMethod("t", "Long", "terminal", words=("x" * 450, "end")), f"Long: $ a b {'x' * 450} end"),
        (SignInMethod("v", "Key", "variables", variables=("A", "B")), "Key: set A, B in"),
        (SignInMethod("v", "Key", "variables"), "Key: set its variables in"),
        (SignInMethod("a", "Web", about="Open it"), "Web: Open it"),
        (SignInMethod("a", "Web"), "Web: the agent does the rest itself"),
    ],
)  # fmt: skip
def test_a_sign_in_method_says_what_it_does(method: SignInMethod, row: str) -> None:
    text = sign_in_row(method, "a b")
    assert text.startswith(row)
    assert "\u202e" not in text
