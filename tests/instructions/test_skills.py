"""Skills: reading `SKILL.md`, and the list within its budget."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.instructions.skills import Skill, read_skill_file, skill_list

PDF = """\
---
name: pdf-forms
description: |
  Fills in PDF forms.
  Use it for any form.
license: MIT
allowed-tools: Bash(*)
---

# Forms
"""


def test_a_skill_has_a_name_and_a_description() -> None:
    skill = Skill("pdf-forms", "Fills in PDF forms. Use it for any form.")
    assert read_skill_file("pdf-forms", PDF.encode()) == skill
    assert read_skill_file("here", b"---\ndescription: D\n---\n") == Skill("here", "D")
    for_user = b"---\ndescription: D\ndisable-model-invocation: true\n---\n"
    assert read_skill_file("here", for_user) == Skill("here", "D", is_offered=False)


@pytest.mark.parametrize(
    ("folder", "content", "problem"),
    [
        ("x", b"no front matter", "description: expected a text"),
        ("x", b"---\ndescription: ''\n---\n", "description: expected a text"),
        ("x", b"---\nname: ../up\ndescription: D\n---\n", "name: expected letters"),
        ("x", b"---\nname: [x]\ndescription: D\n---\n", "name: expected letters"),
        ("x", b'---\nname: "a\\e"\ndescription: D\n---\n', "name: expected letters"),
        ("X y", b"---\ndescription: D\n---\n", "name: expected letters"),
        ("x", b"---\nname: x: y: z\n---\n", "not valid YAML"),
    ],
)
def test_a_flawed_skill_is_refused_with_the_reason(
    folder: str, content: bytes, problem: str
) -> None:
    with pytest.raises(ParleyError) as error:
        read_skill_file(folder, content)
    assert problem in str(error.value)


def test_the_list_is_ordered_by_name() -> None:
    text = skill_list([Skill("b", "second"), Skill("a", "first")], 2_000)
    assert text.endswith("read_skill:\n- a: first\n- b: second")
    assert skill_list([], 2_000) == ""


def test_beyond_the_budget_skills_lose_their_descriptions_and_then_their_names() -> None:
    skills = [Skill("first", "short"), *(Skill(f"skill-{n:03}", "d" * 400) for n in range(100))]
    text = skill_list(skills, 120)
    assert "- first: short\n" in text
    named = len(re.findall(r"skill-\d{3}", text))
    assert 0 < named < 100
    assert text.endswith(f", and {100 - named} more")
    assert skill_list(skills, 10) == ""


SKILLS = st.lists(
    st.builds(
        Skill,
        st.from_regex("[a-z]{1,64}", fullmatch=True),
        st.text(st.characters(categories=["L", "Zs"]), min_size=1, max_size=300),
    ),
    max_size=30,
    unique_by=lambda skill: skill.name,
)


@given(SKILLS, st.integers(0, 2_000))
def test_the_list_keeps_its_budget_and_its_order(skills: list[Skill], budget: int) -> None:
    text = skill_list(skills, budget)
    assert len(text.encode()) <= max(budget * 4, 0)
    assert text == skill_list(skills[::-1], budget)
    if budget * 4 > 40_000:
        assert all(f"- {skill.name}: " in text for skill in skills)
