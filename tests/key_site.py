"""A provider where any program may sign its user in, over real HTTP: page, exchange and models.

Checks PKCE as OpenRouter documents it (openrouter.ai/docs/guides/overview/auth/oauth, 2026-11-26).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.local_server import LocalServer, on_a_thread

Will = Literal["yes", "no", "other state", "no code", "other code"]
STREAM = "".join(
    f"data: {json.dumps(chunk)}\n\n"
    for chunk in (
        {"model": "lab/one", "choices": [{"index": 0, "delta": {"content": "Signed in."}}]},
        {"model": "lab/one", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    )
)


@dataclass
class Reply:
    """An answer to the exchange, instead of a key."""

    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


class KeySite(LocalServer):
    """Its user agrees, or does as `will` says; `reply` replaces the reply to the exchange."""

    def __init__(self, will: Will = "yes", reply: Reply | None = None) -> None:
        super().__init__()
        self.will = will
        self.reply = reply
        self.is_closed = False
        """Whether it answers every question with 403."""
        self.challenges = dict[str, str]()
        """By code."""
        self.keys = set[str]()
        self.secrets = set[str]()
        self.asked = list[tuple[str, str]]()
        """The path and the bearer key of each request."""

    @property
    def base(self) -> str:
        """The base URL of its models."""
        return f"{self.url}/api/v1"

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = dict(
                line.lower().split(": ", 1) for line in head.split("\r\n") if ": " in line.lower()
            )
            body = await reader.readexactly(int(lines.get("content-length", "0")))
            target = urlsplit(head.split(" ", 2)[1])
            keys = [line for line in head.split("\r\n") if line.lower().startswith("authorization")]
            bearer = keys[0].rpartition(" ")[2] if keys else ""
            self.asked.append((target.path, bearer))
            reply = self._answer(target.path, parse_qs(target.query), body, bearer)
            reply.headers.setdefault("content-length", str(len(reply.content)))
            rows = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
            writer.write(f"HTTP/1.1 {reply.status} x\r\n{rows}\r\n".encode() + reply.content)
            await writer.drain()

    def _answer(self, path: str, query: dict[str, list[str]], body: bytes, bearer: str) -> Reply:
        match path:
            case "/auth":
                return Reply(302, b"", {"location": self._agreed(query)})
            case "/api/v1/auth/keys":
                return self.reply or self._exchanged(json.loads(body))
            case "/api/v1/chat/completions" | "/api/v1/models" if self.is_closed:
                return _json(403, {"error": {"message": "not for you", "code": 403}})
            case "/api/v1/chat/completions" if bearer in self.keys:
                return Reply(200, STREAM.encode(), {"content-type": "text/event-stream"})
            case "/api/v1/models" if bearer in self.keys:
                return _json(200, {"data": [{"id": "lab/one"}]})
            case "/api/v1/chat/completions" | "/api/v1/models":
                return _json(401, {"error": {"message": f"No user for {bearer}", "code": 401}})
            case _:
                return _json(404, {})

    def _agreed(self, query: dict[str, list[str]]) -> str:
        """The address to which the user's browser goes back."""
        back, (challenge,), (method,) = (
            query["callback_url"][0],
            query["code_challenge"],
            query["code_challenge_method"],
        )
        assert method == "S256"
        if self.will == "no":
            return f"{back}&{urlencode({'error': 'access_denied'})}"
        if self.will == "no code":
            return back
        if self.will == "other state":
            back = back.partition("?")[0] + "?state=" + "x" * 43
        code = secrets.token_urlsafe(24)
        self.secrets.add(code)
        if self.will != "other code":
            self.challenges[code] = challenge
        return f"{back}&{urlencode({'code': code})}"

    def _exchanged(self, sent: dict[str, Any]) -> Reply:
        if sent["code_challenge_method"] != "S256":
            return _json(400, {"error": {"message": "invalid code_challenge_method"}})
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        self.secrets.add(sent["code_verifier"])
        if self.challenges.pop(sent["code"], None) != challenge:
            return _json(403, {"error": {"message": f"invalid code {sent['code']}"}})
        key = f"sk-or-{secrets.token_hex(32)}"
        self.keys.add(key)
        self.secrets.add(key)
        return _json(200, {"key": key, "user_id": "user_1"})


def _json(status: int, value: Any) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"content-type": "application/json"})


@contextmanager
def key_site(will: Will = "yes") -> Iterator[KeySite]:
    """The site on a thread of its own."""
    site = KeySite(will)
    with on_a_thread(site):
        yield site
