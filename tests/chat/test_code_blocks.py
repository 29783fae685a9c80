"""Code blocks in an answer's text, and the files that they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.chat.code_blocks import CodeBlock, block_at, code_blocks, named_paths
from parley.chat.grammar import escape
from parley.chat.transcript import NOWHERE, Span
from tests.examples import examples

NAMES = {
    ("python src/a.py", ""): ("src/a.py",),
    ("src/a.py", ""): ("src/a.py",),
    ("a.py", ""): ("a.py",),
    ("python:src/a.py", ""): ("src/a.py",),
    ("12:15:src/a.py", ""): ("src/a.py",),
    ("python src/a.py:10-20", ""): ("src/a.py",),
    ('python title="src/a.py"', ""): ("src/a.py",),
    ("python title='src/a.py' showLineNumbers", ""): ("src/a.py",),
    ('{.python filename="src/a.py"}', ""): ("src/a.py",),
    ("python", "**src/a.py**"): ("src/a.py",),
    ("python", "`src/a.py`"): ("src/a.py",),
    ("python", "src/a.py:"): ("src/a.py",),
    ("python", "### 1. `src/a.py`"): ("src/a.py",),
    ("python", "### `src/__init__.py`:"): ("src/__init__.py",),
    ("python", "**File: `src/a.py`**"): ("src/a.py",),
    ("python", "`src/a.py:3-10` (8 lines)"): ("src/a.py",),
    ("python", "Replace the body of `run` in `src/a.py`:"): ("src/a.py",),
    ("make", "**Makefile**"): ("Makefile",),
    ("python lib/b.py", "src/a.py:"): ("lib/b.py", "src/a.py"),
    ("python", "This is how `src/a.py` works."): (),
    ("python", "Move `src/a.py` to `src/b.py`:"): (),
    ("python", "For example:"): (),
    ("vb.net", ""): (),
    ("python 3.11", ""): (),
    ("c++", "See https://example.org/a.py:"): (),
    ("python", "`a\u202eb.py`"): (),
    ("", ""): (),
}


@pytest.mark.parametrize(("info", "above"), NAMES)
def test_a_block_names_its_file_in_its_fence_or_in_the_line_above(info: str, above: str) -> None:
    assert named_paths(CodeBlock(info, (), above, NOWHERE)) == NAMES[info, above]


def test_blocks_are_found_with_their_rows_and_the_line_above() -> None:
    text = """Some words
  ~~~ x.py ```
   one
  two

 three
  ```
  ~~~~

```` md

```
💬: not a question
```
````
```py
no end
"""
    lines = [line for part in text.split("\n") for line in escape(part)]
    first, second = list(code_blocks(lines))
    assert first == CodeBlock(
        "x.py ```", (" one", "two", "", "three", "```"), "Some words", Span(1, 8)
    )
    md = ("", "```", "💬: not a question", "```")
    assert second == CodeBlock("md", md, "", Span(9, 15))
    assert [block_at(lines, row) for row in (0, 1, 7, 8, 9, 14, 15)] == [
        *(None, first, first, None, second, second, None)
    ]


LINES = st.lists(
    st.sampled_from(["a", "", "``", "💬: b", "\\💬: c", "  d", "~~~", "\t`"]), max_size=6
)


@examples(100)
@given(st.lists(st.tuples(LINES, st.sampled_from(["", "py a.py", "sh"])), max_size=4))
def test_every_block_is_read_as_the_model_wrote_it(blocks: list[tuple[list[str], str]]) -> None:
    written = list[str]()
    for lines, info in blocks:
        written += "text", f"```{info}", *lines, "```"
    file = [line for part in written for line in escape(part)]
    read = list(code_blocks(file))
    assert [(list(block.lines), block.info) for block in read] == blocks
    assert [
        block_at(file, row) for block in read for row in (block.span.start, block.span.end - 1)
    ] == [block for block in read for _ in range(2)]
    assert all(block_at(file, block.span.end) != block for block in read)
