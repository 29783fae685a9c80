"""Finds the sentences in documents, messages and docstrings, and the phrases that plain English
avoids.

`tests/test_english.py` knows which places must follow the rules.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parent.parent
FEWEST_WORDS, MOST_WORDS = 6, 30
MOST_COLUMNS = 100

# One pattern per rule. Some also match correct English, such as "shows what changed".
RULES = {
    "if or when, not where": re.compile(
        r"(^|[.;:] )Where\b|[,;(] where (an?|the|it|this|that|one|they|there)\b"
        r"|\bwhere (there|nobody|none|one|it|that) (is|are|was|has|can)\b"
    ),
    "name the noun, not what": re.compile(
        r"(^|[.;(] )What \w+|[,;] what\b"
        r"|\b(of|with|by|from|for|all|than|in|to|beside|behind|on) what\b"
        r"|\b(keeps?|reads?|sends?|takes?|gets?|is) what\b"
        r"|\bwhatever\b"
    ),
    "a pronoun follows its noun": re.compile(
        r"\b([Tt]hose|[Tt]he ones?|[Oo]nes|[Oo]ne(?! of)) (that|which|who|of|in|for|with|from|without|by)\b"
        r"|\b(that|those) of\b"
    ),
    "subject, verb, object": re.compile(
        r"(^|[.;:] )(Of [^,.;:]{1,60}(,| (only|the|it|one|all|that|no) )"
        r"|(Needed|Told|Kept|Shown|Asked|Left) (is|are)\b)"
        r"|(^|[.;] )(Into|Behind|Under|In|On) [^,.]{1,40} (goes|go|stands?|comes?)\b"
    ),
    "the field's verb": re.compile(
        r"\b(anew|stands?|stood|lies|behind|beside|meanwhile|mend\w*|heeds?|br(ings?|ought) (in|along)"
        r"|(goes|go|went) on(?! to)|moves? on|by now|for want of)\b"
        r"|(?<![Tt]here )\b(is|are|was|were) (no|none)\b(?! (longer|more|less|better))"
    ),
    "two nouns make a compound": re.compile(
        r"\b([Ff]older|[Ff]ile|[Ll]ine|[Bb]lock|[Pp]ort|[Pp]rogram|[Tt]able|[Tt]est)s? of (the |an? )?"
        r"(chat|setting|server|tool|code|JSON|choice|command|`?PATH)\w*"
    ),
    "say who acts": re.compile(r"\b([Nn]obody|[Ss]omebody|[Ww]hoever|[Aa]nybody|[Ww]hom)\b"),
}
LONG = "one thought a sentence"
QUESTION_EXEMPT = {"if or when, not where", "name the noun, not what"}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, with its place (`path:line` of its paragraph)."""

    place: str
    text: str


def flaws(sentence: str) -> list[str]:
    """The rules that a sentence breaks, as far as patterns can tell."""
    is_question = sentence.rstrip(")`\"'").endswith("?")
    broken = [
        rule
        for rule, pattern in RULES.items()
        if pattern.search(sentence) and not (is_question and rule in QUESTION_EXEMPT)
    ]
    if is_long(sentence):
        broken.append(LONG)
    return broken


def is_long(sentence: str) -> bool:
    return len(sentence.split()) > MOST_WORDS or sentence.count("; ") > 1


# --- Sentences ------------------------------------------------------------------------------------

_END = re.compile(r"(?<=[.!?:])[)\"'`*_]* +(?=[\"'`*_(\[]*[A-Z0-9`])|(?<=[.!?])[)\"'`*_]* +(?=`)")
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|No)\.[)\"'`*_]*$")


def split(paragraph: str) -> Iterator[str]:
    """The sentences of one paragraph, each on one line; phrases of a few words are left out."""
    text = re.sub(r"\s+", " ", paragraph).strip()
    start = 0
    for end in [*_END.finditer(text), None]:
        stop = end.end() if end else len(text)
        if end and _ABBREVIATED.search(text[start : end.start()]):
            continue
        if len(text[start:stop].split()) >= FEWEST_WORDS:
            yield text[start:stop].strip()
        start = stop


def _plain(text: str) -> str:
    """Text without code, link targets and quoted examples, which are exempt."""
    text = re.sub(r"`[^`]*`", "`x`", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r'"[^"]{0,200}"', '"x"', text)


class _Paragraphs:
    """Gathers a paragraph's lines and splits them into sentences at its end."""

    def __init__(self, name: str) -> None:
        self._name, self._start, self._lines = name, 1, list[str]()

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, line: str, number: int) -> None:
        if not self._lines:
            self._start = number
        self._lines.append(line)

    def end(self) -> Iterator[Sentence]:
        for each in split(_plain(" ".join(self._lines))):
            yield Sentence(f"{self._name}:{self._start}", each)
        self._lines.clear()


_FENCE = re.compile(r"(`{3,}|~{3,})")
_ITEM = re.compile(r"([-*+]|\d+\.) +")


def of_markdown(text: str, name: str) -> Iterator[Sentence]:
    """Sentences in paragraphs, list items and table cells; not in headings, fences and quotes."""
    paragraph = _Paragraphs(name)
    for number, line in _outside_fences(text):
        if not line or line.startswith(("#", ">", "<", "![")):
            yield from paragraph.end()
        elif line.startswith("|"):
            for cell in line.strip("|").split(" | "):
                yield from paragraph.end()
                paragraph.add(re.sub(r"^[-: |]+$", "", cell), number)
            yield from paragraph.end()
        else:
            if item := _ITEM.match(line):
                yield from paragraph.end()
            paragraph.add(line[item.end() :] if item else line, number)
    yield from paragraph.end()


