"""Exports a chat as a self-contained HTML page, which contains no scripts and fetches nothing.

Knows the transcript and the page; `markdown_html` renders Markdown. Text from a model or a tool
stays text: HTML in such text is shown as written, and pictures become links.
If the page fetched pictures, the author of their address would learn that the page was read.
Pictures stored next to the chat are embedded in the page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from parley.chat.front_matter import topic
from parley.chat.rounds import read_notice
from parley.chat.transcript import (
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
    Text,
    Thinking,
    Transcript,
)
from parley.conversion.exports.markdown_html import CODE_COLOURS, markdown_renderer
from parley.text import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_STYLE = """
:root { color-scheme: light dark; --dim: #767676; --line: #8884; --back: #8881; }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
section { border-left: 3px solid var(--line); margin: 1.5rem 0; padding-left: 1rem; }
section.question { border-color: #3b82f6; }
section.answer { border-color: #22a06b; }
.who, .note { color: var(--dim); font-size: .85rem; }
pre, code { font-family: ui-monospace, monospace; font-size: .9em; }
pre { background: var(--back); border-radius: 4px; overflow-x: auto; padding: .6rem .8rem; }
details { background: var(--back); border-radius: 4px; margin: .6rem 0; padding: .3rem .8rem; }
details pre { background: none; padding: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; }
blockquote { border-left: 3px solid var(--line); margin-left: 0; padding-left: 1rem; }
img { max-width: 100%; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .2rem .6rem; }
"""
_SECONDS = 2.0
"""The time for colouring the page's code."""
_NOTHING_IS_FETCHED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_OUTCOMES = {"ok": "result", "error": "failed", "refused": "did not run"}


def html_page(
    transcript: Transcript, title: str, pictures: Mapping[str, bytes] | None = None
) -> str:
    """The page; `title` is used if the chat has no topic, and `pictures` maps paths to stored
    pictures.

    The user's notes are left out, as in a request.
    """
    name, page = topic(transcript) or title, _Page(markdown_renderer(_SECONDS), pictures or {})
    parts = (part for exchange in transcript.exchanges for part in page.exchange(exchange))
    body = "\n".join((*page.preamble(transcript), *parts))
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_IS_FETCHED}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(name)}</title>\n<style>{_STYLE}{CODE_COLOURS}</style>\n</head>\n"
        f"<body>\n<h1>{_text(name)}</h1>\n{body}\n</body>\n</html>\n"
    )


@dataclass(frozen=True)
class _Page:
    """Renders the parts of the page."""

    markdown: MarkdownIt
    pictures: Mapping[str, bytes]

    def preamble(self, transcript: Transcript) -> Iterator[str]:
        yield from (
            self._rendered(part.text) for part in transcript.preamble if isinstance(part, Text)
        )

    def exchange(self, exchange: Exchange) -> Iterator[str]:
        if exchange.question and exchange.question.text:
            yield _section("question", "Question", self._question(exchange.question))
        for answer in exchange.answers:
            who = f"Answer of {answer.agent}" if answer.agent else "Answer"
            yield _section("answer", who, self._answer(answer))

    def _question(self, question: Question) -> Iterator[str]:
        for part in question.parts:
            if isinstance(part, Text):
                yield self._rendered(part.text)
            elif isinstance(part, Attachment):
                yield f"<p>{self._picture(part)}</p>"

    def _answer(self, answer: Answer) -> Iterator[str]:
        for segment in answer.segments:
            if html := self._segment(segment):
                yield html

    def _segment(self, segment: Segment) -> str:
        match segment:
            case Text(text):
                return self._rendered(text)
            case Thinking(text=text):
                return _details("Thinking", text) if text else ""
            case Proposal():
                return self._call(segment)
            case Orphan(name, _, result):
                return self._result(f"Result of {name} without a call", result)
            case Broken(text=text):
                return _details("An unreadable line", text)
            case Note(text):
                notice = read_notice(segment)
                return f'<p class="note">{_text(notice.text)}</p>' if notice else ""

    def _call(self, proposal: Proposal) -> str:
        name, result = proposal.call.name, proposal.readable_result
        by = f", run by the {proposal.ran_by}" if proposal.ran_by else ""
        arguments = _details(f"Tool call {name}{by}", proposal.call.arguments)
        return arguments + (
            f"\n{self._result(f'{name}: {_OUTCOMES[result.status]}', result)}" if result else ""
        )

    def _result(self, title: str, result: Result) -> str:
        return _details(title, result.body, (self._picture(a) for a in result.attachments))

    def _picture(self, attachment: Attachment) -> str:
        content = self.pictures.get(attachment.path)
        if content is None or not attachment.media_type.startswith("image/"):
            return _text(f"[{attachment.label}]" if attachment.is_text else attachment.text)
        url = f"data:{attachment.media_type};base64,{b64encode(content).decode()}"
        return f'<img src="{url}" alt="{_text(attachment.label)}">'

    def _rendered(self, text: str) -> str:
        rendered: Any = self.markdown.render(text)
        return str(rendered).rstrip("\n")


def _section(kind: str, who: str, parts: Iterator[str]) -> str:
    inside = "\n".join(parts)
    return (
        f'<section class="{kind}" dir="auto">\n<div '
        f'class="who">{_text(who)}</div>\n{inside}\n</section>'
    )


def _details(title: str, text: str, pictures: Iterable[str] = ()) -> str:
    shown = "".join(f"\n<p>{picture}</p>" for picture in pictures)
    inside = f"<summary>{_text(title)}</summary>\n<pre>{escape(visible(text))}</pre>{shown}"
    return f"<details>\n{inside}\n</details>"


def _text(text: str) -> str:
    return escape(visible(text))
