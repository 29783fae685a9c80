"""Skills in the Agent Skills format: a folder with a `SKILL.md` that has a name and a description.

Models receive the names and descriptions, within a budget, and read the rest when they need it.
Knows the format (agentskills.io, 2026-08-09) and these texts; does not know where skills are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parley.errors import ParleyError
from parley.frozen import frozen
from parley.instructions.markdown_files import read_markdown
from parley.late_patterns import late_pattern
from parley.text import one_line

SKILL_FILE = "SKILL.md"
_TOKEN_BYTES = 4
"""A rough, cautious average for English and most tokenizers."""

_NAME = late_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024
_INTRODUCTION = """\
These skills are folders with instructions. When a task matches a skill's description, first read \
the skill with read_skill:"""
_NAMES_ONLY = "Further skills, without descriptions: {}"


@frozen
class Skill:
    """A skill's name and description. If `is_offered` is false, only the user may use the skill."""

    name: str
    description: str
    is_offered: bool = True


def read_skill_file(folder: str, content: bytes) -> Skill:
    """The skill in a folder with this name, from its `SKILL.md`. Raises ParleyError."""
    keys = read_markdown(content).keys
    name, description = keys.get("name", folder), keys.get("description")
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise ParleyError("front matter name: expected letters a-z, digits and hyphens")
    if not isinstance(description, str) or not description.strip():
        raise ParleyError("front matter description: expected a text")
    return Skill(
        name,
        one_line(description, _LONGEST_DESCRIPTION),
        keys.get("disable-model-invocation") is not True,
    )


def skill_list(skills: Iterable[Skill], budget_tokens: int) -> str:
    """The skills as text for the system prompt, ordered by name; "" if there are none.

    Beyond the budget, skills lose their descriptions; skills whose names do not fit are counted.
    """
    room = budget_tokens * _TOKEN_BYTES - len(_INTRODUCTION)
    lines, bare = list[str](), list[str]()
    for skill in sorted(skills, key=lambda skill: skill.name):
        line = f"- {skill.name}: {skill.description}"
        if bare or len(line.encode()) + 1 > room:
            bare.append(skill.name)
        else:
            lines.append(line)
            room -= len(line.encode()) + 1
    if bare and (names := list(_fitting(bare, room - len(_NAMES_ONLY)))):
        lines.append(_NAMES_ONLY.format(", ".join(names)))
    return "\n".join([_INTRODUCTION, *lines]) if lines else ""


def _fitting(names: Iterable[str], room: int) -> Iterator[str]:
    """The names that fit, and how many there are beyond these."""
    left = list(names)
    while left and len(left[0]) + len(", and 9999 more") <= room:
        room -= len(left[0]) + 2
        yield left.pop(0)
    if left and room >= len("and 9999 more"):
        yield f"and {len(left)} more"
