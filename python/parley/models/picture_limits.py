"""Pictures for models: which models can see them, and how many, of what size, a request may have.

The provider's list decides which models can see, else the model's name. Parley sends pictures to an
unknown model until a refusal, which `models/refusals.py` recognizes. Knows neither wire formats nor
files.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from parley.chat.history import ModelTurn, Turn
from parley.chat.transcript import Attachment
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.media import PDF
from parley.models.context_window import claude_version
from parley.models.model_facts import NO_FACTS, ModelFacts
from parley.text import one_line, size_text

# "You can obtain this error message by sending an image request to GPT 3.5, which does not support
# images" (github.com/vllm-project/vllm/issues/11629); on OpenAI's reasoning models: "earlier mini
# reasoning models were text-only" (vercel.com/ai-gateway/models/o4-mini.md). All read 2026-11-23.
_BLIND = late_pattern(r"gpt-3\.5|gpt-4(-0314|-0613|-32k)?$|(^|/)o1-(mini|preview)|(^|/)o3-mini")
# OpenAI's models accept files as well as pictures: `file` and `input_file` (openai 3.54,
# types/chat/chat_completion_content_part_param.py,
# types/responses/response_input_file_content_param.py, 2026-11-23).
_READERS = late_pattern(r"(^|/)(gpt-4o|gpt-4\.1|gpt-[5-9]|o[134]($|-))|^demo")

_VISION, _PDFS = (3, 0), (3, 5)
"""The first Claude versions for pictures and PDFs: "the entire Claude 3 family supports" images
(github.com/chathub-dev/chathub/issues/1164), `pdfInputs` is true from 3.5 on
(app.unpkg.com/@langchain/anthropic@1.3.3/files/dist/profiles.cjs.map); read 2026-11-23."""


def sees(model: str, media_type: str, facts: ModelFacts = NO_FACTS) -> bool:
    """Whether to send attachments of this type to a model; pictures are sent to unknown models."""
    listed = facts.reads_pdfs if media_type == PDF else facts.sees_pictures
    if listed is not None:
        return listed
    if (version := claude_version(model)) is not None:
        return version >= (_PDFS if media_type == PDF else _VISION)
    return not _BLIND.search(model) and (media_type != PDF or bool(_READERS.search(model)))


@frozen
class Room:
    """A request's limits: the number of pictures, and the base64 bytes of one and of all."""

    count: int
    one: int
    whole: int


# "image exceeds 5 MB maximum: 5404560 bytes > 5242880 bytes" (a refusal; the number counts the
# base64 text, github.com/anthropics/claude-code/issues/13381); "the per-image dimension cap is
# 8000x8000 pixels, except when the request contains more than 20 images, in which case it drops to
# 2000x2000. The total request payload limit is 32 MB"
# (platform.claude.com/docs/en/build-with-claude/vision, as quoted in
# github.com/shellicar/claude-cli/issues/323).
_CLAUDE = Room(20, 5_242_880, 24_000_000)
# "Up to 20MB per image, up to 500 individual images per request, up to 50 MB image bytes per
# request" (openai-hd4n6.mintlify.app/docs/guides/images, after OpenAI's guide). Other providers
# accept less; no source was kept. All read 2026-11-23.
_OTHERS = Room(100, 20_000_000, 20_000_000)


def room(model: str) -> Room:
    """A model's limits for pictures in a request."""
    return _OTHERS if claude_version(model) is None else _CLAUDE


@dataclass(frozen=True)
class Picture:
    """An attachment as it is sent."""

    attachment: Attachment
    content: bytes

    @cached_property
    def base64(self) -> str:
        """The content in base64."""
        return b64encode(self.content).decode()

    @property
    def url(self) -> str:
        """A data URL with the whole content."""
        return f"data:{self.attachment.media_type};base64,{self.base64}"

    @property
    def name(self) -> str:
        """The file name."""
        return self.attachment.path.rpartition("/")[2]


def short_name(path: str) -> str:
    """An attachment's path, shortened for messages."""
    return one_line(re.sub(r"([0-9a-f]{8})[0-9a-f]{56}(\.\w+)$", r"\1…\2", path))


def attachments_of(turn: Turn) -> Iterator[Attachment]:
    """The pictures in a turn, in order."""
    holders = turn.calls if isinstance(turn, ModelTurn) else (turn,)
    return (part for holder in holders for part in holder.parts if isinstance(part, Attachment))


def selection(
    turns: Sequence[Turn], contents: Mapping[str, bytes | str], model: str
) -> tuple[Mapping[str, bytes], Mapping[str, str]]:
    """The contents to send, by attachment path, and the reasons why other pictures are left out.

    The newest pictures have priority; `contents` has each attachment's bytes, or the reason why
    they are missing.
    """
    attachments = [a for turn in reversed(turns) for a in reversed(list(attachments_of(turn)))]
    most, counts = room(model), Counter(attachment.path for attachment in attachments)
    images, reasons, left, size = dict[str, bytes](), dict[str, str](), most.count, most.whole
    for path in counts:
        content = contents.get(path)
        if not isinstance(content, bytes):
            reasons |= {path: content} if content else {}
            continue
        length = (len(content) + 2) // 3 * 4
        if length > most.one:
            limit = size_text(most.one // 4 * 3)
            reasons[path] = f"too large for {model} ({size_text(len(content))}, at most {limit})"
        elif counts[path] > left or counts[path] * length > size:
            reasons[path] = (
                f"left out: {model} accepts at most {most.count} pictures and "
                f"{size_text(most.whole)}"
            )
        else:
            left, size = left - counts[path], size - counts[path] * length
            images[path] = content
    return images, reasons


def mixed(
    parts: Iterable[str | Attachment], images: Mapping[str, bytes], gap: str
) -> list[str | Picture]:
    """Texts and visible pictures in order; text replaces other pictures, and adjacent texts are
    joined.

    Empty if no picture is visible.
    """
    out = list[str | Picture]()
    for part in parts:
        if isinstance(part, Attachment) and part.path in images:
            out.append(Picture(part, images[part.path]))
            continue
        text = part.text if isinstance(part, Attachment) else part
        if out and isinstance(last := out[-1], str):
            out[-1] = f"{last}{gap}{text}"
        else:
            out.append(text)
    return out if any(isinstance(part, Picture) for part in out) else []
