"""Parley: a Markdown file is the conversation with a language model, tool calls included.

As a library: a `Session` is a conversation in memory. `doc/library.md` has examples.

    from parley import Session

    with Session(agent="Claude") as session:
        print(session.ask("What is a monad?"))

The names in `__all__`, with their parameters, fields and values, follow semantic versioning;
everything else in the package may change at any time.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from parley.chat.options import CallLimits, ThinkingSettings
    from parley.chat.transcript import (
        Attachment,
        Choice,
        Proposal,
        Result,
        ServerTask,
        Span,
        ToolCall,
    )
    from parley.chunks import (
        CallChunk,
        Chunk,
        ChunkType,
        DoneChunk,
        ErrorChunk,
        ResultChunk,
        TextChunk,
        TokenCounts,
        UsageChunk,
        WithdrawnChunk,
    )
    from parley.errors import (
        BusyError,
        GoneError,
        ModelError,
        ParleyError,
        ServerError,
        SettingsError,
        UserCancelled,
    )
    from parley.models.events import Call, Finished, Price, TextDelta, ThinkingDelta, Usage
    from parley.models.package import Provider, ProviderEvent, ProviderRequest
    from parley.policy.rules import Pattern
    from parley.session import Approve, Decision, MayRead, Session
    from parley.settings.values import (
        Agent,
        AgentLimits,
        AgentLoop,
        Approval,
        ChoiceKeys,
        Highlight,
        Keys,
        LogSettings,
        Loop,
        Mcp,
        PromptTools,
        ProviderSettings,
        Retry,
        Safety,
        Settings,
        SkillSettings,
        Status,
        Tools,
        WorkspaceSettings,
        Xml,
    )
    from parley.tools.catalogue import Tool
    from parley.tools.server_settings import ServerSettings

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "AgentLimits",
    "AgentLoop",
    "Approval",
    "Approve",
    "Attachment",
    "BusyError",
    "Call",
    "CallChunk",
    "CallLimits",
    "Choice",
    "ChoiceKeys",
    "Chunk",
    "ChunkType",
    "Decision",
    "DoneChunk",
    "ErrorChunk",
    "Finished",
    "GoneError",
    "Highlight",
    "Keys",
    "LogSettings",
    "Loop",
    "MayRead",
    "Mcp",
    "ModelError",
    "ParleyError",
    "Pattern",
    "Price",
    "PromptTools",
    "Proposal",
    "Provider",
    "ProviderEvent",
    "ProviderRequest",
    "ProviderSettings",
    "Result",
    "ResultChunk",
    "Retry",
    "Safety",
    "ServerError",
    "ServerSettings",
    "ServerTask",
    "Session",
    "Settings",
    "SettingsError",
    "SkillSettings",
    "Span",
    "Status",
    "TextChunk",
    "TextDelta",
    "ThinkingDelta",
    "ThinkingSettings",
    "TokenCounts",
    "Tool",
    "ToolCall",
    "Tools",
    "Usage",
    "UsageChunk",
    "UserCancelled",
    "WithdrawnChunk",
    "WorkspaceSettings",
    "Xml",
    "__version__",
]

_HOMES = {
    "chat.options": ("CallLimits", "ThinkingSettings"),
    "chat.transcript": (
        "Attachment",
        "Choice",
        "Proposal",
        "Result",
        "ServerTask",
        "Span",
        "ToolCall",
    ),
    "chunks": ("TokenCounts", *(name for name in __all__ if "Chunk" in name)),
    "errors": (*(name for name in __all__ if name.endswith("Error")), "UserCancelled"),
    "models.events": ("Call", "Finished", "Price", "TextDelta", "ThinkingDelta", "Usage"),
    "models.package": ("Provider", "ProviderEvent", "ProviderRequest"),
    "policy.rules": ("Pattern",),
    "session": ("Approve", "Decision", "MayRead", "Session"),
    "settings.values": (
        *(
            "Agent",
            "AgentLimits",
            "AgentLoop",
            "Approval",
            "ChoiceKeys",
            "Highlight",
            "Keys",
            "LogSettings",
            "Loop",
            "Mcp",
            "PromptTools",
        ),
        *(
            "ProviderSettings",
            "Retry",
            "Safety",
            "Settings",
            "SkillSettings",
            "Status",
            "Tools",
            "WorkspaceSettings",
        ),
        "Xml",
    ),
    "tools.catalogue": ("Tool",),
    "tools.server_settings": ("ServerSettings",),
}
"""The library's names by module; they are imported when used, because the editor's host must start
quickly.
"""

if not TYPE_CHECKING:

    def __getattr__(name):
        from parley.late_names import late_names  # the package itself imports none of its modules

        return late_names(__name__, _HOMES)(name)


def __dir__() -> list[str]:
    return __all__
