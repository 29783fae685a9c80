"""Errors for providers' failures: one bounded line with a remedy, without keys or tracebacks."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from parley.errors import ModelError, ParleyError, first_reason
from parley.http.error_pages import MOST_READ, without_tags
from parley.late_patterns import late_pattern
from parley.models.events import RateLimits
from parley.models.refusals import SHORTEN, TOO_LONG, says_too_long
from parley.settings.values import ProviderSettings
from parley.text import one_line, size_text

LONGEST_MESSAGE = 300
_SHORTEST_KEY = 6
"""A shorter key is a placeholder such as "none", which any text may contain."""
LONGEST_WAIT_S = 60.0
"""The longest time that Parley waits for a provider before a retry."""

# The statuses of both SDKs: anthropic 2.12, _exceptions.py, and openai 3.54, _exceptions.py, read
# 2026-11-22; 413 is Anthropic's `request_too_large`, 529 its `overloaded_error`
# (docs.anthropic.com/zh-CN/api/errors).
_NOT_ACCEPTED = 401
_WHAT_TO_DO: dict[int, str] = {
    _NOT_ACCEPTED: "check {key} (the key was not accepted)",
    402: "check the account (no credit is left)",
    403: "check {key} and the account (the key does not have permission for this)",
    404: "check the agent's model {model!r} and the base URL (one of them does not exist)",
    407: "check HTTPS_PROXY (the proxy requires a password)",
    408: "try :ParleyRespond again",
    409: "try :ParleyRespond again",
    413: f"{SHORTEN} (the request is too large)",
    429: "wait or add credit, then try :ParleyRespond again (too many requests, or no credit left)",
    529: "wait, then try :ParleyRespond again (the provider is overloaded)",
}
_PASSING = frozenset({408, 409, 429})
"""Statuses below 500 that the request did not cause; all statuses from 500 are treated alike."""

_SECRETS = late_pattern(
    r"(?i)(sk-|key-|bearer\s+|api[_-]?key(?:\s*[\"'=:][\"'=:\s]*|\s+(?=\S*\d)))[\w*.\-]{6,}"
)
"""Keys in texts from outside; a plain word after "API key" is not a key."""


def no_key(provider: ProviderSettings, why: str = "") -> ModelError:
    """The error for a provider's missing key."""
    advice = f"set {provider.key_variable} before you start Neovim"
    if provider.signs_in:
        advice = f"sign in with {provider.sign_in_command}, {advice}"
    if provider.api_key_command:
        advice = f"check providers.{provider.name}.api_key_command in the settings"
    detail = f" ({why})" if why else ""
    return ModelError(
        f"No key for {provider.name}{detail}: {bounded(advice)}, or choose another agent "
        "with :ParleyAgent; the agent Demo needs no key",
        reason=f"no key for {provider.name}",
    )


def failure(
    provider: ProviderSettings, model: str, error: Any, secrets: Sequence[str]
) -> ModelError:
    """The error for an SDK's exception, without these secrets."""
    status = getattr(error, "status_code", None)
    if status is None:
        return broken_off(provider, model, error.__cause__ or error, secrets)
    return _refused(
        provider, model, status, bounded(_message(error), *secrets), error.response.headers
    )


def _refused(
    provider: ProviderSettings, model: str, status: int, words: str, headers: Mapping[str, str]
) -> ModelError:
    """The error for a status from the provider, or from a proxy in between."""
    is_too_long = says_too_long(words)
    hint = SHORTEN if is_too_long else _what_to_do(status)
    if provider.signed_in and status == _NOT_ACCEPTED:
        hint = f"sign in again with {provider.sign_in_command} (the key was not accepted)"
    elif status == _NOT_ACCEPTED and not (provider.has_key or provider.has_key_header):
        setting = f"providers.{bounded(provider.name)}.api_key_env"
        hint = f"set {setting} to the name of the key's variable (no key was sent)"
    key = _key_name(provider)
    return ModelError(
        f"{provider.name} answered {status}{f': {words}' if words else ''}. "
        f"What to do: {hint.format(key=bounded(key), model=model)}",
        reason=TOO_LONG if is_too_long else f"{provider.name} answered {status}",
        status=status,
        retryable=_may_be_retried(status, headers),
        retry_after=_retry_after(headers),
        words=words,
    )


def _key_name(provider: ProviderSettings) -> str:
    if provider.signed_in:
        return "the key of your sign-in"
    return provider.key_variable or "the provider's key"


def _what_to_do(status: int) -> str:
    usual = "try :ParleyRespond again" if status >= 500 else ":ParleyRequest shows what was sent"
    return _WHAT_TO_DO.get(status, usual)


_LASTING = (
    *("InvalidURL", "UnsupportedProtocol", "LocalProtocolError", "TooManyRedirects"),
    *("ElsewhereError", "UnreadableError"),
)
"""Errors for which retrying is useless."""


_TUNNEL_REFUSED = late_pattern(r"([1-5]\d\d)\b *(.*)", re.DOTALL)
"""The text of an `httpx2` when a proxy answers CONNECT with a status other than 200."""


