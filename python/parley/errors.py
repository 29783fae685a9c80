"""The errors Parley raises: one base, leaves that carry the facts, messages that say what to do.

What people type wrong is data (`Problem`), not an exception; an exception means: cannot go on from here.
"""


class ParleyError(Exception):
    """Base of all of Parley's own errors; its text is fit to show to the user."""


class SettingsError(ParleyError):
    """A setting is wrong; the text names its path, what was wanted and what was found."""


class ServerError(ParleyError):
    """An MCP server could not be started or answered wrongly; never ends more than that server."""


class PendingError(ParleyError):
    """A call goes on at its server, which cannot be reached now: its result is to be collected later."""


class ModelError(ParleyError):
    """A provider refused or failed: `ModelError(message, reason=...)`.

    The `message` is for the user; `reason` is one short line for the notice in the file. `retryable` says
    whether asking again may help, and `retry_after` in how many seconds, None if the provider named no time.
    `status` is the HTTP status, None for a connection failure; `words` are the provider's own words for a
    refusal.
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
    """The document or the running answer was taken away (wiped, undone, deleted): the turn just ends."""


class UserCancelled(ParleyError):  # noqa: N818 - its name is what it says: this is no failure
    """The user ended the turn."""

    def __init__(self) -> None:
        super().__init__("Streaming cancelled by user")


class BusyError(ParleyError):
    """Another turn runs in the same chat: of this session, or of another process."""
