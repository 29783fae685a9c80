"""What a shell command costs until the first token of its answer."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import machine
from tests.workspace.trees import work_tree

RUNS = 5
SETTINGS = """
agent = "Bench"
[providers.bench]
kind = "openai"
base_url = "http://127.0.0.1:PORT/v1"
api = "chat"
[[agents]]
name = "Bench"
provider = "bench"
model = "bench"
"""


def ask_cpu_s(port: int, root: Path) -> tuple[float, float]:
    """CPU seconds of a checkout's `parley ask` until its first token, without and with tools."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = home / "parley" / "config.toml"
        settings.parent.mkdir()
        settings.write_text(SETTINGS.replace("PORT", str(port)), encoding="utf-8")
        tree = work_tree(home / "tree", {"a.txt": "text\n"})
        without, with_tools = (
            statistics.median(_cpu_s(root, home, tree, options) for _ in range(RUNS))
            for options in (["--no-tools"], [])
        )
        return without, with_tools


def _cpu_s(root: Path, home: Path, folder: Path, options: list[str]) -> float:
    places = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), str(home))
    env = {**os.environ, **places, "PYTHONPATH": str(root / "python")}
    line = [sys.executable, "-m", "parley", "ask", "--quiet", *options, "100 tokens in 1 seconds"]
    with subprocess.Popen(
        line, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1)
        took = machine.precise_cpu_s(process.pid)
        process.stdout.read()
    assert process.returncode == 0
    return took
