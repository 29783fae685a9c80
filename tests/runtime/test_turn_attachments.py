"""The parts of results that cannot be saved are named; saved parts are tested with the tools."""

from __future__ import annotations

import pytest

from parley.chat.transcript import Result
from parley.models.events import Aside
from parley.models.searches import sealed
from parley.runtime.turn_attachments import TurnAttachments
from parley.storage.attachment_files import ChatAttachments
from parley.tools.results import Outcome
from tests.fakes import FakeObserver


@pytest.mark.parametrize(
    ("whole", "what"),
    [
        ("a long text", "The full text of a long result"),
        ('["a"]', "The full text of a long result"),
        (sealed("anthropic", {"content": []}), "The provider's part of a search result"),
    ],
)
async def test_a_part_that_is_not_kept_is_named_once(whole: str, what: str) -> None:
    observer = FakeObserver()
    kept = TurnAttachments(ChatAttachments(""), observer)
    assert await kept.result_of(Outcome("ok", "a page", whole=whole)) == Result("ok", "a page")
    assert observer.events == [
        Aside(f"{what} was not kept: it needs a file next to the chat. Save the chat first")
    ]