def broken_off(
    provider: ProviderSettings, model: str, error: BaseException, secrets: Sequence[str]
) -> ModelError:
    """The error for a connection that failed or was lost."""
    kind = type(error).__name__
    if kind == "ProxyError" and (match := _TUNNEL_REFUSED.match(str(error))):
        return _refused(provider, model, int(match[1]), bounded(match[2], *secrets), {})
    if "Timeout" in kind:
        what, hint = "did not answer in time", "wait, then try :ParleyRespond again"
    elif kind == "ProxyError":
        what, hint = "cannot be reached through the proxy", "check HTTPS_PROXY"
    elif "Connect" in kind:
        what, hint = (
            "cannot be reached",
            "check the network and the base URL, then try :ParleyRespond again",
        )
    elif kind == "ElsewhereError":
        what = "redirected the request to another address; nothing was sent there"
        hint = f"if that address is right, set providers.{bounded(provider.name)}.base_url to it"
    elif kind == "UnreadableError":
        what, hint = "sent an unreadable response", "check the base URL"
    elif kind in _LASTING:
        what, hint = "cannot be used", "check the base URL"
    else:
        what, hint = "broke off the connection", ":ParleyRespond asks again"
    why = bounded(first_reason(error), *secrets)
    detail = f" ({why})" if why else ""
    return ModelError(
        f"{provider.name} {what}{detail}. What to do: {hint}",
        reason=f"{provider.name} {what}",
        retryable=kind not in _LASTING,
        is_broken=kind not in _LASTING and not isinstance(error, TimeoutError),
    )


def in_stream(error: ModelError, secrets: Sequence[str]) -> ModelError:
    """A decoder's error with a remedy."""
    hint = "wait, then try :ParleyRespond again" if error.retryable else ":ParleyRespond asks again"
    words = bounded(str(error), *secrets)
    is_too_long = says_too_long(words)
    return ModelError(
        f"{words}. What to do: {SHORTEN if is_too_long else hint}",
        reason=TOO_LONG if is_too_long else bounded(error.reason, *secrets),
        retryable=error.retryable,
        words=words,
        is_broken=error.is_broken,
    )


_LONGEST_KIND = 60


def no_stream(provider: ProviderSettings, content_type: str) -> ModelError:
    """The error for a server whose response is not an event stream."""
    content = one_line(bounded(content_type), _LONGEST_KIND) or "no content type"
    return ModelError(
        (
            f"{provider.name} answered with {content} instead of an event stream. What to do: "
            "check "
            "the base URL"
        ),
        reason=f"{provider.name} did not send an event stream",
    )


def too_long(provider: ProviderSettings, most: int) -> ModelError:
    """The error for a response of more bytes than anyone needs."""
    what = f"sent more than {size_text(most)}"
    return ModelError(
        f"{provider.name} {what}. What to do: check the base URL", reason=f"{provider.name} {what}"
    )


def no_proxy(provider: ProviderSettings, error: ParleyError) -> ModelError:
    """The error for an unusable proxy."""
    return ModelError(
        f"{provider.name} cannot be reached: {error}", reason=f"no usable proxy to {provider.name}"
    )


def no_sdk(provider: ProviderSettings, error: ImportError) -> ModelError:
    """The error for a missing client library."""
    return ModelError(
        (
            f"the client library for {provider.name} cannot be loaded ({bounded(str(error))}). What to do: "
            ":ParleyInstall"
        ),
        reason="the client library is missing",
    )


def _may_be_retried(status: int, headers: Mapping[str, str]) -> bool:
    # "If the server explicitly says whether or not to retry, obey." (openai 3.54 and anthropic
    # 2.12, _base_client.py, read 2026-11-22)
    match headers.get("x-should-retry"):
        case "true":
            return True
        case "false":
            return False
        case _:
            return status in _PASSING or status >= 500


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait that a provider requests, as a number or a date; None if unspecified."""
    # "Prefer milliseconds, then seconds", then the date of RFC 9110, section 10.2.3 (openai 3.54,
    # _base_client.py, read 2026-11-22).
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers.get(name, "")) * unit
        except ValueError:
            continue
    try:
        return max(
            parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time(), 0.0
        )
    except (ValueError, OverflowError):
        return None


_LIMITS = late_pattern(r"^(?:x|anthropic)-ratelimit-(.+)$")


def rate_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """The provider's limits from a response's headers; None if there are none."""
    matches = ((_LIMITS.match(name.lower()), value) for name, value in headers.items())
    limits = sorted((match[1], bounded(value)) for match, value in matches if match)
    return RateLimits(tuple(limits)) if limits else None


def _message(error: Any) -> str:
    """The provider's own message: from the error's JSON if there is any, but never raw HTML."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        if isinstance(inner, str):
            return inner
    text = body if isinstance(body, str) else str(getattr(error, "message", error))
    return without_tags(text)


def bounded(text: str, *secrets: str) -> str:
    """One line of at most 300 characters, without the secrets or anything that looks like a key."""
    text = text[:MOST_READ]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…") if len(secret) >= _SHORTEST_KEY else text
    return one_line(_SECRETS.sub(r"\1…", text))[:LONGEST_MESSAGE].rstrip(" .")
