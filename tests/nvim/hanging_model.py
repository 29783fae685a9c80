"""The demo model on its own thread; it never answers requests to the model `hanging`.

It answers the model `held` after the test releases it, and then refuses `refusing`. It can replace
words in a question before answering, also for a single model, so that the screen need not show its
rules' words.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from parley.demo.server import create_app
from tests.asgi import AsgiServer
from tests.strict import check


@dataclass
class HangingModel:
    """The received requests, and the requests that the client cancelled."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """The time of each, in seconds on the clock that all processes share."""
    given_up: int = 0
    go: threading.Event = field(default_factory=threading.Event)


@contextmanager
def hanging_model(
    words: Mapping[str, str] | None = None, of: Mapping[str, Mapping[str, str]] | None = None
) -> Iterator[HangingModel]:
    """`words` maps words to their replacements, and `of` maps models to such words."""
    model, app = HangingModel(), create_app(pace=0, check=check)

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        first = await receive()
        own = (of or {}).get(json.loads(first["body"])["model"], {})
        for word, meaning in {**(words or {}), **own}.items():
            text = first["body"].decode().replace(_inside(word), _inside(meaning))
            first = {**first, "body": text.encode()}
        body = json.loads(first["body"])
        if body["model"] in ("held", "refusing"):
            model.asked.append(body)
            await asyncio.to_thread(model.go.wait)
        if body["model"] == "refusing":
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        if body["model"] != "hanging":
            await app(scope, _once(first, receive), send)
            return
        model.times.append(time.monotonic())
        model.asked.append(body)
        while (await receive())["type"] != "http.disconnect":
            pass
        model.given_up += 1

    server = AsgiServer(serve, port=0, lifespan="off")
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        model.url = f"http://127.0.0.1:{port}"
        yield model
    finally:
        model.go.set()
        server.should_exit = True
        thread.join()


def _inside(text: str) -> str:
    """A text as written in JSON, without the quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _once(first: Any, receive: Any) -> Any:
    """A receiver that first returns a message that was already received."""
    messages = [first]

    async def again() -> Any:
        return messages.pop() if messages else await receive()

    return again
