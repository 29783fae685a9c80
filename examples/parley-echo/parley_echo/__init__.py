"""A provider for Parley without a model: it repeats the question, or calls the tool that the
question names.

`call web_search {"query": "google"}` calls a tool. The model "echo-plain" does not support tools,
so Parley describes the tools to it in words, with the template next to this file.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from parley import (
    Call,
    Finished,
    ModelError,
    ProviderEvent,
    ProviderRequest,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    Usage,
)

_CALL = re.compile(r"call (\S+) (\{.*\})", re.DOTALL)


class Echo:
    """The provider; Parley creates one object of this class."""

    name = "echo"

    def supports_tools(self, model: str) -> bool:
        """Whether the model supports tools; all models except one do."""
        return model != "echo-plain"

    async def stream(self, request: ProviderRequest) -> AsyncIterator[ProviderEvent]:
        """Repeat the last message word by word, or report the result of a tool."""
        last = request.messages[-1]
        text = _text(last)
        if not text:
            raise ModelError("there is nothing to repeat", reason="nothing to repeat")
        if request.thinking.enabled:
            yield ThinkingDelta("They said something. I shall say it, too.")
        match = _CALL.search(text) if request.tools and request.tool_choice == "auto" else None
        if last["role"] == "tool":
            yield TextDelta(f"It returned: {text}")
        elif match:
            yield Call(ToolCall("call_1", match[1], match[2]))
        else:
            for word in re.findall(r"\s*\S+", text):
                yield TextDelta(word)
                await asyncio.sleep(0)  # a real provider would wait for its model here
        size = sum(len(_text(message)) for message in request.messages)
        yield Usage(input=size // 4, output=len(text) // 4)
        yield Finished("complete")


def _text(message: Mapping[str, Any]) -> str:
    """The text of a message, whose content may consist of parts."""
    content = message["content"] or ""
    return (
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    )
