"""Totals from a chat's records: requests, tokens, and the outcomes of each tool's calls.

Knows what records contain, but not where they are stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from parley.frozen import frozen

Record: TypeAlias = tuple[float, str, Mapping[str, Any]]
"""A record: its time (seconds since 1970), kind and facts."""

FOR_STATUS = "status"
"""The purpose (`for`) of a request for a status text."""
FOR_TOPIC = "topic"
"""The purpose of a request for a title."""


@frozen
class ToolTotals:
    """A tool's calls: how many ran, succeeded at the first attempt, failed or were refused, and how
    long they took.

    After a failed or refused call, another call of this tool in the same answer counts as a retry.
    """

    calls: int = 0
    first_try: int = 0
    errors: int = 0
    refused: int = 0
    seconds: float = 0.0

    def after(self, kind: str, facts: Mapping[str, Any], is_retry: bool) -> ToolTotals:
        """These totals with one more call."""
        if kind != "call":
            return replace(self, refused=self.refused + 1)
        worked = facts["outcome"] == "ok"
        return ToolTotals(
            self.calls + 1,
            self.first_try + (worked and not is_retry),
            self.errors + (not worked),
            self.refused,
            self.seconds + facts["seconds"],
        )


@frozen
class Totals:
    """A chat's requests (including requests for a status), with tokens and seconds, and its tools.

    `searches` counts the providers' own searches, for which they charge. `cost` covers only
    requests with a known price.
    """

    requests: int = 0
    for_status: int = 0
    seconds: float = 0.0
    tokens: Mapping[str, int] = field(default_factory=dict)
    searches: int = 0
    cost: float | None = None
    tools: Mapping[str, ToolTotals] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """The totals as plain JSON."""
        tools = {name: _rounded(asdict(tool)) for name, tool in self.tools.items()}
        return _rounded(
            {
                "requests": self.requests,
                "for_status": self.for_status,
                "seconds": self.seconds,
                "tokens": dict(self.tokens),
                **({"searches": self.searches} if self.searches else {}),
                **({} if self.cost is None else {"cost": round(self.cost, 6)}),
                "tools": tools,
            }
        )


def _rounded(table: dict[str, Any]) -> dict[str, Any]:
    return {**table, "seconds": round(table["seconds"], 3)}


def totals(records: Iterable[Record]) -> Totals:
    """The totals from records, which must be in chronological order."""
    sums, tokens = Totals(), Counter[str]()
    tools, failed = dict[str, ToolTotals](), set[str]()
    for _, kind, facts in records:
        match kind:
            case "request":
                tokens.update(facts["tokens"])
                for_status = facts.get("for") == FOR_STATUS
                sums = replace(
                    sums,
                    requests=sums.requests + 1,
                    for_status=sums.for_status + for_status,
                    seconds=sums.seconds + facts["seconds"],
                    cost=(sums.cost or 0.0) + facts["cost"] if "cost" in facts else sums.cost,
                )
                if facts["outcome"] == "complete" and not facts.get("for"):
                    failed.clear()  # the answer is complete: the next request is a new question
            case "call" | "refused" | "declined":
                name = facts["tool"]
                tools[name] = tools.get(name, ToolTotals()).after(kind, facts, name in failed)
                if kind != "declined":
                    (failed.discard if facts.get("outcome") == "ok" else failed.add)(name)
    searches = tokens.pop("searches", 0)
    used = {name: n for name, n in tokens.items() if n}
    return replace(sums, tokens=used, searches=searches, tools=tools)


def deleted_note(until: float) -> str:
    """The sentence for records that were deleted because of their age, the newest of them at the
    time `until` (seconds since 1970).
    """
    day = datetime.fromtimestamp(until, UTC).astimezone().date().isoformat()
    return f"Older records, up to {day}, were deleted: `log.keep_days` says when."


_HEADS = ("tool", "calls", "first try", "errors", "refused", "seconds")


def totals_table(sums: Totals) -> list[str]:
    """The totals as readable lines of Markdown."""
    tokens = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in sums.tokens.items()) or "none"
    beside = f" ({sums.for_status} for the status)" if sums.for_status else ""
    cost = "" if sums.cost is None else f" Cost: {sums.cost:.4f}."
    searches = f" Web searches: {sums.searches}." if sums.searches else ""
    words = f"Tokens: {tokens}.{searches}{cost}"
    lines = [f"Requests: {sums.requests}{beside}, {sums.seconds:.1f} s. {words}"]
    if not sums.tools:
        return lines
    rows = [
        (name, *map(str, (t.calls, t.first_try, t.errors, t.refused)), f"{t.seconds:.1f}")
        for name, t in sums.tools.items()
    ]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    rule = tuple("-" * width for width in widths)
    return [*lines, "", *(_row(cells, widths) for cells in (_HEADS, rule, *rows))]


def _row(cells: Iterable[str], widths: Iterable[int]) -> str:
    first, *numbers = zip(cells, widths, strict=True)
    return (
        f"| {first[0]:<{first[1]}} | "
        + " | ".join(f"{cell:>{width}}" for cell, width in numbers)
        + " |"
    )
