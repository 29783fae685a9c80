"""Rereading a changed place gives the same result as reading the whole file."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from parley.chat.reader import parse_lines
from parley.chat.reread import LineChange, reread

LINES = st.sampled_from(
    [
        *(
            "\U0001f4ac: ask",
            "\U0001f4ac:",
            "\U0001f916:[Demo]",
            "\U0001f916:",
            "text",
            f"![image/png 12 kB](a.assets/{'0' * 64}.png)",
            f"\\![image/png 12 kB](a.assets/{'0' * 64}.png)",
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
            f"\U0001f6e0\ufe0f: [f][c][error] [1 MB](a.assets/{'0' * 64}.txt)",
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
CALLS = st.builds(
    '❓:{} `{{{}"id":"{}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}`'.format,
    st.sampled_from(["", "[ya]", "[provider]"]),
    st.sampled_from(["", '"index":0,', '"index":1,']),
    st.sampled_from(["c", "d"]),
)
RESULTS = st.builds("\U0001f6e0\ufe0f: [f][{}]".format, st.sampled_from(["c", "d"]))
ROUNDS = st.lists(
    st.one_of(
        CALLS,
        RESULTS.map(lambda head: f"{head}\n\n`body`"),
        RESULTS.map(lambda head: f"{head}[pending]\n\n`task`"),
        LINES,
        st.sampled_from(["", "\U0001f512: note", "\U0001f9e0:[a:b]"]),
    ),
    max_size=12,
).map(lambda parts: "\n".join(parts).split("\n"))


@example(["\U0001f4ac: ask", ">> Please choose ("], [], [], ["", "text"])
@example(["\U0001f4ac: ask"], ["text"], [], ["\U0001f4ac: ask", "\U0001f916:", "text"])
@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_rereading_equals_reading(
    head: list[str], old: list[str], new: list[str], tail: list[str]
) -> None:
    compare(head, old, new, tail)


def compare(head: list[str], old: list[str], new: list[str], tail: list[str]) -> None:
    change = LineChange(len(head), len(head) + len(old), len(new))
    lines = [*head, *new, *tail]
    after, fresh = reread(parse_lines([*head, *old, *tail]), change, lines), parse_lines(lines)
    assert after == fresh
    assert after.problems == fresh.problems
    assert repr(_spans(after)) == repr(_spans(fresh))


@settings(max_examples=300)
@given(ROUNDS, ROUNDS, ROUNDS, ROUNDS)
def test_rereading_an_answer_equals_reading_it(
    head: list[str], old: list[str], new: list[str], tail: list[str]
) -> None:
    compare(["\U0001f4ac: ask", "\U0001f916:[Demo]", *head], old, new, tail)


@given(st.data(), TEXTS)
def test_consecutive_changes_combine_into_one(data: st.DataObject, lines: list[str]) -> None:
    def change_of(lines: list[str]) -> tuple[LineChange, list[str]]:
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(lines))] * 2)))
        new = data.draw(st.lists(LINES, max_size=4))
        return LineChange(start, end, len(new)), [*lines[:start], *new, *lines[end:]]

    first, between = change_of(lines)
    second, after = change_of(between)
    both = first.then(second)
    assert len(after) == len(lines) + both.shift
    assert after[: both.start] == lines[: both.start]
    assert after[both.start + both.count :] == lines[both.end :]


def test_only_changed_exchanges_are_read_again() -> None:
    lines = ["\U0001f4ac: ask", "", "\U0001f916:[Demo]", "", "text", ""] * 5
    before = parse_lines(lines)
    after = reread(before, LineChange(16, 17, 1), [*lines[:16], "other text", *lines[17:]])
    assert [one is other for one, other in zip(before.exchanges, after.exchanges, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_only_changed_rounds_are_read_again() -> None:
    call = '❓:[ya] `{{"index":0,"id":"c{}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}`'
    lines = ["\U0001f4ac: ask", "", "\U0001f916:[Demo]", ""]
    for number in range(5):
        lines += [call.format(number), "", f"\U0001f6e0\ufe0f: [f][c{number}]", "", "`body`", ""]
    before, end = parse_lines(lines), len(lines)
    after = reread(before, LineChange(end, end, 1), [*lines, "text"])
    one, other = (each.exchanges[0].answers[0].segments for each in (before, after))
    assert [a is b for a, b in zip(one, other, strict=False)] == [True] * 4 + [False]
    assert len(other) == 6


def _spans(transcript: object) -> object:
    from dataclasses import fields, is_dataclass

    if is_dataclass(transcript):
        return [(f.name, _spans(getattr(transcript, f.name))) for f in fields(transcript)]
    return [_spans(each) for each in transcript] if isinstance(transcript, tuple) else transcript
