"""The stock example: finds the companies in a question, and the prices in a search result.

The model does not know any prices. It reads and quotes the search tool's result, which may be JSON
or prose.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from parley.demo.dialogue import CallResult
from parley.frozen import frozen
from parley.late_patterns import late_pattern

_NAMED = late_pattern(
    r"\b(?:google|alphabet|microsoft|apple|amazon|nvidia|meta|tesla|netflix|intel|amd|ibm|oracle|adobe|spotify"
    r"|uber|shell|toyota|sony|samsung|siemens|sap|nokia|ericsson|boeing|disney)\b",
    re.IGNORECASE,
)
_ASKS = late_pattern(r"\b(?:stocks?|shares?|quotes?)\b", re.IGNORECASE)
_AFTER = late_pattern(
    r"\b(?:stocks?|shares?|quotes?|prices?)\s+(?:of|for)\s+([^\n?!]+)", re.IGNORECASE
)
_BEFORE = late_pattern(r"\b([\w&-]+)(?:'s)?\s+(?:stocks?|shares?)\b", re.IGNORECASE)
_ASIDES = late_pattern(
    r"\b(?:,?\s*one after (?:another|the other)|,?\s*please|right now|now|today|and nothing else)\b",
    re.IGNORECASE,
)
_JOINTS = late_pattern(r"\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s+|\s+or\s+", re.IGNORECASE)
_NOT_COMPANIES = frozenset(
    ("the", "a", "an", "latest", "current", "my", "your", "their", "our", "some", "any")
)
_SHORT_QUESTION = 8

_PRICE = late_pattern(r"\$\s?(\d[\d,]*(?:\.\d+)?)|\bprice\W{1,4}(?:is\W{1,3})?(\d[\d,]*(?:\.\d+)?)")
_SYMBOL_OF_PRICE = late_pattern(r"\b([A-Z]{1,5}) price\b")
_FULL_NAME = late_pattern(r"([A-Z][\w&.]*(?: [A-Z][\w&.]*)*) stock [A-Z]{1,5}\b")
_SYMBOL = late_pattern(r"\b[A-Z]{2,5}\b")
_NOT_SYMBOLS = frozenset(("USD", "EUR", "JSON", "API", "NASDAQ", "NYSE"))


@frozen
class Quote:
    """A price found in a result; `symbol` may be empty."""

    name: str
    symbol: str
    price: str


def companies(question: str) -> tuple[str, ...]:
    """The companies whose prices the question asks for, in order, as the user wrote them."""
    text = _ASIDES.sub("", question)
    named = tuple(dict.fromkeys(_NAMED.findall(text)))
    if after := _AFTER.search(text):
        return _listed(after[1])
    if named and (_ASKS.search(text) or len(text.split()) <= _SHORT_QUESTION):
        return named
    before = [name for name in _BEFORE.findall(text) if name.lower() not in _NOT_COMPANIES]
    return tuple(dict.fromkeys(before))


def query_for(company: str) -> str:
    """The query for the search tool."""
    return f"{company} stock price"


def query_of(result: CallResult) -> str:
    """The query in a call; "" if there is none."""
    try:
        arguments = json.loads(result.arguments)
    except ValueError:
        return ""
    return str(arguments.get("query", "")) if isinstance(arguments, dict) else ""


def read_quote(company: str, text: str) -> Quote | None:
    """The first price in a result; None if there is none."""
    for entry in _objects(text):
        price = entry.get("price", entry.get("last"))
        if price is not None:
            symbol = str(entry.get("symbol", entry.get("ticker", "")))
            name = str(entry.get("name", entry.get("company", _title(company))))
            return Quote(name, symbol, str(price).lstrip("$ "))
    price_found = _PRICE.search(text)
    if price_found is None:
        return None
    symbols = _SYMBOL_OF_PRICE.findall(text) + _SYMBOL.findall(text)
    symbol = next((symbol for symbol in symbols if symbol not in _NOT_SYMBOLS), "")
    full_name = _FULL_NAME.search(text)
    return Quote(
        full_name[1] if full_name else _title(company), symbol, price_found[1] or price_found[2]
    )


def _listed(text: str) -> tuple[str, ...]:
    sentence = re.split(r"[.;:](?:\s|$)", text, maxsplit=1)[0]
    names = (
        re.sub(r"^(?:the|both)\s+", "", name.strip(" \t\"'`.")) for name in _JOINTS.split(sentence)
    )
    return tuple(dict.fromkeys(name for name in names if name))


def _title(company: str) -> str:
    return company if company != company.lower() else company.title()


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """All objects in a JSON result, outermost first; empty if the result is not JSON."""
    try:
        waiting = [json.loads(text)]
    except ValueError:
        return
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
