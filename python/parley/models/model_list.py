"""A provider's list of its models: reads the shapes of Anthropic, OpenAI, Gemini, OpenRouter, Ollama
and other servers into one value.

The list comes from outside: fields of the wrong type count as missing, and models with unusable
names are left out. Knows neither HTTP nor files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from parley.chat.options import Effort
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.models.events import Price
from parley.models.model_facts import NO_FACTS, ModelFacts, ThinkingType
from parley.tables import LARGEST
from parley.text import one_line

Lifecycle: TypeAlias = Literal["active", "deprecated", "retired"]

MOST_MODELS = 5_000
"""The maximum number of models in a list; the others are left out."""
_LONGEST_NAME = 200
_LONGEST_LINE = 40
_NAME = late_pattern(r"[^\s\[\]\x00-\x1f\x7f]+")
_PER_MILLION = 1_000_000


@frozen
class ListedModel:
    """A model in a list. `created` is in seconds since 1970, 0 if unknown; `line` is Anthropic's
    name for successive models, such as `opus`; `ends` is the day on which the provider stops
    serving the model, as YYYY-MM-DD, or "".
    """

    id: str
    facts: ModelFacts = NO_FACTS
    created: float = 0.0
    line: str = ""
    lifecycle: Lifecycle = "active"
    ends: str = ""


@frozen
class ModelList:
    """The models that a provider lists, in alphabetical order, and when it listed them, in seconds
    since 1970. `problem` says why the list is incomplete, or is "".
    """

    models: tuple[ListedModel, ...] = ()
    at: float = 0.0
    problem: str = ""

    def find(self, model: str) -> ListedModel | None:
        """The model with this name, else its newest dated version; None if neither is listed."""
        named = next((entry for entry in self.models if entry.id == model), None)
        dated = [entry for entry in self.models if is_same_model(model, entry.id)]
        return named or max(dated, key=lambda entry: entry.created, default=None)


@frozen
class ProviderModels:
    """A provider's list for the user: the models, of any age, and why the list is incomplete or
    old; "" if it is neither.
    """

    provider: str
    listed: ModelList = field(default_factory=ModelList)
    problem: str = ""


@frozen
class ListPage:
    """One response with models, and the parameter that asks for the next page, if there is one."""

    models: tuple[ListedModel, ...]
    following: tuple[str, str] | None = None


def list_page(raw: Any) -> ListPage:
    """The models in a response. Raises ValueError if it is not a list of models."""
    entries, fields = raw, raw if isinstance(raw, Mapping) else {}
    if fields:
        entries = next((fields[key] for key in ("data", "models") if key in fields), None)
    if not isinstance(entries, list):
        raise ValueError("it is not a list of models")
    # More than the limit, so that the reader of all pages notices that the list is too long.
    models = tuple(_models(entries[: MOST_MODELS + 1]))
    if entries and not models and not any(_is_entry(entry) for entry in entries):
        raise ValueError("it is not a list of models")
    return ListPage(models, _following(fields))


def _is_entry(entry: object) -> bool:
    return isinstance(entry, Mapping) and bool(_text(entry, "id") or _text(entry, "name"))


def _following(fields: Mapping[str, Any]) -> tuple[str, str] | None:
    """Anthropic's `after_id` or Gemini's `pageToken`; other lists have one page."""
    if fields.get("has_more") is True and (last := _text(fields, "last_id")):
        return "after_id", last
    token = _text(fields, "nextPageToken")
    return ("pageToken", token) if token else None


def complete_list(models: Iterable[ListedModel], at: float, problem: str = "") -> ModelList:
    """The list of these models, each once."""
    unique = {model.id: model for model in models}
    kept = sorted(unique.values(), key=lambda model: model.id)[:MOST_MODELS]
    if len(unique) > MOST_MODELS:
        problem = problem or f"it has more than {MOST_MODELS} models; the others are left out"
    return ModelList(tuple(kept), at, problem)


def _models(entries: Iterable[Any]) -> Iterator[ListedModel]:
    for entry in entries:
        if isinstance(entry, Mapping) and (model := _model(entry)):
            yield model


def _model(entry: Mapping[str, Any]) -> ListedModel | None:
    """The model in an entry; None if the name is unusable, or the model does not write texts."""
    name = (_text(entry, "id") or _text(entry, "name")).removeprefix("models/")
    if not is_model_name(name) or not _writes_texts(entry):
        return None
    return ListedModel(
        name,
        ModelFacts(
            window=_first(entry, _WINDOWS)
            or _first(_table(entry, "meta"), ("n_ctx", "n_ctx_train")),
            max_output=_first(entry, _OUTPUTS)
            or _first(_table(entry, "top_provider"), ("max_completion_tokens",)),
            price=_price(_table(entry, "pricing")),
            thinking=_thinking(entry),
            efforts=_efforts(entry),
            sees_pictures=_takes(entry, "image", "image_input", "vision"),
            reads_pdfs=_takes(entry, "file", "pdf_input", ""),
            searches=_supported(
                _table(_table(entry, "capabilities"), "server_tools"), "web_search"
            ),
        ),
        created=max(_seconds(entry.get(key)) for key in ("created", "created_at", "modified_at")),
        line=one_line(_text(entry, "line"))[:_LONGEST_LINE],
        lifecycle=next(
            (stage for stage in get_args(Lifecycle) if stage == entry.get("lifecycle")), "active"
        ),
        ends=_day(entry.get("retires_at")) or _day(entry.get("shutdown_date")),
    )


def is_model_name(name: str) -> bool:
    """Whether a name from outside can be shown and sent: one short word of visible characters."""
    is_short = 0 < len(name) <= _LONGEST_NAME
    return is_short and bool(_NAME.fullmatch(name)) and one_line(name) == name


# Anthropic: `max_input_tokens`, `max_tokens` (anthropic 2.12, types/model_info.py). Gemini:
# `inputTokenLimit`, `outputTokenLimit` (google-genai 3.4). OpenRouter: `context_length`,
# `top_provider.max_completion_tokens` (openrouter.ai/docs/api-reference/list-available-models).
# vLLM: `max_model_len`. Groq: `context_window`, `max_completion_tokens`. LM Studio and Mistral:
# `max_context_length`. All read 2026-11-24, except the last three, for which no source was kept.
_WINDOWS = (
    *("max_input_tokens", "inputTokenLimit", "context_length", "context_window"),
    *("max_context_length", "max_model_len"),
)
_OUTPUTS = ("max_tokens", "outputTokenLimit", "max_output_tokens", "max_completion_tokens")


def _first(entry: Mapping[str, Any], keys: Iterable[str]) -> int | None:
    return next((count for key in keys if (count := _count(entry.get(key)))), None)


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST
    return value if is_count else None  # type: ignore[return-value]


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _table(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = entry.get(key)
    return value if isinstance(value, Mapping) else {}


def _words(entry: Mapping[str, Any], key: str) -> list[str] | None:
    """The texts in a list; None if there is no list."""
    value = entry.get(key)
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else None


def _writes_texts(entry: Mapping[str, Any]) -> bool:
    """Whether the model can answer, unlike a model for embeddings or pictures; in doubt, it can."""
    capabilities = _words(entry, "capabilities")
    methods = _words(entry, "supportedGenerationMethods")
    written = _words(_table(entry, "architecture"), "output_modalities")
    is_other = capabilities == ["embedding"] or (methods and "generateContent" not in methods)
    return not (is_other or (written and "text" not in written))


def _price(pricing: Mapping[str, Any]) -> Price | None:
    """The price of a million tokens, from the prices of one token; OpenRouter's -1 means that the
    price varies."""
    prompt, reply, cached = (
        next((price for key in keys if (price := _dollars(pricing.get(key))) is not None), None)
        for keys in (
            ("prompt", "input"),
            ("completion", "output"),
            ("input_cache_read", "input_cache_reads"),
        )
    )
    return None if prompt is None or reply is None else Price(prompt, reply, cached)


def _dollars(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        price = float(value) * _PER_MILLION
    except (ValueError, OverflowError):
        return None
    return round(price, 6) if 0 <= price < _PER_MILLION else None


def _supported(table: Mapping[str, Any], key: str) -> bool | None:
    """Anthropic's `{"supported": …}` under a key; None if nothing is stated."""
    value = _table(table, key).get("supported")
    return value if isinstance(value, bool) else None


