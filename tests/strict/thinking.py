"""Refusals of the Messages API about thinking: modes by model, budgets, and returned blocks.

Up to 4.5 only `enabled` with a budget, 4.6 both, from 4.7 on only `adaptive` with an effort. Inside
an open tool loop, blocks must return unchanged; the demo model recognizes its own by their
signature.
"""

from collections.abc import Iterator
from typing import Any

from parley.demo.dialogue import claude_version
from parley.demo.signing import unseal, verify
from tests.strict.shapes import Body, Rule
from tests.strict.turns import open_loop, turns

_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_TYPES = ("enabled", "adaptive", "disabled", "between_tools")
_ALWAYS_THINKING = ("opus-5-5", "fable-5-1")


def _thinking(body: Body) -> dict[str, Any]:
    return body.get("thinking") or {}


def _mode(body: Body) -> Iterator[str]:
    kind, model = _thinking(body).get("type"), str(body["model"])
    version = claude_version(model)
    if body.get("thinking") is not None and kind not in _TYPES:
        yield "thinking.type: Input should be 'enabled', 'adaptive', 'disabled' or 'between_tools'"
    if version is None:
        return
    if kind == "enabled" and version >= (4, 7):
        yield (
            '"thinking.type.enabled" is not supported for this model. Use '
            '"thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )
    if kind == "adaptive" and version < (4, 6):
        yield "adaptive thinking is not supported on this model"
    if kind == "enabled" and version < (3, 7):
        yield "thinking is not supported on this model"
    if kind == "between_tools" and "sonnet-5-5" not in model:
        yield '"thinking.type.between_tools" is not supported for this model.'
    if kind == "disabled" and any(name in model for name in _ALWAYS_THINKING):
        yield '"thinking.type.disabled" is not supported for this model.'


def _budget(body: Body) -> Iterator[str]:
    kind, budget = _thinking(body).get("type"), _thinking(body).get("budget_tokens")
    if kind != "enabled":
        if budget is not None:
            yield f"thinking.{kind}.budget_tokens: Extra inputs are not permitted"
    elif budget is None:
        yield "thinking.enabled.budget_tokens: Field required"
    elif budget < 1024:
        yield "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    elif budget >= body["max_tokens"]:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."


def _effort(body: Body) -> Iterator[str]:
    effort, model = (body.get("output_config") or {}).get("effort"), str(body["model"])
    version = claude_version(model)
    if effort is not None and effort not in _EFFORTS:
        yield "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"
    if effort is not None and version is not None and version < (4, 6) and "opus-4-5" not in model:
        yield "This model does not support the effort parameter"


def _forced_tool(body: Body) -> Iterator[str]:
    choice = (body.get("tool_choice") or {}).get("type")
    if _thinking(body).get("type") == "enabled" and choice in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _before_the_calls(body: Body) -> Iterator[str]:
    for turn in turns(body):
        has_call = False
        for placed in turn.blocks:
            has_call = has_call or placed.kind == "tool_use"
            if has_call and placed.kind in ("thinking", "redacted_thinking"):
                yield f"{placed.place}: `{placed.kind}` blocks must come before `tool_use` blocks"


def _signatures(body: Body) -> Iterator[str]:
    for turn in open_loop(body):
        for placed in turn.of("thinking"):
            if not verify(placed.block["thinking"], placed.block["signature"]):
                yield f"{placed.place}: Invalid `signature` in `thinking` block"
        for placed in turn.of("redacted_thinking"):
            if unseal(placed.block["data"]) is None:
                yield f"{placed.place}: Invalid `data` in `redacted_thinking` block"


def _loop_begins_with_thinking(body: Body) -> Iterator[str]:
    """Manual mode only: adaptive models accept an open loop without its thinking."""
    replies = [turn for turn in open_loop(body) if turn.role == "assistant" and turn.blocks]
    if _thinking(body).get("type") != "enabled" or not replies:
        return
    first = replies[0].blocks[0]
    if first.kind not in ("thinking", "redacted_thinking"):
        yield (
            f"{first.place}.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{first.kind}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking "
            "block (preceeding "
            "the lastmost set of `tool_use` and `tool_result` blocks)."
        )


THINKING_RULES: tuple[Rule, ...] = (
    _mode,
    _budget,
    _effort,
    _forced_tool,
    _before_the_calls,
    _signatures,
    _loop_begins_with_thinking,
)
