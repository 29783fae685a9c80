"""The format of agents over the Agent Client Protocol: the prompt, and the updates of its turn.

An agent keeps its own history, so a prompt is only the new question. A new session receives the
transcript as text before it. Knows plain JSON; does not know processes or sessions.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from parley.chat.history import CallOutcome, Turn, UserTurn
from parley.chat.transcript import Attachment, Text, ToolCall
from parley.models import decoder
from parley.models.agent_records import AgentCallBegan, RanByAgent
from parley.models.encode import fit_body
from parley.models.events import (
    AgentPlan,
    Call,
    Event,
    Finished,
    Ran,
    RanResult,
    Reason,
    TextDelta,
    Usage,
)
from parley.models.quirks import Quirk
from parley.models.request import Request
from parley.tables import LARGEST
from parley.text import fence, one_line

UPDATE, CALLS, RAN, STOP, DECLINED = "update", "calls", "ran", "stop", "declined"
"""The keys of the payloads that the decoder reads: an agent's update, the calls that wait for the
user, a call that the agent ran, and the response to the prompt, with whether the user declined a
call before it."""

_BEFORE = (
    "This conversation began before this session. Its transcript is in the fence below. It is "
    "background, so do not answer it again."
)
_QUESTION = "The user's new question:"
_CONTINUE = "Continue the last answer from its end. Do not repeat it."
_NOTHING_MORE = "*(The agent ended its turn without further text.)*"
_PLAN_SHOWN = 50
_ENTRY_SHOWN = 200
_REASONS: Mapping[str, tuple[Reason, str]] = {
    "end_turn": ("complete", ""),
    "max_tokens": ("length", ""),
    "refusal": ("refusal", ""),
    "max_turn_requests": ("pause", "the agent made as many requests as it may in a turn"),
    "cancelled": ("pause", "the agent cancelled its turn"),
}
_COUNTS = ("inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens", "thoughtTokens")


def request_body(request: Request) -> dict[str, Any]:
    """The prompt of a new session, without its id."""
    return {"prompt": prompt(request, is_new=True)}


def prompt(request: Request, *, is_new: bool, with_pictures: bool = True) -> list[dict[str, Any]]:
    """The prompt's content blocks: the last question, and for a new session everything before it."""
    turns = request.turns()
    question = turns[-1] if turns and isinstance(turns[-1], UserTurn) else None
    earlier = turns[:-1] if question else turns
    blocks = list[dict[str, Any]]()
    if is_new:
        blocks += [_text(request.system)] if request.system else []
        if earlier:
            blocks.append(_text(_background(earlier, _QUESTION if question else _CONTINUE)))
    if question:
        images = request.images([question]) if with_pictures else {}
        blocks += list(_parts(question, images))
    elif not blocks:
        blocks.append(_text(_CONTINUE))
    body: list[dict[str, Any]] = fit_body({"prompt": blocks})["prompt"]
    return body


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _parts(question: UserTurn, images: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    for part in question.parts or (question.text,):
        match part:
            case str(text):
                yield _text(text)
            case Attachment(path=path) if path in images:
                data = b64encode(images[path]).decode("ascii")
                yield {"type": "image", "data": data, "mimeType": part.media_type}
            case Attachment():
                yield _text(part.text)


def _background(turns: Sequence[Turn], then: str) -> str:
    transcript = "\n\n".join(_turn_text(turn) for turn in turns)
    ticks = fence(transcript)
    return f"{_BEFORE}\n\n{ticks}\n{transcript}\n{ticks}\n\n{then}"


def _turn_text(turn: Turn) -> str:
    """A turn as text for a person to read."""
    if isinstance(turn, UserTurn):
        return f"User:\n{turn.text}"
    calls = (f"[Call of {_named(each)}]\n[Result: {each.content}]" for each in turn.calls)
    return "\n".join(["Assistant:", *filter(None, [turn.text]), *calls])


def _named(outcome: CallOutcome) -> str:
    return f"{outcome.call.name} {outcome.call.arguments}"


class ConversationDigest:
    """The digest of a conversation, from a request's turns and then from the events of a reply.

    It is the same for the turns that a file with this reply has, so it shows whether the file was
    edited. White space does not count, because the file's paragraphs may differ from the stream's.
    """

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._hash = hashlib.sha256()
        self._role = ""
        for turn in turns:
            if isinstance(turn, UserTurn):
                self._role = ""
                self._add("user", turn.text)
                continue
            for part in turn.parts:
                if isinstance(part, Text):  # thinking is not said
                    self._add("model", part.text)
            for outcome in turn.calls:
                self._call(outcome.call.id, outcome.call.arguments, outcome.content)

    def feed(self, event: Event) -> None:
        """Add an event of the reply."""
        match event:
            case TextDelta(text):
                self._add("model", text)
            case Ran(call):
                self._call(call.id, call.arguments, None)
            case RanResult(_, outcome):
                self._add("", outcome.text)
            case _:
                pass

    def text(self) -> str:
        """The digest so far, in hex."""
        return self._hash.hexdigest()

    def _call(self, call_id: str, arguments: str, content: str | None) -> None:
        self._add("call", call_id + arguments)
        self._role = ""
        if content is not None:
            self._add("", content)

    def _add(self, role: str, text: str) -> None:
        if role != self._role or not role:
            self._role = role
            self._hash.update(f"\0{role}\0".encode())
        self._hash.update("".join(text.split()).encode("utf-8", "surrogatepass"))


def conversation_digest(turns: Iterable[Turn]) -> str:
    """The digest of these turns."""
    return ConversationDigest(turns).text()


class Decoder(decoder.Decoder):
    """Decodes one reply: the updates until the agent asks the user, or ends its turn."""

    def __init__(self, provider: str, model: str, quirks: tuple[Quirk, ...] = ()) -> None:
        super().__init__(provider, model, quirks)
        self._message: object = None
        self._is_said = False
        """Whether prose has arrived since the last call of this reply."""
        self._plan: AgentPlan | None = None

    def _take(self, raw: Mapping[str, Any]) -> Iterator[Event]:
        match raw:
            case {"update": {"sessionUpdate": "agent_message_chunk", "content": content, **rest}}:
                self._part_of(rest.get("messageId"))
                yield from self._tell(_words(content))
            case {"update": {"sessionUpdate": "agent_thought_chunk", "content": content}}:
                yield from self._think(_words(content))
            case {"update": {"sessionUpdate": "plan", "entries": [*entries]}}:
                self._plan = _plan(entries)
                yield self._plan
            case {"update": {"sessionUpdate": "usage_update", "used": used}} if count := _count(
                used
            ):
                yield Usage(input=count)
            case {"ran": AgentCallBegan(call)}:
                yield from self._begin(call)
            case {"ran": RanByAgent(call, outcome, is_known)}:
                yield from () if is_known else self._begin(call)
                yield RanResult(call.id, outcome)
            case {"calls": [*calls]}:
                yield from self._end_with(calls)
            case {"stop": response, **rest}:
                yield from self._stop(response, was_declined=rest.get(DECLINED) is True)

    def _begin(self, call: ToolCall) -> Iterator[Event]:
        yield from self._end_thinking()
        self._part()
        self._is_said = False
        yield Ran(call, "agent")

    def _tell(self, words: str) -> Iterator[Event]:
        self._is_said = self._is_said or bool(words.strip())
        yield from self._say(words)

    def _part_of(self, message: object) -> None:
        if message != self._message and self._message is not None:
            self._part()
        self._message = message

    def _end_with(self, calls: Sequence[Any]) -> Iterator[Event]:
        yield from self._ending()
        yield from (Call(call) for call in calls)
        yield Finished("tool_calls")

    def _stop(self, response: object, *, was_declined: bool) -> Iterator[Event]:
        stop = response.get("stopReason") if isinstance(response, Mapping) else None
        if stop == "cancelled" and was_declined:  # Codex ends its turn with that at a no
            stop = "end_turn"
        reason, detail = _REASONS.get(stop if isinstance(stop, str) else "", ("complete", ""))
        if reason == "complete" and not self._is_said:
            yield from self._end_thinking()
            self._part()
            yield from self._say(_NOTHING_MORE)
        yield from self._ending()
        if isinstance(response, Mapping) and (usage := _usage(response.get("usage"))):
            yield usage
        yield Finished(reason, detail)

    def _ending(self) -> Iterator[Event]:
        self.is_over = True
        yield from self._end_thinking()
        if rest := self._prose.end():
            yield TextDelta(rest)

    def _finish(self) -> Iterator[Event]:
        raise decoder.ended_early(self.provider)


def _words(content: object) -> str:
    """The text of a content block; other content is described."""
    match content:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": str(uri)}:
            return f"<{one_line(uri)}>"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": str(kind)}:
            return f"[{one_line(kind, 40)}]"
        case _:
            return ""


def _plan(entries: Sequence[Any]) -> AgentPlan:
    """A plan as a list of tasks, without priorities."""
    lines = list[str]()
    for entry in entries[:_PLAN_SHOWN]:
        match entry:
            case {"content": str(content)}:
                mark = "x" if entry.get("status") == "completed" else " "
                lines.append(f"- [{mark}] {one_line(content[:1000], _ENTRY_SHOWN)}")
    return AgentPlan("\n".join(lines))


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping) or not {"inputTokens", "outputTokens"} <= usage.keys():
        return None
    given, made, read, wrote, thought = (_count(usage.get(key)) for key in _COUNTS)
    return Usage(given + read + wrote, made, read, wrote, thought)


def _count(value: object) -> int:
    """A number of tokens; 0 for anything that cannot be one."""
    return value if type(value) is int and 0 <= value <= LARGEST else 0


def unstreamed(raw: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The payload of a response without updates."""
    yield {STOP: raw}
