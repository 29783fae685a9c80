"""A chat as plain Markdown: it has the whole conversation, and each text is self-contained."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from markdown_it import MarkdownIt

from parley.chat.reader import parse
from parley.chat.transcript import Answer, Exchange, Question, Text, Transcript
from parley.conversion.exports.plain_markdown import markdown_page
from parley.text import visible
from tests.strategies import transcripts
from tests.test_transcripts import corpus

CHAT = """---
topic: Stocks & *prices*
---

💬: What is **GOOGL**?
🔒: my own note

🤖:[Claude_4]

🧠:[anthropic:m sig]
> I should look.

❓:[ya] `{"id":"c","function":{"name":"web_search","arguments":"{\\"q\\": 1}"}}`

🛠️: [web_search][c] ![image/png 2 B](a b.assets/DIGEST.png)

````
```
it is $911
````

❓:[yn] `{"id":"d","function":{"name":"rm","arguments":"{}"}}`

🛠️: [rm][d][refused]

`The user declined this call.`

It is:

```python
print(911)

📝: a price was asked for

🔒: [Stopped: by the user]

💬: And?
""".replace("DIGEST", "0" * 64)

PAGE = """# Stocks \\& \\*prices\\*

## Question

What is **GOOGL**?

## Answer of Claude\\_4

**Thinking**

```
I should look.
```

**Tool call `web_search`**

```json
{"q": 1}
```

**Result of `web_search`**

````
```
it is $911
````

![image/png 2 B](<a b.assets/DIGEST.png>)

**Tool call `rm`**

```json
{}
```

**`rm` did not run**

```
The user declined this call.
```

It is:

```python
print(911)

**Summary**: a price was asked for
```

> **Stopped**: by the user

## Question

And?
""".replace("DIGEST", "0" * 64)


def blocks(page: str) -> tuple[list[str], list[str]]:
    """The texts of a page's second-level headings, and of its code blocks."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    pairs = pairwise(tokens)
    headings = [
        after.content for token, after in pairs if (token.type, token.tag) == ("heading_open", "h2")
    ]
    return headings, [token.content for token in tokens if token.type == "fence"]


def test_a_chat_becomes_headings_and_blocks_for_readers_without_its_markers() -> None:
    assert markdown_page(parse(CHAT), "x") == PAGE


def test_a_text_with_an_unclosed_construct_becomes_a_code_block() -> None:
    question, answer = Question((Text("why?"),)), Answer(None, (Text("a <pre>\n\n<pre>\nb"),))
    page = markdown_page(Transcript((Exchange(question, (answer,)),)), "x")
    assert page.endswith("## Answer\n\n```\na <pre>\n\n<pre>\nb\n```\n")


def test_calls_that_others_ran_say_so_and_hide_what_only_a_provider_understands() -> None:
    searched = markdown_page(corpus("provider_search"), "x")
    assert "**Tool call `web_search`, run by the provider**" in searched
    assert "**Result of `web_search`**\n\n```\nNeovim news: https://neovim.io/news/" in searched
    assert ".txt" not in searched
    worked = markdown_page(corpus("agent_calls"), "x")
    assert "**Tool call `Bash`, run by the agent**" in worked
    assert "**`Bash` failed**" in worked


def test_unreadable_lines_and_orphan_results_are_included() -> None:
    lines = [
        "💬: *t*",
        "🤖:",
        "❓: {no}",
        "🛠️: [x`y][c]",
        "`lost`",
        "🛠️: [x][c]",
        "`lost`",
        "",
        "[x](y) & <b>",
    ]
    page = markdown_page(parse("\n\n".join(lines)), "x")
    assert page.startswith("# \\*t\\*\n")
    assert "**An unreadable line**\n\n```\n❓: {no}\n```" in page
    assert page.count("without a call**\n\n```\nlost\n```") == 2
    assert page.endswith("[x](y) & <b>\n")


@given(transcripts())
@example(parse(CHAT.replace("What is", "<!-- hidden")))
def test_no_text_hides_the_next_speaker_or_a_call(transcript: Transcript) -> None:
    headings, code = blocks(markdown_page(transcript, "x"))
    questions = [e.question for e in transcript.exchanges if e.question and e.question.text]
    answers = [answer for e in transcript.exchanges for answer in e.answers]
    assert len([h for h in headings if h.startswith(("Question", "Answer"))]) >= len(
        questions
    ) + len(answers)
    calls = [p.call.arguments for answer in answers for p in answer.calls]
    bodies = [p.result.body for answer in answers for p in answer.proposals if p.result]
    assert {f"{visible(text)}\n" for text in (*calls, *bodies)} <= set(code)
