"""Generated transcripts, hostile on purpose: every text may look like structure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from parley.chat import grammar
from parley.chat.transcript import (
    CHOICES,
    RUNNERS,
    Answer,
    Attachment,
    Broken,
    Exchange,
    Note,
    Orphan,
    Proposal,
    Question,
    Result,
    Segment,
    ServerTask,
    Text,
    Thinking,
    ToolCall,
    Transcript,
)

DIGEST = "3f2a" * 16
PICTURE = f"![image/png 12 kB](stocks.assets/{DIGEST}.png)"
LONG_TEXT = f"[1.2 MB](stocks.assets/{DIGEST}.txt)"
MARKERISH = [
    *[
        PICTURE,
        f"\\{PICTURE}",
        f" {PICTURE}",
        f"{PICTURE} ",
        LONG_TEXT,
        PICTURE.upper(),
        "![",
        "](",
    ],
    *grammar.MARKERS.values(),
    *[
        "🛠:",
        "❓\ufe0f:",
        "❓:[yA] `{",
        ">> Please choose (yA",
        "🧠:",
        "📝:",
        "🔒:",
        "🛠️: [a][call_1]",
    ],
    *["\\", "\\💬:", "\\\\❓:", "```", "````", "`", "---", "> ", ">"],
    *["\r", "\u2028", "\ufeff", " ", "\t", "\u00a0", "\n"],
]
SPACES = [
    *[chr(code) for code in range(0x1_0000) if chr(code).isspace() and chr(code) != "\n"],
    *["\u200b", "\u2060", "\ufeff", "\u180e"],
]
"""All Unicode spaces, and other characters that look like spaces."""
FIT = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
lines = st.lists(
    st.one_of(
        st.sampled_from(MARKERISH),
        st.sampled_from(SPACES),
        st.text(FIT, max_size=6),
    ),
    max_size=4,
).map("".join)
any_text = st.lists(lines, max_size=5).map("\n".join)


def _build(kind: Any) -> Any:
    """A value from any text; texts that its constructor refuses are dropped."""

    def build(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return None

    return build


texts: st.SearchStrategy[Text] = any_text.map(_build(Text)).filter(lambda x: x is not None)
notes: st.SearchStrategy[Note] = any_text.map(_build(Note)).filter(lambda x: x is not None)
call_ids = st.one_of(
    st.sampled_from(["call_1", "call_2", "toolu_01A"]),
    st.from_regex(r"[A-Za-z0-9_.:-]{1,128}", fullmatch=True),
)
json_text = st.one_of(
    st.sampled_from(
        [
            "",
            "{}",
            '{"query":"x"}',
            '{"n":1.0}',
            '{"n":123456789012345678901234567890}',
            "null",
            "[",
            '{"a": "`"}',
        ]
    ),
    st.text(max_size=12),
)
extras = st.sampled_from(["", "", "", '{"extra_content":{"google":{"thought_signature":"abc="}}}'])
calls = st.builds(
    ToolCall,
    id=call_ids,
    name=st.one_of(
        st.sampled_from(["web_search", "server__tool"]), st.text(min_size=1, max_size=10)
    ),
    arguments=json_text,
    index=st.none() | st.integers(0, 3),
    extra=extras,
)
bodies = st.one_of(st.sampled_from(["", "a", "a\n", "`", " a", "```", "🛠️:", "\n"]), any_text)
labels = st.one_of(
    st.sampled_from(["image/png 12 kB", "1.2 MB", "", "a (b)", "\\", "!", " ", "![", "my cat"]),
    st.text(FIT),
)


def _attached(suffixes: list[str]) -> st.SearchStrategy[Attachment]:
    """Attachments with these file extensions, some in oddly named folders."""
    names = st.sampled_from(
        ["stocks", "2026-11-22.10-11-12", "a b", "x.assets", ".", "a) [b](c", "](", "é"]
    )
    digests = st.sampled_from([DIGEST, "0" * 64])
    paths = st.builds("{}.assets/{}.{}".format, names, digests, st.sampled_from(suffixes))
    fitting = labels.map(lambda label: re.sub(r"[\[\]\n\r]", "", label))
    return st.builds(Attachment, label=fitting, path=paths)


pictures = _attached(["png", "jpg", "gif", "webp", "pdf"])
attachments = st.one_of(pictures, pictures, _attached(["txt"]))
results = st.builds(
    Result,
    status=st.sampled_from(["ok", "error", "refused"]),
    body=bodies,
    attachments=st.one_of(st.just(()), st.just(()), st.lists(attachments, max_size=3).map(tuple)),
)
choices = st.none() | st.sampled_from(CHOICES)
tasks = st.builds(ServerTask, id=st.from_regex(r"[!-_a-~]{1,40}", fullmatch=True))
proposals = st.builds(
    Proposal,
    call=calls,
    choice=choices,
    result=st.none() | results,
    task=st.none() | st.none() | tasks,
)
ran = st.builds(Proposal, call=calls, result=st.none() | results, ran_by=st.sampled_from(RUNNERS))
"""Calls that the provider or an agent ran."""
signatures = st.one_of(st.just(""), st.from_regex(r"[A-Za-z0-9+/=\]]{1,30}", fullmatch=True))
thinkings = st.one_of(
    st.builds(
        Thinking,
        provider=st.sampled_from(["anthropic", "openai"]),
        model=st.sampled_from(["claude-sonnet-5-5", "us.anthropic.claude-v1:0"]),
        text=st.none() | any_text,
        signature=signatures.filter(lambda s: not s.startswith("redacted")),
    ),
    st.builds(
        Thinking,
        provider=st.just("anthropic"),
        model=st.just("claude-sonnet-4-5"),
        text=st.none(),
        signature=signatures.filter(bool),
        redacted=st.just(True),
    ),
)
broken = st.sampled_from(
    [
        Broken("proposal", "❓: {nope"),
        Broken("proposal", "❓:[yn] `{}`", "yn"),
        Broken("thinking", "🧠:[open"),
    ]
)


def _apart(parts: Sequence[Segment | Attachment]) -> tuple[Any, ...]:
    """Whether no two texts are adjacent."""
    kept = list[Segment | Attachment]()
    for part in parts:
        if not (kept and isinstance(part, Text) and isinstance(kept[-1], Text)):
            kept.append(part)
    return tuple(kept)


text_parts = st.lists(st.one_of(texts, notes), max_size=3).map(_apart)
question_parts = st.lists(st.one_of(texts, notes, pictures), max_size=4).map(_apart)
questions = st.builds(Question, parts=question_parts)
agents = st.none() | st.sampled_from(["Claude-Sonnet", "a b", " x ", "💬:"])
segments = st.lists(
    st.one_of(texts, notes, thinkings, proposals, proposals, ran, broken), max_size=6
).map(_apart)
answers = st.builds(Answer, agent=agents, segments=segments)
exchanges = st.builds(
    Exchange, question=questions, answers=st.lists(answers, max_size=2).map(tuple)
)
headless = st.builds(
    Exchange, question=st.none(), answers=st.lists(answers, min_size=1, max_size=2).map(tuple)
)
YAMLISH = [
    *[
        "!!bool",
        "!!int",
        "!!float",
        "!!timestamp",
        "!!binary",
        "!!set",
        "!!omap",
        "!!pairs",
        "!!seq",
        "!!map",
    ],
    *[
        "!!str",
        "!!null",
        "!!merge",
        "!!value",
        "!x",
        "!!python/name:os.system",
        "&a",
        "*a",
        "<<",
        "=",
    ],
    *[
        "topic",
        "temperature",
        "max_tokens",
        "tools",
        "thinking",
        "tags",
        "tool_mode",
        "max_tool_calls",
    ],
    *[
        ":",
        ": ",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "'",
        '"',
        "|\n",
        ">\n",
        "#",
        "...",
        "%YAML 1.1",
    ],
    *["1", "-1", "1:1", "1e9", "0x", "0b_", ".inf", "2001-01-01", "true", "off", "~"],
    *[" ", "  ", "\n", "\n  ", "\n- ", "\t", "\u00a0", "\x85", "\u2028", "\x01", "\\", "é"],
]
yaml_texts = st.one_of(
    *(st.lists(st.sampled_from(YAMLISH), max_size=14).map(gap.join) for gap in ("", " ")),
    st.text(max_size=40),
)
"""Front matter after a typing mistake or an attack."""
front_matters = st.none() | st.sampled_from(
    ["", "topic: x", "topic: x\nagent: Demo\n", "- - -", "\\💬: no"]
)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    first = draw(st.lists(headless, max_size=1))
    rest = draw(st.lists(exchanges, max_size=3))
    preamble, front_matter = draw(text_parts), draw(front_matters)
    try:
        return Transcript(tuple(first + rest), preamble, front_matter)
    except ValueError:
        return Transcript(tuple(first + rest), (), front_matter)


@st.composite
def answers_with_orphans(draw: st.DrawFn) -> Answer:
    """Answers with results for none of their calls; most have the id of a nearby call."""
    near = st.sampled_from(["call_1", "call_2"])
    call = st.builds(replace, calls, id=near)
    made = st.builds(
        Proposal, call=call, choice=choices, result=st.none() | results, task=st.none() | tasks
    )
    orphan = st.builds(Orphan, name=st.just("web_search"), id=near | call_ids, result=results)
    parts = draw(st.lists(st.one_of(texts, notes, made, made, orphan, orphan, broken), max_size=8))
    kept = list[Segment]()
    for part in _apart(parts):
        try:
            Answer(None, tuple(_apart([*kept, part])))
        except ValueError:
            continue  # not an orphan: a call in its round is open
        kept.append(part)
    return Answer(None, _apart(kept))


files = st.lists(lines, max_size=25).map("\n".join) | st.text(max_size=60)
"""Any text as a file: the outcome of a manual edit, a merge or an attack."""

CALL = '{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"{}"}}'
MARKED = [
    *[
        "💬: question",
        "💬:",
        "🤖:[Claude]",
        "🤖:",
        "🤖:",
        "🤖:[]",
        "🤖:[a]b",
        "text",
        "📝: summary",
        "",
    ],
    *[PICTURE, f"\\{PICTURE}", f"🛠️: [web_search][call_1] {PICTURE} {LONG_TEXT}", f"🔒: {PICTURE}"],
    *[f"❓:{mark} `{CALL}`" for mark in ("", "[yA]", "[yn]", "[?]")],
    *[f'❓: `{{"index":{index},{CALL[1:]}`' for index in (0, 1, "true")],
    *[
        "❓: {broken",
        "❓:[yn] {broken",
        "🛠️: [web_search][call_1]",
        "🛠️: [web_search][call_1][error]",
    ],
    *["🛠️: [other][call_2][refused]", "🛠️: no header", "`result`", "```", "````"],
    *["🛠️: [web_search][call_1][pending]", "🛠️: [other][call_2][pending] ", "``a b``"],
    *[
        "🧠:[anthropic:claude-sonnet-4-5 c2ln]",
        "🧠:[anthropic:m redacted x]",
        "🧠:[",
        "> thought",
        ">",
    ],
    *[
        "🔒: note",
        "🔒:",
        "🔒: [Stopped: user]",
        ">> Please choose (yA",
        "---",
        "\\💬: text",
        "\ufeff",
    ],
]
marked_files = st.lists(st.one_of(*[st.sampled_from(MARKED)] * 3, lines), max_size=16).map(
    "\n".join
)
"""Files that consist of whole lines with markers, in any order: most of them partly make sense."""
