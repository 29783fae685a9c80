"""A model from an installed package in Neovim answers like any other, and the health report names
its package.
"""

from __future__ import annotations

import json
import shutil
import sysconfig
import venv
from pathlib import Path

from tests.nvim.harness import child
from tests.packages import ECHO

MISSING = (
    "no installed package has a provider called 'gone' (known: 'echo'). Install one for "
    "the Python in"
)
INIT = """
vim.g.parley_python = {python}
require('parley').setup({{
  mcp = {{ mock = true }},
  providers = {{ echo = {{ kind = 'package' }}, gone = {{ kind = 'package' }} }},
  agents = {{
    {{ name = 'Echo', provider = 'echo', model = 'echo' }},
    {{ name = 'Gone', provider = 'gone', model = 'm' }},
  }},
}})
"""


def python_with_echo(folder: Path) -> Path:
    """A Python with Parley's requirements and the example package, without running `pip install`."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "here.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    shutil.copytree(ECHO / "parley_echo", site / "parley_echo")
    about = site / "parley_echo-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: parley-echo\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[parley.providers]\necho = parley_echo:Echo\n", encoding="utf-8"
    )
    return folder / "bin" / "python"


def test_a_packages_model_answers_and_a_missing_package_is_explained(tmp_path: Path) -> None:
    python = python_with_echo(tmp_path / "python")
    with child(tmp_path, init=INIT.format(python=json.dumps(str(python))), width=200) as nvim:
        nvim.edit("chat.md", '💬: call web_search {"query": "google"}\n')
        nvim.command("ParleyAgent Echo")
        nvim.command("ParleyRespond")
        nvim.until(lambda: 'web_search(query: "google")' in nvim.screen(), "the call")
        nvim.command("ParleyApprove ya")
        nvim.until(lambda: 'It returned: {"matches"' in nvim.screen(), "the answer")
        nvim.until(lambda: nvim.text().rstrip().endswith("💬:"), "the end")
        nvim.command("ParleyAgent Gone")
        nvim.keys("Gohello<Esc>")
        nvim.command("ParleyRespond")
        nvim.until(lambda: MISSING in nvim.messages(), "the message")
        nvim.command("silent checkhealth parley")
        nvim.until(lambda: "parley: keys" in nvim.text(), "the report")
        assert "OK Echo: echo of echo from the package parley-echo 1.0: needs no key" in nvim.text()
        assert f"ERROR Gone: m of gone: {MISSING}" in nvim.text()
