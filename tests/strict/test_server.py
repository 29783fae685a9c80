"""The demo server of all tests is strict."""

import os

import httpx2


async def test_the_demo_server_of_this_test_run_refuses_what_the_provider_would() -> None:
    body = {"model": "demo", "max_tokens": 9, "messages": [{"role": "assistant", "content": "a"}]}
    async with httpx2.AsyncClient() as client:
        url = f"http://127.0.0.1:{os.environ['PARLEY_DEMO_PORT']}/v1/messages"
        assert (await client.post(url, json=body)).status_code == 400
