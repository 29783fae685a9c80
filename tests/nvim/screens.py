"""Draws pictures of real sessions, scene by scene, for people to view; it is not a test.

`python -m tests.nvim.screens FOLDER [SCENE...]` draws `FOLDER/SCENE.svg`, all scenes by default;
`light-SCENE` is the scene with a light background, and `marker-CODE` the shape of the marker with
this code point in hexadecimal digits. `make screens` redraws README's pictures,
`make screens TO=FOLDER` all of them. Every scene is a Neovim without settings, by default 80
columns by 24 rows, with the demo model and a test server.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from parley.chat.attachments import link
from parley.mock_server import PIXEL
from tests.ledgers import close_all, open_ledger
from tests.many_chats import many_chats
from tests.model_servers import served
from tests.nvim.films import asking, editing
from tests.nvim.hanging_model import hanging_model
from tests.nvim.harness import Child, child
from tests.nvim.picture import Shot, drawn, marker, moving
from tests.pictures import beside
from tests.workspace.trees import work_tree, write

QUESTION = "can you find the latest stock price of google and microsoft?"
WRITE = "Please write the reader of CSV files, and its tests."
CODE = "\n".join(
    f"def column_{n}(rows: list[list[str]]) -> list[str]:\n"
    f'    """The values of column {n}, without its heading."""\n'
    f"    return [row[{n}] for row in rows[1:]]\n\n"
    for n in range(33)
)
FILE = {"path": "src/csv_reader.py", "content": f"from __future__ import annotations\n\n\n{CODE}"}
COMPARED = "How do I read a file with semicolons?"
ANSWERS = {
    "careful": "say: Give the delimiter to the reader:\n\n```python\n"
    "with open(path, newline='') as file:\n    rows = list(csv.reader(file, delimiter=';'))\n"
    "```\n\nOpen the file with `newline=''`, else a line break in a cell becomes two.",
    "brief": "say: Give the delimiter to the reader:\n\n```python\n"
    "rows = list(csv.reader(open(path), delimiter=';'))\n```",
}
WORDS = {WRITE: f"call write_file {json.dumps(FILE)}"}

LONG = """---
topic: reading tables
---

💬: How do I read a CSV file in Python, row by row?

🤖:[Claude]

Use `csv.reader`, or `csv.DictReader` if the first row has names. Both take an open file; open it with
`newline=""`, else a line break in a cell becomes two. The value of max_field_size_limit holds for both.

```python
import csv

def rows_of(path: str) -> list[dict[str, str]]:
    \"\"\"All rows, by the names of the first one.\"\"\"
    with open(path, newline="") as file:  # not opened twice
        return list(csv.DictReader(file))
```

| function | returns | since |
|---|---|---|
| `csv.reader` | lists | 2.3 |
| csv.DictReader | dicts of str_or_none | 2.3 |

