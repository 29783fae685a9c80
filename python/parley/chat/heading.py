"""The heading of a chat in a list: its topic, its tags and its agent, from the ends of its file.

A list has thousands of chats, so a heading needs neither the whole text nor its settings. Pure.
"""

from __future__ import annotations

from parley.chat.front_matter import first_line, first_words, read_front_matter
from parley.chat.grammar import fit, marker_of
from parley.chat.reader import parse
from parley.chat.transcript import SPACING
from parley.frozen import frozen

LONGEST_TOPIC = 200
_MOST_TAGS = 20
_LONGEST_NAME = 60


@frozen
class ChatHeading:
    """A chat's topic on one line ("" if it has no question), its tags and its agent's name ("" if
    unknown). All are untrusted text of limited length.
    """

    topic: str
    agent: str = ""
    tags: tuple[str, ...] = ()
    is_own: bool = True
    """Whether the topic comes from the user, not from text that a reference or quote has added."""


def heading_of(beginning: str, end: str = "") -> ChatHeading:
    """The heading of a chat from the beginning of its text, and from the text near its end.

    The agent comes from the front matter, or else it is the agent that answered last.
    """
    transcript = parse(beginning)
    keys = read_front_matter(transcript.front_matter).keys
    answers = [answer.agent for each in transcript.exchanges for answer in each.answers]
    agent = keys.get("agent") or _last_agent(end) or next(filter(None, reversed(answers)), "")
    tags = (fit(" ".join(tag.split()))[:_LONGEST_NAME] for tag in keys.get("tags", ()))
    own = " ".join(keys.get("topic", "").split()) or first_words(transcript)
    return ChatHeading(
        fit(own or first_line(transcript))[:LONGEST_TOPIC],
        fit(agent)[:_LONGEST_NAME],
        tuple(dict.fromkeys(filter(None, tags)))[:_MOST_TAGS],
        bool(own),
    )


def _last_agent(text: str) -> str:
    """The agent of the last answer whose first line is in a part of a chat; "" if there is none.

    The first line may be cut, so it does not count.
    """
    for line in reversed(text.split("\n")[1:]):
        marker = marker_of(line)
        if marker and marker[0] == "answer":
            content = line[marker[1] :].lstrip(SPACING)
            name, closed, _ = content[1:].partition("]")
            if content[:1] == "[" and closed and name:
                return name
    return ""
