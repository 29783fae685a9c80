"""Why a real provider would answer 400 to a request body, in the provider's words; [] if it would
not.

`check_anthropic(body, *, version=...)`, `check_openai(body, *, host="openai")` (Chat Completions)
and `check_responses(body)`. Each has its own module, with a table of rules that yield one reason
each.
"""

from parley.demo.checks.anthropic import check_anthropic
from parley.demo.checks.chat import check_openai
from parley.demo.checks.responses import check_responses

__all__ = ["check_anthropic", "check_openai", "check_responses"]
