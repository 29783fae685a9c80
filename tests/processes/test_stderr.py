"""The last lines of a child's stderr."""

import os

import pytest

from parley.processes.stderr import LINES, StderrTail


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\nlast without end", ["one", "last without end"]),
        ("é\n".encode() + b"\xff\n", ["é", "\ufffd"]),
        (b"\x1b[31mred\n", [r"\x1b[31mred"]),
        (b"x" * 5000 + b"\nnext\n", ["x" * 1000, "next"]),
        (
            b"".join(b"%d\n" % number for number in range(1000)),
            [str(n) for n in range(1000 - LINES, 1000)],
        ),
    ],
)
async def test_the_last_lines_are_kept_for_any_cuts(output: bytes, lines: list[str]) -> None:
    for step in (1, 7, max(len(output), 1)):
        tail = StderrTail()
        end = tail.open().fileno()
        for at in range(0, len(output), step):
            os.write(end, output[at : at + step])
            if step > 1:
                tail.drain()
        tail.close()
        assert list(tail.lines)[-len(lines) or LINES :] == lines


async def test_opening_again_forgets_the_lines_of_an_earlier_child() -> None:
    tail = StderrTail()
    os.write(tail.open().fileno(), b"old, half\xc3")
    os.write(tail.open().fileno(), b"new\n")
    tail.close()
    tail.close()
    assert list(tail.lines) == ["new"]
