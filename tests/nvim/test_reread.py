"""Reading a text that differs little from one that is known is reading the text."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from parley.chat.reader import parse
from parley.engine import Snapshot
from parley.nvim import reread as module
from parley.nvim.reread import reread

LINES = st.sampled_from(
    [
        *(
            "\U0001f4ac: ask",
            "\U0001f4ac:",
            "\U0001f916:[Demo]",
            "\U0001f916:",
            "text",
            "",
            "---",
            "\U0001f512: note",
        ),
        *(
            '❓: `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`',
            "❓: broken",
            "\\\U0001f4ac: x",
        ),
        *(
            "\U0001f6e0\ufe0f: [f][c]",
            "`body`",
            "```",
            "\U0001f9e0:[a:b]",
            "> thought",
            ">> Please choose (",
            "x\0y",
        ),
    ]
)
TEXTS = st.lists(LINES, max_size=30)


@example(["\U0001f4ac: ask", ">> Please choose (", "\U0001f4ac:"], [], [], ["", "text"])
@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_rereading_is_reading(head: list[str], old: list[str], new: list[str], tail: list[str]) -> None:
    module._WORTH_IT, before = 0, Snapshot("\n".join([*head, *old, *tail, ""]), 0)
    assert before.transcript is not None
    text = "\n".join([*head, *new, *tail, ""])
    after, fresh = reread(before, text, 0), parse(text)
    assert after.transcript == fresh
    assert after.transcript.problems == fresh.problems
    assert repr(_spans(after.transcript)) == repr(_spans(fresh))


def _spans(transcript: object) -> object:
    from dataclasses import fields, is_dataclass

    if is_dataclass(transcript):
        return [(f.name, _spans(getattr(transcript, f.name))) for f in fields(transcript)]
    return [_spans(each) for each in transcript] if isinstance(transcript, tuple) else transcript
