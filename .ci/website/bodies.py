"""A page's content without its frame, and the pictures in it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

PICTURES = "pictures"
"""The site's folder with pictures."""
THEMES = {"dark": "", "light": "light-"}
"""For each theme, the beginning of a scene's name."""

MOVING = ("asking", "editing")
"""The scenes that move."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, or a term of a list, to which links lead."""

    level: int
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Body:
    """HTML with one `h1`, and its further headings in order."""

    title: str
    html: str
    headings: tuple[Heading, ...] = ()


@dataclass(frozen=True, slots=True)
class Screen:
    """A picture of a real screen: the scene in `tests/nvim/screens.py`, and its description."""

    scene: str
    description: str


def shown(screen: Screen) -> str:
    """The picture in both themes, of which the style shows one."""
    pictures = (
        f'<img class="{theme}" src="{PICTURES}/{start}{screen.scene}.svg" loading="lazy" '
        f'alt="{escape(screen.description)}">'
        for theme, start in THEMES.items()
    )
    kind = "screen moving" if screen.scene in MOVING else "screen"
    return f'<span class="{kind}">{"".join(pictures)}</span>'


SIGNS = {f"marker-{ord(sign):x}": sign for sign in "💬🤖🧠❓🛠🔒📝"}
"""The markers of a chat, by the names of their pictures."""
_SIGN = re.compile(f"([{''.join(SIGNS.values())}])\ufe0f?")
_TEXT = re.compile(r"(?<=>)[^<]+(?=<)")


def with_signs(html: str) -> str:
    """HTML whose markers can be drawn as pictures, for readers whose fonts lack them."""
    return _TEXT.sub(lambda text: _SIGN.sub(_sign, text[0]), html)


def _sign(match: re.Match[str]) -> str:
    return f'<span class="marker m{ord(match[1]):x}">{match[0]}</span>'


def sign_style() -> str:
    """The style of these pictures."""
    return "\n".join(
        f".no-emoji .m{ord(sign):x} {{ background-image: url({PICTURES}/{name}.svg); }}"
        for name, sign in SIGNS.items()
    )
