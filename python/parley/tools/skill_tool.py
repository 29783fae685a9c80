"""The built-in tool that reads a skill's files, with the list of skills. Pure.

Knows the tool; `engine/read_skill.py` runs it.
"""

from __future__ import annotations

from parley.tools.catalogue import Tool, own_identity

READ_SKILL = "read_skill"


def skill_tool(skills: str) -> Tool:
    """The tool for these skills, listed as text."""
    return Tool(
        "parley",
        READ_SKILL,
        title="Read a skill",
        description=(
            "Reads a skill's instructions, or another file in the skill's folder that the "
            "instructions mention."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The skill's name."},
                "path": {
                    "type": "string",
                    "description": (
                        "A path in the skill's folder; by default SKILL.md, the instructions."
                    ),
                },
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        annotations={"readOnlyHint": True, "openWorldHint": False},
        identity=own_identity(),
        instructions=skills,
        unasked="it only reads text that you agreed to",
    )
