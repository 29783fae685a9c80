"""Sign-ins that end by themselves, because they take too long or their work fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from parley.errors import ParleyError
from parley.logins.loopback import Loopback
from parley.logins.sign_ins import SignIns
from parley.logins.stored_logins import Login, Logins


async def test_a_sign_in_that_takes_too_long_ends_and_closes_its_port() -> None:
    sign_ins, ports = SignIns(seconds=0.05), list[str]()

    async def attempt(loopback: Loopback) -> None:
        ports.append(loopback.url)
        sign_ins.shows("lab", "https://lab.example/auth")
        assert sign_ins.page("lab") == "https://lab.example/auth"
        await loopback.answer("s" * 20)

    with pytest.raises(ParleyError, match=r"sign-in to 'lab' timed out after 0\.05 s"):
        await sign_ins.run("lab", Loopback(), attempt)
    assert sign_ins.page("lab") is None
    assert not sign_ins.cancel("lab")
    assert not sign_ins.take("lab", f"{ports[0]}?state={'s' * 20}&code=1")
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", int(ports[0].split(":")[2].split("/")[0]))


async def test_the_failure_of_a_sign_in_reaches_the_caller() -> None:
    async def attempt(_: Loopback) -> None:
        raise ParleyError("the site is closed")

    sign_ins = SignIns()
    with pytest.raises(ParleyError, match="the site is closed"):
        await sign_ins.run("lab", Loopback(), attempt)
    assert sign_ins.page("lab") is None


def test_signing_out_also_deletes_the_key_of_a_process_that_was_killed(tmp_path: Path) -> None:
    logins = Logins(tmp_path / "logins")
    logins.put(Login("https://a.example", {"access_token": "k" * 20}, {}, {}))
    logins.put(Login("https://b.example", {"access_token": "k" * 20}, {}, {}))
    (kept, *_) = [p for p in (tmp_path / "logins").glob("*.json") if "b.example" in p.read_text()]
    (gone,) = {*(tmp_path / "logins").glob("*.json")} - {kept}
    gone.with_suffix(".123.new").write_text("k" * 20)
    assert logins.forget("https://a.example")
    assert [path.name for path in (tmp_path / "logins").iterdir()] == [kept.name]
    assert logins.get("https://b.example")
    gone.with_suffix(".123.new").write_text("k" * 20)
    assert not logins.forget("https://a.example")
    assert [path.name for path in (tmp_path / "logins").iterdir()] == [kept.name]
