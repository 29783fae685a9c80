"""A version's section of the changelog. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

_HEADING = re.compile(r"^## +(.*?) *$", re.M)
UNRELEASED = "Unreleased"


def sections(text: str) -> list[tuple[str, str]]:
    """Heading and text of each section, in the order of the page."""
    parts = _HEADING.split(text)
    return [(head, body.strip()) for head, body in zip(parts[1::2], parts[2::2], strict=True)]


def notes(text: str, version: str) -> str:
    """The text of a version's section; "" if there is none."""
    return next((body for head, body in sections(text) if head.split(" ")[0] == version), "")


def changelog_problems(text: str, version: str, today: date) -> Iterator[str]:
    """Reasons why the changelog does not belong to this new version."""
    place, found = "CHANGELOG.md", sections(text)
    if found and found[0][0] == UNRELEASED:
        if found[0][1]:
            yield (
                f"{place}: changes are listed as unreleased. Rename their heading to "
                f"`## {version} - {today}`, below an empty section `## {UNRELEASED}`"
            )
            return
        found = found[1:]
    if not found or found[0][0].split(" ")[0] != version:
        newest = f"the newest section is `{found[0][0]}`" if found else "there is no section"
        yield f"{place}: {newest}. Add `## {version} - {today}` with this version's changes"
        return
    heading, body = found[0]
    if heading != f"{version} - {_day(heading) or today}":
        yield f"{place}: the heading is `## {heading}`. Write `## {version} - {today}`"
    if not body:
        yield f"{place}: the section `## {heading}` is empty. List this version's changes"


def _day(heading: str) -> date | None:
    try:
        return date.fromisoformat(heading.rpartition(" ")[2])
    except ValueError:
        return None
