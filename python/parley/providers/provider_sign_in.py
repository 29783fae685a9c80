"""Signs the user in at a provider by OAuth with PKCE, and receives an API key that the user controls.

Knows OpenRouter's page and exchange, which need no registration; other providers allow sign-in only
in their own programs. Its errors never contain the code, the verifier or the key.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2

from parley.errors import ParleyError
from parley.http import bodies
from parley.http.proxies import ProxyError, client_options
from parley.logins.loopback import Loopback
from parley.logins.stored_logins import Login
from parley.providers.provider_errors import bounded
from parley.secrets import SecretError, sound_secret
from parley.tools.visits import Visit, visit

_METHOD = "S256"
_MOST_BYTES = 65_536
_LONGEST_KEY = 1_000
_EXCHANGE_S = 30.0
_REFUSED = {
    400: "the site did not accept the method S256",
    403: "the site did not accept the code",
}


async def sign_in(
    name: str, url: str, loopback: Loopback, browse: Callable[[Visit], object]
) -> Login:
    """Sign the user in at the provider with this base URL; `browse` shows and opens the page.
    Raises ParleyError.
    """
    # The page is /auth of the host, with `callback_url`, `code_challenge` and
    # `code_challenge_method`; POST to /auth/keys below the API exchanges code and verifier for
    # {"key"}, or answers 400 (method), 403 (code) or 405
    # (openrouter.ai/docs/guides/overview/auth/oauth, openrouter.ai/docs/oauth, 2026-11-26).
    verifier, state = secrets.token_urlsafe(64), secrets.token_urlsafe(32)
    digest = hashlib.sha256(verifier.encode()).digest()
    asked = {
        "callback_url": f"{loopback.url}?{urlencode({'state': state})}",
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": _METHOD,
    }
    parts = urlsplit(url)
    try:
        address = f"{parts.scheme}://{parts.netloc}/auth?{urlencode(asked)}"
        page = visit(address, f"Sign in to {name}")
    except ValueError:  # its text may contain a password
        raise _failed(name, "no browser can open its base URL") from None
    if page.is_open:
        raise _failed(name, f"{page.host} does not use https, so others could intercept it")
    browse(page)
    answer = await loopback.answer(state)
    if refusal := answer.get("error"):
        more = answer.get("error_description", "")
        raise _failed(name, f"the site refused: {bounded(f'{refusal} {more}')}")
    code = answer.get("code", "")
    if not code:
        raise _failed(name, "the browser came back without a code")
    reply = await _exchanged(name, f"{url}/auth/keys", code, verifier)
    given = reply.get("key")
    try:
        key = sound_secret(given if isinstance(given, str) else "", f"key of {name}")
    except SecretError:
        key = ""
    if not 0 < len(key) <= _LONGEST_KEY:
        raise _failed(name, "the site's reply contains no usable key")
    return Login(url, {"access_token": key}, {}, {})


async def _exchanged(name: str, url: str, code: str, verifier: str) -> dict[str, Any]:
    """The site's reply to the code and its verifier."""
    sent = {"code": code, "code_verifier": verifier, "code_challenge_method": _METHOD}
    hooks = [bodies.stay, bodies.bounded(_MOST_BYTES, streams=True)]
    try:
        async with httpx2.AsyncClient(
            **client_options(url),
            **bodies.client_options(),
            timeout=httpx2.Timeout(_EXCHANGE_S),
            event_hooks={"response": hooks},
        ) as client:
            response = await client.post(url, json=sent)
        reply = json.loads(response.content) if response.is_success else {}
    except ProxyError as error:
        raise _failed(name, str(error)) from None
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        # Not `from error`: its request contains the code, which a traceback could show.
        why = bounded(str(error), code, verifier) or type(error).__name__
        raise _failed(name, why) from None
    except (ValueError, RecursionError):
        raise _failed(name, "the site's reply is not JSON") from None
    if not response.is_success:
        why = _REFUSED.get(response.status_code, "the site did not grant a key")
        raise _failed(name, f"{why} (HTTP {response.status_code})")
    return reply if isinstance(reply, dict) else {}


def _failed(name: str, why: str) -> ParleyError:
    return ParleyError(f"sign-in to '{name}' failed: {why}. Sign in again: :ParleyLogin {name}")
