"""What went wrong with a provider, in one bounded line that says what to do; no key or traceback in it."""

from __future__ import annotations

import re
from typing import Any

from parley.errors import ModelError
from parley.settings import Provider

SHOWN = 300

_WHAT_TO_DO: dict[int, str] = {
    401: "the key is not accepted: check {key}",
    403: "the key may not do this: check {key} and the account",
    404: "no such model or address: check the agent's model {model!r} and the base URL",
    413: "the request is too large: shorten the chat or lower max_full_exchanges",
    429: "too many requests, or no credit left: wait, then :ParleyRespond",
    529: "the provider is overloaded: wait, then :ParleyRespond",
}
_SECRETS = re.compile(r"(?i)(sk-|key-|bearer\s+|api[_-]?key[\"'=:\s]+)[\w*.\-]{6,}")


def no_key(provider: Provider, why: str = "") -> ModelError:
    """The provider's key is not to be had."""
    wanted = f"set {provider.api_key_env}" if provider.api_key_env else "set the provider's api_key_env"
    detail = f" ({why})" if why else ""
    return ModelError(
        f"No key for {provider.name}{detail}: {wanted} before starting, or choose another agent with "
        ":ParleyAgent; the agent Demo needs none",
        reason=f"no key for {provider.name}",
    )


def failure(provider: Provider, model: str, error: Any) -> ModelError:
    """What an SDK's error means."""
    status = getattr(error, "status_code", None)
    if status is None:
        return broken_off(provider, error.__cause__ or error)
    said = bounded(_message(error))
    hint = _WHAT_TO_DO.get(
        status, "try :ParleyRespond again" if status >= 500 else "see :ParleyRequest for what was sent"
    )
    key = provider.api_key_env or "the provider's key"
    return ModelError(
        f"{provider.name} answered {status}: {said}. What to do: {hint.format(key=key, model=model)}",
        reason=f"{provider.name} answered {status}",
        status=status,
    )


def broken_off(provider: Provider, error: BaseException) -> ModelError:
    """The connection could not be made, or was lost."""
    kind = type(error).__name__
    if "Timeout" in kind:
        what, hint = "did not answer in time", "wait, then :ParleyRespond asks again"
    elif "Connect" in kind:
        what, hint = "cannot be reached", "check the network and the base URL, then :ParleyRespond"
    else:
        what, hint = "broke off the connection", ":ParleyRespond asks again"
    return ModelError(
        f"{provider.name} {what} ({bounded(str(error)) or kind}). {hint}", reason=f"{provider.name} {what}"
    )


def _message(error: Any) -> str:
    """The provider's own words: out of the error's JSON where there is some, never a page of HTML."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
        if isinstance(inner, str):
            return inner
    text = str(getattr(error, "message", error))
    return re.sub(r"<[^>]*>", " ", text)


def bounded(text: str) -> str:
    """One line of at most 300 characters, with anything like a key blotted out."""
    return " ".join(_SECRETS.sub(r"\1…", text).split())[:SHOWN].rstrip(" .")