- **DictReader** keeps the order of columns, *reader* that of cells.
- A row that is too short gets `restval`, see [the manual](https://docs.python.org/3/library/csv.html).

📝: how to read CSV files was asked; csv.reader and csv.DictReader do it.

💬: And what of my_old_file.csv, which has semicolons?

🤖:[Claude]

Give the delimiter: `csv.reader(file, delimiter=";")`. For files of unknown make there is `csv.Sniffer`.

💬: """

COMMON: dict[str, Any] = {
    "agent": "Demo-OpenAI",
    "safety": {"rate_limit_per_minute": 100000},
    "status": {"llm": False},
}
SEARCH = {"command": sys.executable, "args": [str(Path(__file__).parent / "search_server.py")]}
README = """
vim.o.showcmd, vim.o.cmdheight, vim.o.fillchars = false, 0, 'eob: '
vim.o.statusline = " %t%=%{%v:lua.require'parley'.status()%} "
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture: the session before it, and its Neovim. A session with shots makes a moving picture."""

    play: Callable[[Child], Iterator[Shot] | None]
    width: int = 80
    height: int = 24
    init: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


def ask(neovim: Child, question: str, before: str = LONG) -> None:
    """Ask a chat's last question."""
    neovim.edit("chat.md", f"{before}{question}\n")
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("normal! G$")
    neovim.keys("<C-g><C-g>")


def answered_by(agent: str) -> str:
    """The long chat, with answers by this agent, so that Parley asks it without a warning."""
    return LONG.replace("[Claude]", f"[{agent}]")


def complete(neovim: Child) -> None:
    """Return when the answer is complete, and the next question begins."""
    neovim.until(lambda: neovim.lines()[-1] == "💬: ", "the next question")
    neovim.until_idle()


def is_at_rest(neovim: Child) -> bool:
    """Whether the screen has not changed for a moment, so that drawing is done."""
    before = neovim.screen()
    neovim.lua("vim.wait(100)")
    return neovim.screen() == before


def session(neovim: Child) -> None:
    """README's picture."""
    ask(neovim, QUESTION, "---\ntopic: stock prices\n---\n\n💬: ")
    neovim.until_waiting()
    neovim.command("silent write")


def waiting(neovim: Child) -> None:
    """Two calls waiting at the bottom of a chat longer than the window."""
    ask(neovim, QUESTION)
    neovim.until_waiting()


def write_file(neovim: Child) -> None:
    """A waiting call that writes a file of 5 kB."""
    ask(neovim, WRITE, answered_by("Writer"))
    neovim.until_waiting()


def write_file_details(neovim: Child) -> None:
    """The same call, with the float of `K`."""
    write_file(neovim)
    neovim.lua("vim.fn.search('^❓', 'bW')")
    neovim.keys("K")
    neovim.until(lambda: len(neovim.nvim.api.list_wins()) > 1, "the float")


def running(neovim: Child) -> None:
    """A running tool."""
    ask(neovim, 'call slow {"seconds": 600}')
    neovim.until_text('"name":"slow"')
    neovim.until(
        lambda: "Selecting" not in (neovim.variable("parley_status") or "Selecting"), "the tool"
    )
    neovim.lua("vim.wait(2500)")  # for the displayed time


def first_token(neovim: Child) -> None:
    """An answer before its first word."""
    ask(neovim, "What does a share of Google cost?", answered_by("Hanging"))
    neovim.lua("vim.wait(2500)")


def finished(neovim: Child) -> None:
    """An answer with two calls and their results."""
    ask(neovim, QUESTION)
    complete(neovim)


def thinking(neovim: Child) -> None:
    """A thinking model."""
    ask(neovim, "think about it: what does csv_reader do?")
    neovim.until_text("First")


def thoughts(neovim: Child) -> None:
    """An answer after thinking."""
    ask(neovim, "think about it: what does csv_reader do?")
    complete(neovim)


def error(neovim: Child) -> None:
    """An unreachable provider."""
    ask(neovim, "What does a share of Google cost?", answered_by("Nobody"))
    complete(neovim)


def stop(neovim: Child) -> None:
    """A stopped answer."""
    ask(neovim, "write 400 words")
    neovim.until_text("conversation and")
    neovim.command("ParleyStop")
    complete(neovim)


def queued(neovim: Child) -> None:
    """Two queued questions."""
    ask(neovim, "write 4000 words")
    neovim.until_text("conversation and")
    neovim.keys("Go<CR>💬: Is there one for TSV, too?<C-g><C-g>")
    neovim.until_screen("queued 💬: Is")
    neovim.keys("o<CR>💬: And for tables in a web page,<CR>which has several of them?<C-g><C-g>")
    neovim.until_screen("queued 💬: And")


def too_long(neovim: Child) -> None:
    """A chat that was too long for its model, and continued."""
    long = "".join(f"💬: question {n}\n\n🤖:[Claude]\n\n{CODE * 12}\n\n" for n in range(12))
    ask(neovim, "say: It goes on.", f"{long}💬: ")
    complete(neovim)
    neovim.until_screen("too long for demo")


def compact(neovim: Child) -> None:
    """Older exchanges being summarized."""
    chat = "".join(f"💬: question {n}\n\n🤖:[Claude]\n\nanswer {n}\n\n" for n in range(60))
    neovim.edit("chat.md", f"{chat}💬: ")
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("normal! G$")
    neovim.command("ParleyCompact")
    neovim.until_screen("Summing up 3 of 57...")


def settings(neovim: Child) -> None:
    """A chat opened with eleven invalid settings."""
    neovim.edit("chat.md", LONG)
    neovim.until(lambda: "agnet" in neovim.messages(), "the problems")


def tools(neovim: Child) -> None:
    """The page of tools."""
    finished(neovim)
    neovim.command("ParleyTools")
    neovim.until(
        lambda: "web_search" in neovim.text() and "write_file" in neovim.text(), "the servers"
    )


def log(neovim: Child) -> None:
    """The page of decisions and runs."""
    finished(neovim)
    neovim.command("ParleyLog")
    neovim.until(lambda: "log" in neovim.name, "the page")


def request(neovim: Child) -> None:
    """The page of the next request."""
    finished(neovim)
    neovim.keys("GAand of apple?<Esc>")
    neovim.command("ParleyRequest")
    neovim.until(lambda: "request" in neovim.name, "the page")


def health(neovim: Child) -> None:
    """:checkhealth, in its own window."""
    neovim.edit("chat.md", LONG)
    neovim.command("checkhealth parley")


def health_end(neovim: Child) -> None:
    """The end of `:checkhealth`."""
    health(neovim)
    neovim.command("normal! G")


def syntax(neovim: Child) -> None:
    """An answer's prose at the end of a thousand lines, which Treesitter does not highlight."""
    neovim.edit("chat.md", "💬: What is in these?\n\n" + "One of my_old_lines.\n" * 1000 + LONG)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("normal! Gzb10\x19")


def split(neovim: Child) -> None:
    """Two waiting calls, in one of two windows side by side."""
    neovim.command("vsplit")
    waiting(neovim)


def prose(neovim: Child) -> None:
    """An answer's prose, with code and a table."""
    neovim.edit("chat.md", LONG)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")


def context(neovim: Child) -> None:
    """A question about the selection in the window above, and its diagnostics."""
    neovim.edit("csv_reader.py", FILE["content"])
    neovim.keys("4GVjj<Esc>")
    neovim.lua("""vim.diagnostic.set(vim.api.nvim_create_namespace('linter'), 0, {
      { lnum = 5, col = 11, severity = 2, message = 'a row may be shorter', source = 'linter' },
    })""")
    neovim.command("belowright 13split")
    ask(
        neovim,
        "What is wrong here? @@selection@@ @@diagnostics@@",
        "---\ntopic: rows\n---\n\n💬: ",
    )
    complete(neovim)
    neovim.command("normal! 5Gzt")


def project(neovim: Child) -> Path:
    """A small Git work tree, which becomes the working directory."""
    files = {"src/cart.py": CART, "notes.txt": "".join(f"line {n}\n" for n in range(200))}
    root = work_tree(neovim.home / "project", files)
    neovim.command(f"cd {root}")
    return root


def propose(neovim: Child, *calls: tuple[str, object]) -> Path:
    """Ask until these calls are waiting in the chat."""
    root = project(neovim)
    ask(neovim, " and ".join(f"call {name} {json.dumps(value)}" for name, value in calls))
    neovim.until_waiting()
    return root


def edit(*edits: tuple[str, str], path: str = "src/cart.py") -> tuple[str, object]:
    """A call that edits a file."""
    return "edit_file", {"path": path, "edits": [{"old": o, "new": n} for o, n in edits]}


def small_edit(neovim: Child) -> None:
    """A waiting edit of two lines."""
    propose(neovim, edit(*FIX))


def small_edit_details(neovim: Child) -> None:
    """The same edit, with the float of `K`."""
    small_edit(neovim)
    neovim.lua("vim.fn.search('^❓', 'bW')")
    neovim.keys("K")
    neovim.until_screen("d opens a diff")


def diff_tab(neovim: Child) -> None:
    """The same edit in its tab page, changed by the user."""
    small_edit_details(neovim)
    neovim.keys("d")
    neovim.until_screen("ya approve")
    neovim.keys("A  # in cents<Esc>")


def three_edits(neovim: Child) -> None:
    """Three waiting edits of one file, each on top of the one before it."""
    first, second = FIX
    propose(neovim, edit(first), edit(second), edit((first[1], "price * n")))


def long_edit(neovim: Child) -> None:
    """A waiting change of 200 lines."""
    text = "".join(f"LINE {n}\n" for n in range(200))
    propose(neovim, ("write_file", {"path": "notes.txt", "content": text}))


def new_and_deleted(neovim: Child) -> None:
    """A new file and a deleted one."""
    new = {"path": "src/tax.py", "content": "RATE = 0.19\n"}
    propose(neovim, ("write_file", new), ("delete_file", {"path": "notes.txt"}))


def edit_in_split(neovim: Child) -> None:
    """A waiting edit in the lower window, with its file in the upper one."""
    root = project(neovim)
    neovim.command(f"edit {root}/src/cart.py | split")
    ask(neovim, f"call edit_file {json.dumps(edit(*FIX)[1])}")
    neovim.until_waiting()


def edit_made(neovim: Child) -> None:
    """The same two windows after the approval."""
    edit_in_split(neovim)
    neovim.keys("K")
    neovim.until_screen("d opens a diff")
    neovim.keys("q")
    neovim.keys("ya")
    neovim.lua("vim.wait(600)")
    if neovim.lines()[-1] != "💬: ":
        neovim.keys("ya")
    complete(neovim)


def unsaved(neovim: Child) -> None:
    """A waiting edit of a file with unsaved changes in its buffer."""
    root = project(neovim)
    neovim.command(f"edit {root}/src/cart.py")
    neovim.keys("Gotax = 0.19<Esc>")
    ask(neovim, f"call edit_file {json.dumps(edit(*FIX)[1])}")
    neovim.until_waiting()


def changed_since(neovim: Child) -> None:
    """An approved edit of a file that another program has changed since."""
    root = propose(neovim, edit(*FIX))
    (root / "src/cart.py").write_text(f"# mine\n{CART}", encoding="utf-8")
    neovim.keys("ya")
    neovim.until_screen("has changed")


def command(neovim: Child) -> None:
    """A waiting command."""
    propose(neovim, ("run_command", {"command": "python3 -m pytest -q && git status --short"}))


def command_running(neovim: Child) -> None:
    """A running command, with its last line of output."""
    steps = "for n in 1 2 3 4 5 6 7 8 9 10; do echo test $n passed; sleep 1; done"
    propose(neovim, ("run_command", {"command": steps}))
    neovim.keys("ya")
    neovim.until_screen("test 3 passed")


def command_failed(neovim: Child) -> None:
    """A command that failed, with its files."""
    propose(neovim, ("run_command", {"command": "echo x > made.txt; ls; exit 2"}))
    neovim.keys("ya")
    complete(neovim)


def attachment(neovim: Child) -> None:
    """A question about a picture, and its answer."""
    picture = beside(neovim.home / "chat.md", PIXEL)
    ask(neovim, f"What is in this picture?\n\n{link(picture)}")
    complete(neovim)


def picture_row(neovim: Child) -> None:
    """The row for a call that returned a picture."""
    ask(neovim, "call picture {}")
    complete(neovim)


def all_models(neovim: Child) -> None:
    """The page with the models of three providers, and one that needs a key."""
    kinds = {"claude": "anthropic", "openrouter": "openrouter", "local": "other"}
    with served(*kinds.values()) as urls:
        providers: dict[str, Any] = {"locked": {"api_key_env": "LOCKED_KEY"}}
        for name, url in zip(kinds, urls, strict=True):
            kind = "anthropic" if name == "claude" else "openai"
            providers[name] = {"kind": kind, "base_url": url}
        for name in ("anthropic", "openai", "gemini", "ollama"):
            providers[name] = {"model_list": "off"}
        neovim.lua("require('parley').setup(...)", {"providers": providers, "agent": "Demo"})
        neovim.edit("chat.md", "💬: ")
        neovim.lua("vim.ui.select = function(items, _, done) done(items[#items], #items) end")
        neovim.command("ParleyAgent")
        neovim.until(lambda: "qwen/qwen4-max" in neovim.text(), "the lists")


def long_result(neovim: Child) -> None:
    """The row for a call that returned 5 MB of text."""
    ask(neovim, 'call long {"bytes": 5000000}')
    neovim.until_text("🔒: [Interrupted: the reply was cut off at max_tokens]")
    neovim.until_idle()
    neovim.lua("vim.fn.search('^❓', 'bW') vim.cmd('normal! zt')")


def usage(neovim: Child) -> None:
    """A chat's usage, in the status line."""
    finished(neovim)
    neovim.until(lambda: neovim.variable("parley_usage"), "the usage")


def fork(neovim: Child) -> None:
    """A chat, and its fork after the first answer, which continues there."""
    neovim.edit("chat.md", LONG)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("topleft vertical ParleyFork")
    neovim.until(lambda: neovim.name.endswith("chat-fork.md"), "the fork")


def regenerating(neovim: Child) -> None:
    """An old answer while another agent is asked for a new one."""
    neovim.edit("chat.md", LONG)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("normal! G$")
    neovim.command("ParleyRespond! Hanging")
    neovim.lua("vim.wait(1500)")
    neovim.until_screen("Analyzing request...")


def regenerated(neovim: Child) -> None:
    """The same answer, from another agent."""
    neovim.edit("chat.md", LONG)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("normal! G$")
    neovim.command("ParleyRespond! Demo")
    neovim.until_text("🤖:[Demo]")
    complete(neovim)


def comparing(neovim: Child, question: str, *agents: str) -> None:
    """A question in a chat with an earlier answer, to be compared."""
    neovim.edit("chat.md", f"{LONG}{question}")
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.command("normal! G$")
    neovim.command(f"ParleyCompare {' '.join(agents)}")
    neovim.until(lambda: len(neovim.nvim.api.list_tabpages()) == 2, "the tab page")


def is_compared(neovim: Child) -> bool:
    """Whether all windows show their answers as a diff."""
    return bool(
        neovim.lua("""return vim.iter(vim.api.nvim_tabpage_list_wins(0)):all(function(win)
      return vim.wo[win].diff
    end)""")
    )


def compared(neovim: Child) -> None:
    """The answers of three agents, one of which proposes no tool."""
    comparing(neovim, COMPARED, "Demo", "Careful", "Brief")
    neovim.until(lambda: is_compared(neovim), "the diff")


def compared_two(neovim: Child) -> None:
    """The answers of two agents."""
    comparing(neovim, COMPARED, "Careful", "Brief")
    neovim.until(lambda: is_compared(neovim), "the diff")


def compared_waiting(neovim: Child) -> None:
    """Calls waiting in two of three forks."""
    comparing(neovim, QUESTION, "Demo", "Demo-OpenAI", "Brief")
    neovim.until(lambda: is_compared(neovim), "the diff")


def compared_running(neovim: Child) -> None:
    """Three agents, while they answer."""
    comparing(neovim, "write 400 words", "Demo", "Demo-OpenAI", "Hanging")
    neovim.lua("vim.wait(2500)")


def completion(neovim: Child) -> None:
    """Completions after `@@`."""
    for name in ("notes.md", "src/csv_reader.py", "tests/test_csv_reader.py"):
        path = neovim.home / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CODE, encoding="utf-8")
    neovim.command(f"cd {neovim.home}/project")
    neovim.edit("chat.md", LONG)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")
    neovim.lua("vim.o.completeopt = 'menuone,noselect'")
    neovim.keys("GAWhat is wrong in @@<C-x><C-o>")
    neovim.until_screen("diagnostics ")