def _thinking(entry: Mapping[str, Any]) -> tuple[ThinkingType, ...] | None:
    types = _table(_table(_table(entry, "capabilities"), "thinking"), "types")
    known: tuple[ThinkingType, ...] = get_args(ThinkingType)
    if not any(_supported(types, kind) is not None for kind in known):
        return None
    return tuple(kind for kind in known if _supported(types, kind))


def _efforts(entry: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Anthropic's efforts, or the values that Ollama lists for a model's thinking."""
    known: tuple[Effort, ...] = get_args(Effort)
    effort = _table(_table(entry, "capabilities"), "effort")
    if effort:
        return tuple(level for level in known if _supported(effort, level))
    values = _words(_table(entry, "thinking"), "values")
    return None if values is None else tuple(level for level in known if level in values)


def _takes(entry: Mapping[str, Any], modality: str, anthropics: str, ollamas: str) -> bool | None:
    """Whether a model accepts a kind of attachment; None if the list does not say."""
    read = _words(_table(entry, "architecture"), "input_modalities")
    if read is not None:
        return modality in read
    capabilities = _words(entry, "capabilities")
    if ollamas and capabilities and "completion" in capabilities:
        return ollamas in capabilities
    return _supported(_table(entry, "capabilities"), anthropics)


def _seconds(value: object) -> float:
    """A time as seconds since 1970; 0 if it is unknown."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())
        except (ValueError, OverflowError):
            return 0.0
    is_time = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_time and 0 <= value <= LARGEST and math.isfinite(value) else 0.0  # type: ignore[operator, arg-type]


def _day(value: object) -> str:
    """The day of a moment, as YYYY-MM-DD; "" if there is none."""
    try:
        return datetime.fromisoformat(value).date().isoformat() if isinstance(value, str) else ""
    except ValueError:
        return ""


# --- Ollama -------------------------------------------------------------------------------------


def with_details(model: ListedModel, raw: Any) -> ListedModel | None:
    """A model with the facts from Ollama's `/api/show`; None if it does not write texts.

    Ollama cuts a prompt that is longer than `num_ctx`, if the model's own parameters set it.
    """
    details = raw if isinstance(raw, Mapping) else {}
    info = _table(details, "model_info")
    lengths = (_count(value) for key, value in info.items() if key.endswith(".context_length"))
    own = re.search(r"^num_ctx\s+(\d{1,9})\s*$", _text(details, "parameters"), re.MULTILINE)
    shown = {key: details[key] for key in ("capabilities", "thinking") if key in details}
    entry = _model({"id": model.id, **shown})
    if entry is None:
        return None
    window = int(own[1]) if own else next(filter(None, lengths), None)
    return replace(model, facts=replace(entry.facts, window=window or None))


# --- Names --------------------------------------------------------------------------------------

_DATE = late_pattern(r"[-@:](?:\d{4}-\d{2}-\d{2}|\d{8}|latest|0\d\d)$")
_PARTS = late_pattern(r"[a-z]+|\d+")


def is_same_model(requested: str, other: str) -> bool:
    """Whether two names mean the same model, although one has a date, another word order, or the
    maker's name at the beginning.

    An alias such as `gemini-pro-latest` does not count as the name of the model for which it
    stands.
    """
    return _parts(requested) == _parts(other)


@lru_cache(2 * MOST_MODELS)
def _parts(name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """A name's words in alphabetical order, and its numbers in their own order."""
    plain = _DATE.sub("", name.lower().rpartition("/")[2])
    parts = _PARTS.findall(plain)
    words = sorted(part for part in parts if not part.isdigit())
    return tuple(words), tuple(int(part) for part in parts if part.isdigit())
