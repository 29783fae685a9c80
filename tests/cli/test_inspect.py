"""What `parley messages` shows: the request of an agent in the format that was named."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.shell import Shell

AGENT = """
[[agents]]
name = "Mine"
provider = "lab"
model = "m-1"

[providers.lab]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
"""


def test_a_format_is_shown_for_the_first_agent_of_its_kind_whatever_its_provider_is_called(
    tmp_path: Path,
) -> None:
    shell = Shell(tmp_path)
    shell.configure(AGENT)
    shell.ask("hi")
    models = {}
    for name in ("openai", "openai-responses", "anthropic"):
        done = shell.run("messages", "chat.md", "--provider", name)
        models[name] = json.loads(done.stdout)["model"]
    assert models == {"openai": "m-1", "openai-responses": "m-1", "anthropic": "claude-sonnet-5-5"}
