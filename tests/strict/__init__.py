"""Why a real provider would answer 400 to a request body, in the provider's words; [] if it would
not.

`check_anthropic(body, *, version=...)`, `check_openai(body, *, host="openai")` (Chat Completions)
and `check_responses(body)`. Each has its own module, with a table of rules that yield one reason
each. `check(path, body, headers)` is for the demo server.
"""

from collections.abc import Mapping
from typing import Any

from tests.strict.anthropic import check_anthropic
from tests.strict.chat import check_openai
from tests.strict.responses import check_responses

__all__ = ["check", "check_anthropic", "check_openai", "check_responses"]


def check(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> list[str]:
    """Why the provider with this path would refuse a request."""
    match path:
        case "/v1/messages":
            return check_anthropic(body, version=headers.get("anthropic-version", "2023-06-01"))
        case "/v1/chat/completions":
            return check_openai(body)
        case _:
            return check_responses(body)
