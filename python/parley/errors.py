"""Parley's errors: one base, leaves with the facts, messages that tell the user what to do.

Errors in the user's input are data (`Problem`), not exceptions. An exception means that Parley
cannot continue.
"""


class ParleyError(Exception):
    """The base of all of Parley's own errors; its text may be shown to the user."""


class SettingsError(ParleyError):
    """A setting is wrong; the text names its path, the expected and the actual value."""


class ServerError(ParleyError):
    """An MCP server could not be started or answered incorrectly; ends nothing but that server."""


class PendingError(ParleyError):
    """A call still runs at its server, which is unreachable now: collect its result later."""


class ModelError(ParleyError):
    """A provider refused or failed: `ModelError(message, reason=...)`.

    The `message` is for the user; `reason` is one short line for the notice in the file.
    `retryable` says whether a retry may help; `retry_after` is the delay in seconds, or None if the
    provider named no time. `status` is the HTTP status, None for a connection failure; `words` are
    the provider's own words for a refusal.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        words: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.words = words


class GoneError(ParleyError):
    """The document or the current answer is gone (wiped, undone, deleted): the turn just ends."""


class UserCancelled(ParleyError):  # noqa: N818 - its name is what it says: this is no failure
    """The user ended the turn."""

    def __init__(self) -> None:
        super().__init__("Streaming cancelled by user")


class BusyError(ParleyError):
    """Another turn is running in the same chat: in this session, or in another process."""
