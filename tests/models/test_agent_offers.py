"""What agents offer: words that can be shown and written, also after they were kept as a hint."""

from __future__ import annotations

from hypothesis import given

from parley.models.agent_offers import AgentOffer, OfferedWord, offer_of
from tests.models.test_agent_records import JSON

GROUP = {"group": "g", "options": [{"value": "a", "name": "A", "description": "Asks"}]}
MODES = {"category": "mode", "id": "m", "currentValue": "a", "options": [GROUP, {"value": "b"}]}
MODELS = {"category": "model", "id": "x", "currentValue": "y", "options": [{"value": "y"}]}


def test_the_modes_models_and_commands_of_a_session() -> None:
    offer = AgentOffer().with_state({"configOptions": [3, MODES, MODELS]})
    offer = offer.with_commands(
        [{"name": "review", "description": "Review it"}, 3, {"name": "a b"}, {"name": "review"}]
    )
    assert offer == AgentOffer(
        (OfferedWord("a", "A: Asks"), OfferedWord("b")),
        (OfferedWord("y"),),
        (OfferedWord("review", "Review it"),),
    )
    assert offer_of(offer.hint()) == offer
    assert offer.with_state({}) == offer
    older = AgentOffer().with_state(
        {
            "modes": {"availableModes": [{"id": "ask", "name": "Ask"}, 3]},
            "models": {"availableModels": [{"modelId": "pro"}]},
        }
    )
    assert older == AgentOffer((OfferedWord("ask", "Ask"),), (OfferedWord("pro"),))


def test_words_that_cannot_be_shown_are_left_out() -> None:
    values = [{"value": v} for v in ("", "x" * 101, "a\u202eb", "a\nb", "ok")]
    offer = AgentOffer().with_state({"configOptions": [{**MODES, "options": values}]})
    assert offer.modes == (OfferedWord("ok"),)


@given(JSON, JSON)
def test_any_json_gives_an_offer_that_can_be_kept(raw: object, options: object) -> None:
    offer = AgentOffer().with_state(raw).with_commands(raw)
    offer = offer.with_state({"configOptions": [{**MODES, "options": options}]})
    assert offer_of(offer.hint()) == offer


@given(JSON)
def test_an_unreadable_hint_is_no_offer(raw: object) -> None:
    assert offer_of(None) == offer_of("[") == offer_of("[[],3,[]]") == AgentOffer()
    assert isinstance(offer_of(repr(raw)), AgentOffer)
