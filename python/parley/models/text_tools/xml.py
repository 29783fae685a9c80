"""Tool calls that a model writes between tags: `<tool:name><param:x>value</param:x></tool:name>`.

The calls are taken out of the text while it arrives in pieces, split anywhere. The text between a
parameter's tags is its exact value. Knows the tags, and uses schemas only to convert values.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from parley.late_patterns import late_pattern
from parley.models.pending_text import PendingText, portions
from parley.models.text_tools.text_calls import (
    Failed,
    Item,
    Prose,
    TextCall,
    Thought,
    ThoughtEnd,
    ToolLimitReached,
    joined,
)
from parley.models.text_tools.xml_values import arguments_json, unwrapped
from parley.models.think_tags import ThinkTags
from parley.tools.catalogue import Catalogue

log = logging.getLogger(__name__)

_TRIGGER = late_pattern("[<`]")
_TAG = late_pattern(
    r"<(?P<close>/?)(?:(?P<kind>tool|param):(?P<name>[\w.-]{1,128})|(?P<think>think(?:ing)?))[ \t]*>",
    re.ASCII,
)
_HALF_TAG = late_pattern(r"</?(?:(?:tool|param):[\w.-]{0,128}[ \t]*|think(?:ing)?[ \t]*)", re.ASCII)
_SPAN = "``"
"""The maximum number of backticks of a code span; more are a fence."""
_WORDS = ("tool:", "param:", "thinking")
_FENCE = late_pattern(r"(`{3,})[ \t]*(\w{0,20})[ \t]*\n\s*(?=<tool:[\w.-]{1,128}[ \t]*>)", re.ASCII)
_HALF_FENCE = late_pattern(r"`+|`{3,}[ \t]*\w{0,20}[ \t]*(?:\n\s*(?P<tag><.*)?)?", re.ASCII)


def _may_be_tag(text: str) -> bool:
    """Whether this is the beginning of a tag."""
    word = text[1:].removeprefix("/")
    return any(tag_word.startswith(word) for tag_word in _WORDS) or bool(_HALF_TAG.fullmatch(text))


def _may_be_fence(text: str) -> bool:
    match = _HALF_FENCE.fullmatch(text)
    return bool(match and (match["tag"] is None or _may_be_tag(match["tag"])))


class XmlParser:
    """Takes the text of one reply; returns prose, thinking, calls and failures, in order.

    If `single`, the first call ends the reply: any text after the call, except blanks, means that
    the `limit` has been reached. After that, or after a failure, nothing is read.
    """

    def __init__(self, catalogue: Catalogue, *, single: bool = True) -> None:
        self._catalogue = catalogue
        self._single = single
        self._items = list[Item]()
        self._buffer = ""
        self._waiting = PendingText()
        self._step: Callable[[bool], bool] = self._prose
        self.limit: ToolLimitReached | None = None
        self._block = list[str]()
        """The text of the current tool block, in pieces."""
        self._tool = self._param = ""
        self._params = list[tuple[str, str]]()
        self._searched = 0
        self._tail = ""
        """The end of the waiting text, which may begin the tag that closes a parameter."""
        self._is_quoted = False
        """Whether the last character is a backtick: the model writes about a tag that follows
        it."""
        self._fence = self._code = ""
        """The ends of the fence around a block, and of a code block in the prose."""
        self._tags = ThinkTags()
        self._tools = self._blocks = 0
        self._is_saying = False

    def feed(self, piece: str) -> list[Item]:
        """The items that this piece settles; the rest waits. Raises `limit` once this has been
        reached.
        """
        if self.limit:
            raise self.limit
        items = [
            item for portion in portions(piece) if not self.limit for item in self._fed(portion)
        ]
        return joined(items)

    def _fed(self, piece: str) -> list[Item]:
        if self._goes_on(piece):
            self._waiting.add(piece)
            return []
        self._buffer += self._waiting.take() + piece
        return self._settled(is_final=False)

    def _goes_on(self, piece: str) -> bool:
        """Whether a piece certainly settles nothing; decided without reading earlier text."""
        if self._step != self._value:
            return self._waiting.goes_on(self._buffer, piece)
        closing = self._closing()
        window = (self._tail or self._buffer[-len(closing) :]) + piece
        self._tail = window[-len(closing) :]
        return closing not in window

    def _closing(self) -> str:
        return f"</param:{self._param}>"

    def end(self, *, cut: bool = False) -> list[Item]:
        """The waiting items at the end of the reply; if the reply was `cut`, an incomplete block is
        dropped.
        """
        if self.limit:
            return []
        self._buffer += self._waiting.take()
        items = self._settled(is_final=True)
        return [item for item in items if not (cut and isinstance(item, Failed))]

    def _settled(self, *, is_final: bool) -> list[Item]:
        while (self._buffer or is_final) and self._step(is_final):
            pass
        items, self._items = joined(self._items), []
        return items

    # The states. Each of these functions settles as much as it can, and returns False if it needs
    # more text.

    def _prose(self, is_final: bool) -> bool:
        if not self._buffer:
            return False
        match = _TRIGGER.search(self._buffer)
        plain = match.start() if match else len(self._buffer)
        if plain:
            self._say(plain)
        elif self._buffer[0] == "`":
            return self._ticks(is_final)
        elif (tag := _TAG.match(self._buffer)) and not self._is_quoted:
            self._open(tag)
        elif self._is_quoted or not _may_be_tag(self._buffer):
            self._say(1)
        elif not is_final:
            return False
        elif self._buffer.startswith("<tool:"):
            self._fail(f"The tag {self._buffer} is not complete", self._buffer)
        else:
            self._say(len(self._buffer))
        return True

    def _ticks(self, is_final: bool) -> bool:
        fence = _FENCE.match(self._buffer)
        if fence and (fence[2] or not self._code):
            self._fence = fence[1]
            self._take(fence.end())
        elif not is_final and not fence and _may_be_fence(self._buffer):
            return False
        else:
            ticks = self._buffer[: len(self._buffer) - len(self._buffer.lstrip("`"))]
            self._say(len(ticks))
            if len(ticks) > len(_SPAN):
                self._code = (
                    "" if self._code and ticks.startswith(self._code) else self._code or ticks
                )
        return True

    def _open(self, tag: re.Match[str]) -> None:
        name, text = tag["name"], self._take(tag.end())
        self._is_saying = False
        match tag["close"], tag["kind"]:
            case "", "tool":
                self._tool, self._params, self._block = name, [], [text]
                self._tools += 1
                self._step = self._inside
            case "", None:
                self._tags = ThinkTags()
                self._tags.feed(text)
                self._blocks += 1
                self._step = self._think
            case _, None:
                self._items.append(Prose(text))
            case _, "tool":
                self._fail(f"{text} closes no tool: there is no <tool:{name}> before it", text)
            case _:
                self._fail(
                    (
                        f"Parameter '{name}' stands outside of a tool: {text} needs a <tool:…> "
                        "around it"
                    ),
                    text,
                )

    def _inside(self, is_final: bool) -> bool:
        """Between a tool's tags, where only parameters are allowed."""
        self._block.append(self._take(len(self._buffer) - len(self._buffer.lstrip())))
        tag = _TAG.match(self._buffer)
        if not tag and not is_final and (not self._buffer or _may_be_tag(self._buffer)):
            return False
        text = self._take(tag.end()) if tag else ""
        self._block.append(text)
        match tag and (tag["close"], tag["kind"], tag["name"]):
            case "", "param", name:
                self._param, self._searched, self._tail = name, 0, ""
                self._step = self._value
            case "/", "tool", self._tool:
                self._complete()
            case "/", "tool" | "param", _:
                self._fail(
                    f"<tool:{self._tool}> is not closed by {text}, but by </tool:{self._tool}>"
                )
            case "", "tool", _:
                self._fail(f"<tool:{self._tool}> must be closed before {text} begins")
            case _ if self._buffer or text:
                self._fail(f"Text in <tool:{self._tool}> stands outside of its parameters")
            case _:
                self._fail(f"<tool:{self._tool}> is not closed: </tool:{self._tool}> is missing")
        return True

    def _value(self, is_final: bool) -> bool:
        closing = self._closing()
        end = self._buffer.find(closing, self._searched)
        if end >= 0:
            self._params.append((self._param, unwrapped(self._buffer[:end])))
            self._block.append(self._take(end + len(closing)))
            self._step = self._inside
        elif is_final:
            other = re.search(r"</param:[\w.-]{1,128}>", self._buffer)
            hint = f", but by {other[0]}" if other else f": {closing} is missing"
            self._block.append(self._buffer)
            self._fail(f"Parameter '{self._param}' of <tool:{self._tool}> is not closed{hint}")
        else:
            self._searched = max(0, len(self._buffer) - len(closing))
            return False
        return True

    def _complete(self) -> None:
        tool = self._catalogue.get(self._tool)
        schema = tool.input_schema if tool else {}
        self._items.append(TextCall(self._tool, arguments_json(self._params, schema)))
        self._blocks += 1
        self._step = self._after

    def _after(self, is_final: bool) -> bool:
        """After a block; the fence around it, if any, ends here."""
        rest = self._buffer.lstrip()
        if not is_final and self._fence.startswith(rest) and rest != self._fence:
            return False
        if self._fence and rest.startswith(self._fence):
            self._take(len(self._buffer) - len(rest) + len(self._fence))
        self._fence = ""
        self._step = self._over if self._single else self._prose
        return True

    def _over(self, is_final: bool) -> bool:
        """After the only call that a reply may make; blanks are ignored."""
        if self._buffer.strip():
            log.debug("Tool limit reached at tool #%d, stopping generation", self._tools)
            log.debug("Collected %d content blocks before tool limit", self._blocks)
            self.limit = ToolLimitReached()
        self._buffer = ""
        return False

    def _think(self, is_final: bool) -> bool:
        """In a thinking block, or in the blanks after it."""
        pieces = self._tags.feed(self._take(len(self._buffer)))
        for kind, piece in pieces + (self._tags.end() if is_final else []):
            match kind:
                case "thinking":
                    self._items.append(Thought(piece))
                case "end":
                    self._items.append(ThoughtEnd())
                case "text":
                    self._buffer, self._step = piece, self._prose
        return bool(self._buffer)

    def _ended(self, is_final: bool) -> bool:
        """After a failure or the end; nothing more is read."""
        self._buffer = ""
        return False

    def _fail(self, error: str, text: str = "") -> None:
        self._items.append(Failed(error, text or "".join(self._block)))
        self._step = self._ended

    def _say(self, length: int) -> None:
        text = self._take(length)
        self._is_quoted = text in ("`", _SPAN)
        if text.strip() and not self._is_saying:
            self._is_saying = True
            self._blocks += 1
        self._items.append(Prose(text))

    def _take(self, length: int) -> str:
        text, self._buffer = self._buffer[:length], self._buffer[length:]
        return text