def _outside_fences(text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and lines without their indentation; a fence counts as one blank line."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if fence:
            fence = "" if bare.startswith(fence) and not bare.strip("`~") else fence
        elif opening := _FENCE.match(bare):
            fence = opening[1]
            yield number, ""
        else:
            yield number, bare


_HELP_ENTRY = re.compile(r"(?:\S.{0,22}?|  \S.{0,32}?)\s{2,}(?=\S)")
_HELP_HEADING = re.compile(r"[=-]{20,}|\d+\. .*$|.*~\s*$")


def of_help(text: str, name: str) -> Iterator[Sentence]:
    """Sentences in a help page; not in tags, examples, headings and the first column of lists."""
    paragraph = _Paragraphs(name)
    for number, line in _outside_examples(text):
        if not line.strip() or _HELP_HEADING.match(line):
            yield from paragraph.end()
            continue
        entry = _HELP_ENTRY.match(line)
        if entry or re.match(r":|<|`", line):
            yield from paragraph.end()
        paragraph.add((line[entry.end() :] if entry else line).strip(), number)
    yield from paragraph.end()


def _outside_examples(text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and lines without tags, except lines between `>` and `<`."""
    is_example = False
    for number, line in enumerate(text.split("\n"), 1):
        if is_example and line[:1] in ("", " ", "\t", "<"):
            is_example = not line.startswith("<")
            continue
        line = re.sub(r"\s*\*[^* \t|]+\*", "", line)
        is_example = re.search(r"(^|\s)>\w*$", line) is not None
        yield number, re.sub(r">\w*$", "", line) if is_example else line


def of_docstrings(source: str, name: str) -> Iterator[Sentence]:
    """Sentences in a module's comments and in the docstrings of the module, its classes, functions
    and values.
    """
    for node in _docstrings(ast.parse(source)):
        text = inspect.cleandoc(str(node.value))
        for each in of_markdown(text, name):
            yield Sentence(f"{name}:{node.lineno}", each.text)
    yield from of_comments(_comments(source), name)


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as text):
                yield text


def of_comments(comments: Iterator[tuple[int, str]], name: str) -> Iterator[Sentence]:
    """Sentences in comments; adjoining lines make one paragraph."""
    lines = [
        (number, text) for number, text in comments if not re.match(r"\W*(noqa|type:|---)", text)
    ]
    for _, group in groupby(enumerate(lines), lambda pair: pair[1][0] - pair[0]):
        block = [pair[1] for pair in group]
        for each in split(_plain(" ".join(text for _, text in block))):
            yield Sentence(f"{name}:{block[0][0]}", each)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#:! ").strip()


def of_lua(source: str, name: str) -> Iterator[Sentence]:
    """Sentences in a Lua file's comments, without annotations."""
    found = (
        (number, line.strip().lstrip("- ").strip())
        for number, line in enumerate(source.split("\n"), 1)
        if line.strip().startswith("--") and not re.match(r"\s*-+ ?@", line)
    )
    yield from of_comments(found, name)


def of_messages(source: str, name: str) -> Iterator[Sentence]:
    """Texts with at least three words in Python source, except docstrings and patterns."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    docs = {id(node) for node in _docstrings(tree)}
    inside = {
        id(part)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in nodes:
        if id(node) in docs or id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(
                str(p.value) if isinstance(p, ast.Constant) else "`x`" for p in node.values
            )
        else:
            continue
        yield from _spoken(text, f"{name}:{node.lineno}")


def of_lua_messages(source: str, name: str) -> Iterator[Sentence]:
    """Texts with at least three words in a Lua file."""
    for number, line in enumerate(source.split("\n"), 1):
        code = re.sub(r"(^|\s)--.*$", "", line)
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code):
            yield from _spoken(text, f"{name}:{number}")


def _spoken(text: str, place: str) -> Iterator[Sentence]:
    if len(re.findall(r"[A-Za-z]{2,}", text)) < 3 or re.search(
        r"\\[bswdn(]|\(\?|CREATE |SELECT |INSERT ", text
    ):
        return
    for paragraph in re.split(r"\n\s*\n|\n", text):
        yield from (Sentence(place, each) for each in split(_plain(paragraph)) if " " in each)


# --- Places ---------------------------------------------------------------------------------------


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def documents() -> dict[str, list[Sentence]]:
    """The sentences of each document, by its path below the root."""
    pages = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "doc").glob("*.md"))]
    found = {path.relative_to(ROOT).as_posix(): path for path in pages}
    sentences = {name: list(of_markdown(_read(path), name)) for name, path in found.items()}
    sentences["doc/parley.txt"] = list(
        of_help(_read(ROOT / "doc" / "parley.txt"), "doc/parley.txt")
    )
    return sentences


@cache
def docstrings(*folders: str) -> list[Sentence]:
    """The sentences in docstrings and comments of the Python modules below these folders."""
    return [each for name, text in modules(*folders) for each in of_docstrings(text, name)]


@cache
def lua_comments() -> list[Sentence]:
    return [each for name, text in lua_files() for each in of_lua(text, name)]


@cache
def messages() -> list[Sentence]:
    """The texts in Parley's own source, except docstrings."""
    return [
        *(s for name, text in modules("python", "rplugin") for s in of_messages(text, name)),
        *(s for name, text in lua_files() for s in of_lua_messages(text, name)),
    ]


def modules(*folders: str) -> Iterator[tuple[str, str]]:
    """Name and text of each Python module below these folders in the root."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), _read(path)


def lua_files() -> Iterator[tuple[str, str]]:
    """Name and text of each Lua file."""
    for folder in ("lua", "plugin"):
        for path in sorted((ROOT / folder).rglob("*.lua")):
            yield path.relative_to(ROOT).as_posix(), _read(path)
