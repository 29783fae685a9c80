"""Another person's folder: each part reports when it is run, imported or read as settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from parley.entry_points import PROVIDER_GROUP, TEMPLATES
from tests.packages import put_package

MODULES = (
    *(
        "sitecustomize",
        "usercustomize",
        "venv",
        "pip",
        "ensurepip",
        "parley",
        "pynvim",
        "anthropic",
        "openai",
    ),
    *("mcp", "httpx2", "json", "asyncio", "argparse", "logging", "server", "mcp_server_time"),
    "theirs",
)
PROGRAMS = (
    *(
        "python3",
        "python",
        "python3.11",
        "uv",
        "uvx",
        "pip",
        "git",
        "node",
        "npx",
        "npm",
        "sh",
        "keys",
    ),
    *("nvim", "xdg-open", "xclip", "server"),
)
INDEX = "http://127.0.0.1:9/of-the-folder"
SETTINGS = {
    "uv.toml": f'index-url = "{INDEX}"\n',
    "pyproject.toml": f'[tool.uv]\nindex-url = "{INDEX}"\n[tool.uv.pip]\nindex-url = "{INDEX}"\n',
    "pip.conf": f"[global]\nindex-url = {INDEX}\n",
    ".npmrc": f"registry={INDEX}\n",
    "package.json": '{"name":"x","scripts":{"preinstall":"touch npm-ran"}}',
    ".python-version": "../../../../of-the-folder\n",
    ".env": f"UV_INDEX_URL={INDEX}\nOPENAI_BASE_URL={INDEX}\n",
}
RELATIVE = ("", ".", "bin", "./node_modules/.bin")
"""PATH elements that refer to the current folder."""


@dataclass(frozen=True)
class Hostile:
    """The folder; `ran` names its parts that were run or imported."""

    folder: Path
    log: Path

    def ran(self) -> list[str]:
        """The parts that ran, in order."""
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    def environ(self, path: str = os.environ["PATH"]) -> dict[str, str]:
        """An environment that makes many programs look in the current folder."""
        return {
            "PATH": os.pathsep.join((*RELATIVE, path, "")),
            "PYTHONPATH": os.pathsep,
            "NODE_PATH": ".",
        }


def hostile(folder: Path) -> Hostile:
    """Fill a folder."""
    log = folder.parent / "ran.log"
    for where in ("bin", "node_modules/.bin"):
        (folder / where).mkdir(parents=True)
    for name in MODULES:
        (folder / name).mkdir()
        told = f"with open({str(log)!r}, 'a') as log:\n    log.write({name + chr(10)!r})\n"
        for part in ("__init__.py", "__main__.py"):
            (folder / name / part).write_text(told, encoding="utf-8")
    for name in PROGRAMS:
        for where in (
            ("bin", "node_modules/.bin") if name in MODULES else (".", "bin", "node_modules/.bin")
        ):
            program = folder / where / name
            program.write_text(f"#!/bin/sh\necho {where}/{name} >>'{log}'\n", encoding="utf-8")
            program.chmod(0o755)
    put_package(
        folder,
        "parley-theirs",
        {PROVIDER_GROUP: {"theirs": "theirs:Model"}, TEMPLATES: {"theirs": "theirs"}},
        {},
    )
    for name, text in SETTINGS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return Hostile(folder, log)
