"""The measurements' own bookkeeping: which request and which report belong to which question."""

from __future__ import annotations

import json
import time
from urllib.request import urlopen

from tests.bench.subjects import HERE, serving


def post(port: int, question: str) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": question}]}).encode()
    with urlopen(f"http://127.0.0.1:{port}/v1/chat/completions", body) as answer:
        assert answer.readlines()[-2] == b"data: [DONE]\n"


def test_lines_that_nobody_read_are_not_taken_for_later_ones() -> None:
    with serving(HERE / "model_server.py") as server:
        for question in ("1 tokens", "2 tokens in 0 seconds", "3 tokens"):
            post(server.port, question)
        began = time.monotonic()
        post(server.port, "5 tokens in 0 seconds")
        request = server.request(began)
        assert request["number"] == 4
        sent = server.sent_s(request["number"], lambda: None)
    assert len(sent) == 5
    assert began < request["at"] < sent[0]