def find(neovim: Child) -> None:
    """The known chats in many folders."""
    ledger = open_ledger(neovim.home / "state" / "parley" / "ledger.db")
    many_chats(neovim.home, ledger, 60, 9)
    close_all()
    long = neovim.home / "src" / "a-project-with-a-long-name" / "documents" / "chats" / "b.md"
    long.parent.mkdir(parents=True)
    question = "Why does the parser of dates accept the 30th of February in some locales?"
    neovim.edit(str(long), f"💬: {question}\n")
    neovim.command("write | set filetype=markdown")
    neovim.command("ParleyRespond")
    complete(neovim)
    neovim.command("silent write | enew | ParleyFind")
    neovim.until_screen("Type number")


def find_words(neovim: Child) -> None:
    """The chats with a tag that contain a word."""
    find(neovim)
    neovim.keys("<CR>")
    neovim.command("ParleyFind #tag-3 number")
    neovim.until_screen("— It is")


def hidden(neovim: Child) -> None:
    """A question that refers to a hidden file."""
    path = neovim.home / "project" / ".github" / "workflows" / "ci.yml"
    path.parent.mkdir(parents=True)
    path.write_text("on: push\n", encoding="utf-8")
    neovim.command(f"cd {neovim.home}/project")
    ask(neovim, "What does @@.github/workflows/ci.yml@@ do?")
    neovim.until_screen("Read the hidden file")


