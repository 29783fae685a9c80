"""The law of rules: no name of a project's server matches a rule for the user's servers."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from parley.policy.rules import OF_PROJECT, Pattern, Rules
from parley.tools.catalogue import Tool

NAMES = st.text(alphabet="files*?[]:/.!- ", min_size=1, max_size=12) | st.sampled_from(
    ["files", "project", "project:files", "*", "*/*", "files/*", "[fp]*/*", "project/files"]
)


@given(NAMES, NAMES, NAMES, st.booleans(), st.booleans())
@example("files/*", "files", "read", False, True)
@example("*", "files", "read", True, True)
@example("project*/*", "files", "read", False, False)
def test_only_a_rule_for_projects_decides_for_a_projects_server(
    pattern: str, server: str, name: str, trusted: bool, read_only: bool
) -> None:
    tool = Tool(server, name, trusted=trusted, of_project=True, annotations={"readOnlyHint": True})
    rules = Rules(auto=(Pattern(pattern),), auto_read_only=read_only and not trusted)
    if not pattern.startswith(OF_PROJECT):
        assert rules.allowed(tool, "{}") is None


@given(NAMES, NAMES, NAMES)
@example("files/*", "files", "read")
@example("files/[", "files", "[")
def test_a_rule_means_the_same_for_a_project_with_the_prefix(
    pattern: str, server: str, name: str
) -> None:
    own, theirs = Tool(server, name), Tool(server, name, of_project=True)
    if pattern.startswith(OF_PROJECT):
        return
    named = Pattern(OF_PROJECT + pattern)
    assert named.allows(theirs, "{}") == Pattern(pattern).allows(own, "{}")
    assert not named.allows(own, "{}")
    assert Pattern(pattern).forbids(theirs, "{}") or not Pattern(pattern).forbids(own, "{}")
    assert named.forbids(theirs, "{}") == Pattern(pattern).forbids(own, "{}")
