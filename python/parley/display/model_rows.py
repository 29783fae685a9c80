"""The models that providers list, as lines for editor and terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from parley.models.events import Price
from parley.models.model_list import ListedModel, ModelList, ProviderModels
from parley.text import counted, one_line

_HEADS = ("model", "window", "output", "$ in/out")
_PRICE = 3
_WIDEST = 44
_THOUSAND, _MILLION = 1_000, 1_000_000


def title(models: ProviderModels, now: float) -> str:
    """A line about a provider's list: how many models it has, its age, and what is wrong."""
    listed, problem = models.listed, one_line(models.problem)
    if not listed.at:
        return f"{models.provider}: {problem}"
    count = counted(len(listed.models), "model")
    about = f"{models.provider}: {count}, listed {_age(now - listed.at)}"
    return f"{about}; {problem}" if problem else about


def rows(listed: ModelList, today: str) -> list[str]:
    """A line for the columns' names, and one for each model: its window, its output limit, its price
    in dollars per million tokens, and its end, as far as the list has them.
    """
    cells = [_cells(model) for model in listed.models]
    used = [n for n in range(len(_HEADS)) if any(row[n] for row in cells)]
    table = [[row[n] for n in used] for row in (_HEADS, *cells)]
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*table, strict=True)]
    remarks = ("per million tokens" if _PRICE in used else "", *_remarks(listed, today))
    return [_row(row, widths, remark) for row, remark in zip(table, remarks, strict=True) if row]


def _row(cells: Sequence[str], widths: Sequence[int], remark: str) -> str:
    name, *numbers = cells
    columns = [name.ljust(widths[0])]
    columns += [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
    return "  ".join((*columns, remark)).rstrip()


def _cells(model: ListedModel) -> tuple[str, str, str, str]:
    facts = model.facts
    return model.id, tokens(facts.window), tokens(facts.max_output), price(facts.price)


def _remarks(listed: ModelList, today: str) -> Iterator[str]:
    for model in listed.models:
        if model.ends:
            yield f"{'ended' if model.ends <= today else 'ends'} {model.ends}"
        else:
            yield "" if model.lifecycle == "active" else model.lifecycle


def tokens(count: int | None) -> str:
    """A number of tokens in three digits, such as 128k or 1.05M; "" if it is unknown."""
    if count is None:
        return ""
    if count >= _MILLION:
        return f"{count / _MILLION:.3g}M" if count < _THOUSAND * _MILLION else f"{count:.1e}"
    return f"{count / _THOUSAND:.3g}k" if count >= _THOUSAND else str(count)


def price(cost: Price | None) -> str:
    """The dollars for a million tokens of input and output, such as 2/10; "" if unknown."""
    return "" if cost is None else f"{cost.input:.4g}/{cost.output:.4g}"


def _age(seconds: float) -> str:
    minutes = int(seconds // 60)
    for count, noun in ((minutes // 1440, "day"), (minutes // 60, "hour"), (minutes, "minute")):
        if count > 0:
            return f"{counted(count, noun)} ago"
    return "just now"


def day(now: float) -> str:
    """The day of a moment in seconds since 1970, as YYYY-MM-DD."""
    return datetime.fromtimestamp(now, UTC).date().isoformat()