def trust(neovim: Child) -> None:
    """A project's server file that asks for more than it appears to."""
    folder = neovim.home / "project"
    (folder / "bin").mkdir(parents=True)
    for name in ("bin/npx", "preload.so"):
        (folder / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    env = {
        "PATH": f"{folder}/bin:/usr/bin",
        "LD_PRELOAD": "./preload.so",
        "API_TOKEN": "${GITHUB_TOKEN}",
    }
    good = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": env}
    web = {
        "url": "https://me:secret@docs.example.com/mcp",
        "headers": {"X-Key": "${ANTHROPIC_API_KEY}"},
    }
    content = json.dumps({"mcpServers": {"good": good, "web": web}}, indent=2)
    (folder / ".mcp.json").write_text(content, encoding="utf-8")
    neovim.command(f"cd {folder}")
    ask(neovim, "call good {}", "💬: ")
    neovim.until_screen("1: No")


def trust_rest(neovim: Child) -> None:
    """The same file, after a request to show the rest."""
    trust(neovim)
    neovim.keys("2<CR>")
    neovim.until_screen("Yes, I trust")


def instructions(neovim: Child) -> None:
    """A project's new instructions, with an import and a hidden character."""
    root = project(neovim)
    (root / "AGENTS.md").write_text(AGENTS, encoding="utf-8")
    (root / "style.md").write_text("Prices are in cents.\u200b\n", encoding="utf-8")
    ask(neovim, "say: hello", "💬: ")
    neovim.until_screen("1: No")


def instructions_changed(neovim: Child) -> None:
    """The same instructions after a yes and a change."""
    instructions(neovim)
    for answer in ("First show the rest", "Yes, use this text"):
        neovim.until(
            lambda: (
                neovim.nvim.api.get_mode()["mode"] == "c" and f"2: {answer}" in neovim.screen()  # noqa: B023
            )
        )
        neovim.keys("2<CR>")
    complete(neovim)
    (neovim.home / "project" / "AGENTS.md").write_text(
        AGENTS.replace("pytest", "make test"), encoding="utf-8"
    )
    neovim.keys("Gosay: again<Esc><C-g><C-g>")
    neovim.until_screen("has changed")


AGENTS = """# Working on the shop

Run `pytest` before each commit.
See @style.md.
"""
REVIEW = """---
description: Reviews a file, with its tests
arguments: [file]
---
Review @@{{file}}@@. Name each bug in one line, the worst first.
"""
COMMIT = """---
description: A commit message for the staged changes
agent: Writer
---
Write a commit message for @@diff@@.
"""
SKILL = """---
name: release
description: How this project makes a release. Use it for versions, tags and changelogs.
---

# Releases

1. Move the entries of *Unreleased* in CHANGELOG.md below the new version.
2. Run `make check`.
3. Tag the commit, and push the tag.
"""


def with_prompts(neovim: Child) -> None:
    """A chat in a project with prompts of its own."""
    own, folder = neovim.home / "config" / "parley", neovim.home / "project"
    write(own, {"prompts/review.md": REVIEW, "prompts/rewrite.md": "Rewrite this text:\n"})
    write(folder, {".parley/prompts/commit.md": COMMIT})
    neovim.command(f"cd {folder}")
    neovim.edit("chat.md", LONG)
    neovim.until(lambda: neovim.lua("return require('parley.chat').is_attached(0)"), "the chat")


def prompts(neovim: Child) -> None:
    """The list of prompts."""
    with_prompts(neovim)
    neovim.keys("G:ParleyPrompt<CR>")
    neovim.until_screen("3: rewrite")


def prompt_completion(neovim: Child) -> None:
    """Completions after `/`."""
    with_prompts(neovim)
    neovim.lua("vim.o.completeopt = 'menuone,noselect'")
    neovim.keys("GA/<C-x><C-o>")
    neovim.until_screen("/rewrite")


def prompt_trust(neovim: Child) -> None:
    """A project's prompt, before it is used."""
    with_prompts(neovim)
    neovim.keys("GA/commit<Esc><C-g><C-g>")
    neovim.until_screen("Type number")


def skills_trust(neovim: Child) -> None:
    """A project's skills, before a model may read them."""
    skill = neovim.home / "project" / ".agents" / "skills" / "release"
    write(skill, {"SKILL.md": SKILL})
    neovim.command(f"cd {neovim.home}/project")
    ask(neovim, 'call read_skill {"name": "release"}', "💬: ")
    neovim.until_screen("Type number")


def skill_read(neovim: Child) -> None:
    """The call that reads a skill."""
    skills_trust(neovim)
    neovim.keys("2<CR>")
    neovim.until_screen("2: Yes")
    neovim.keys("2<CR>")
    complete(neovim)


CART = """def total(items):
    sum = 0
    for price, n in items:
        sum += price
    return sum


print(total([(5, 2), (1, 1)]))
"""
FIX = (("sum += price", "sum += price * n"), ("    sum = 0\n", "    sum = 0  # cents\n"))
AUTO = {"approval": {"auto": ["*/*"]}}
TRUSTED = {"mcp": {"servers": {"files": {**SEARCH, "trusted": True}}}}
EXTRA = {
    "mcp": {
        "servers": {
            "extra": {"command": sys.executable, "args": ["-m", "parley.mock_server", "--extra"]}
        }
    }
}
WRONG = {
    "agnet": "Claude",
    "agent": 3,
    "chat_dir": 4,
    "thinking": {"budget_tokens": "many"},
    "loop": {"max_iterations": "ten", "timeout_s": -1},
    "safety": {"max_tools_per_request": {}, "rate_limit": 3},
    "approval": {"auto": "all"},
    "keys": {"respond": 7, "scope": "word"},
}
HANGING = {"agent": "Hanging"}
WRITER = {"agent": "Writer"} | TRUSTED
NOBODY = {
    "agent": "Nobody",
    "providers": {"nobody": {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "api": "chat"}},
    "agents": [{"name": "Nobody", "provider": "nobody", "model": "nothing"}],
}
CLAUDE = {"agent": "Demo"}
LIGHT = "vim.o.background = 'light'"

SCENES: dict[str, Scene] = {
    "edit": Scene(small_edit),
    "edit-details": Scene(small_edit_details),
    "edit-diff": Scene(diff_tab),
    "edits": Scene(three_edits),
    "edit-long": Scene(long_edit),
    "edit-new": Scene(new_and_deleted),
    "edit-split": Scene(edit_in_split),
    "edit-made": Scene(edit_made),
    "edit-unsaved": Scene(unsaved),
    "edit-changed": Scene(changed_since),
    "command": Scene(command),
    "command-running": Scene(command_running),
    "command-failed": Scene(command_failed),
    "models": Scene(all_models),
    "session": Scene(session, height=16, init=README, settings={"mcp": {}, "agent": "Demo"}),
    "asking": Scene(
        asking,
        width=72,
        height=20,
        init=README,
        settings={"mcp": {}, "agent": "Demo"},
        env={"PARLEY_DEMO_PACE": "0.03"},
    ),
    "editing": Scene(
        editing,
        width=76,
        height=24,
        init=README,
        settings={"agent": "Demo", "approval": {"auto": ["workspace/search_text"]}},
        env={"PARLEY_DEMO_PACE": "0.03"},
    ),
    "waiting": Scene(waiting),
    "write-file": Scene(write_file, settings=WRITER),
    "write-file-details": Scene(write_file_details, settings=WRITER),
    "running": Scene(running, settings=AUTO | TRUSTED),
    "first-token": Scene(first_token, settings=HANGING),
    "finished": Scene(finished, settings=AUTO | TRUSTED),
    "thinking": Scene(thinking, env={"PARLEY_DEMO_PACE": "0.3"}),
    "thoughts": Scene(thoughts),
    "error": Scene(error, settings=NOBODY),
    "stop": Scene(stop, settings=CLAUDE, env={"PARLEY_DEMO_PACE": "0.02"}),
    "queued": Scene(queued, settings=CLAUDE, env={"PARLEY_DEMO_PACE": "0.02"}),
    "light-queued": Scene(queued, init=LIGHT, settings=CLAUDE, env={"PARLEY_DEMO_PACE": "0.02"}),
    "too-long": Scene(too_long, init=README, settings=CLAUDE),
    "compact": Scene(compact, init=README, settings=CLAUDE, env={"PARLEY_DEMO_PACE": "0.1"}),
    "regenerating": Scene(regenerating),
    "regenerated": Scene(regenerated),
    "compared": Scene(compared),
    "compared-two": Scene(compared_two),
    "compared-wide": Scene(compared, width=140, height=40),
    "compared-waiting": Scene(compared_waiting),
    "compared-running": Scene(compared_running, env={"PARLEY_DEMO_PACE": "0.05"}),
    "completion": Scene(completion),
    "context": Scene(context, settings=CLAUDE),
    "attachment": Scene(attachment),
    "picture-row": Scene(picture_row, settings=AUTO | EXTRA),
    "long-result": Scene(long_result, settings=AUTO | EXTRA | CLAUDE),
    "usage": Scene(usage, init=README, settings=AUTO | TRUSTED),
    "fork": Scene(fork, width=120),
    "settings": Scene(settings, settings=WRONG),
    "tools": Scene(tools, settings=AUTO | TRUSTED),
    "find": Scene(find, settings=CLAUDE),
    "find-words": Scene(find_words, settings=CLAUDE),
    "hidden": Scene(hidden, settings=CLAUDE),
    "trust": Scene(trust),
    "trust-rest": Scene(trust_rest),
    "instructions": Scene(instructions, settings=CLAUDE),
    "instructions-changed": Scene(instructions_changed, settings=CLAUDE),
    "prompts": Scene(prompts),
    "prompt-completion": Scene(prompt_completion),
    "prompt-trust": Scene(prompt_trust),
    "skills-trust": Scene(skills_trust),
    "skill-read": Scene(skill_read),
    "log": Scene(log, settings=AUTO | TRUSTED),
    "request": Scene(request, settings=AUTO | TRUSTED),
    "health": Scene(health),
    "health-end": Scene(health_end),
    "light": Scene(waiting, init=LIGHT),
    "light-finished": Scene(finished, init=LIGHT, settings=AUTO | TRUSTED),
    "narrow": Scene(waiting, width=60),
    "prose": Scene(prose),
    "light-prose": Scene(prose, init=LIGHT),
    "syntax": Scene(syntax),
    "wide": Scene(waiting, width=120),
    "nowrap": Scene(waiting, init="vim.o.wrap = false"),
    "split": Scene(split, init="vim.o.number = true", width=120),
    "habamax": Scene(prose, init="vim.cmd.colorscheme('habamax')"),
    "quiet": Scene(prose, init="vim.cmd.colorscheme('quiet')"),
    "quiet-light": Scene(prose, init=f"{LIGHT} vim.cmd.colorscheme('quiet')"),
    "lunaperche": Scene(prose, init="vim.cmd.colorscheme('lunaperche')"),
}


def main(folder: Path, names: Sequence[str]) -> None:
    """Play scenes and write their pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {model: {COMPARED: answer} for model, answer in ANSWERS.items()}
    with hanging_model(WORDS, own) as model:
        for name in names or SCENES:
            path = folder / f"{name}.svg"
            code = name.removeprefix("marker-")
            shown = marker(chr(int(code, 16))) if code != name else picture(scene(name), model.url)
            path.write_text(shown, encoding="utf-8")


def scene(name: str) -> Scene:
    """The scene of a name, which may ask for a light background."""
    if name in SCENES:
        return SCENES[name]
    dark = SCENES[name.removeprefix("light-")]
    return replace(dark, init=f"{dark.init}\n{LIGHT}")


def picture(scene: Scene, url: str) -> str:
    """Play one scene; `url` is the controllable model's address."""
    wanted = COMMON | models(url) | scene.settings
    init = (
        "vim.o.termguicolors, vim.o.background = true, 'dark'\n"
        f"{scene.init}\nrequire('parley').setup(vim.json.decode([==[{json.dumps(wanted)}]==]))"
    )
    with (
        tempfile.TemporaryDirectory() as home,
        child(
            Path(home), init=init, width=scene.width, height=scene.height, env=dict(scene.env)
        ) as neovim,
    ):
        neovim.command(f"cd {home}")
        if shots := scene.play(neovim):
            return moving(list(shots))
        neovim.until(
            lambda: is_at_rest(neovim) or neovim.variable("parley_status"), "a screen at rest"
        )
        return drawn(neovim)


def models(url: str) -> dict[str, Any]:
    """The controllable model's agents."""
    provider = {"kind": "openai", "base_url": f"{url}/v1", "api": "chat"}
    agents = [
        {"name": name, "provider": "scenes", "model": name.lower()}
        for name in ("Writer", "Hanging", "Careful", "Brief")
    ]
    return {"providers": {"scenes": provider}, "agents": agents}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
