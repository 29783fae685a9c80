"""README's line for `vim.pack` installs the plugin and its help, without anything else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.nvim.harness import ROOT, child
from tests.test_docs import README, examples


def test_vim_pack_installs_the_plugin_and_its_help(tmp_path: Path) -> None:
    lines = [line for example in examples(README, "lua") for line in example.splitlines()]
    (line,) = [line for line in lines if line.startswith("vim.pack.add(")]
    repository = tmp_path / "repository"
    with child(tmp_path, clean=True, rplugin=True) as nvim:
        if not nvim.lua("return vim.pack ~= nil"):
            pytest.skip("this Neovim has no vim.pack: 0.12 has")
        repository.mkdir()
        fetch = f"fetch -q --depth 1 file://{ROOT} HEAD:main"
        for command in ("init -q --bare -b main", fetch):
            subprocess.run(["git", *command.split()], cwd=repository, check=True)
        call = line.replace("<this repository>", f"file://{repository}").partition(" -- ")[0]
        # A question would wait for a key.
        nvim.lua(call.removesuffix(")") + ", { confirm = false })")
        assert nvim.nvim.funcs.exists(":ParleyRespond") == 2
        nvim.command("help :ParleyRespond")
        assert Path(nvim.name).name == "parley.txt"
