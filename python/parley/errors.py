"""Parley's errors: one base class, and subclasses with facts; messages include the remedy.

Errors in the user's input are data (`Problem`), not exceptions. An exception means that Parley
cannot continue.
"""

import os


def reason_of(error: Exception) -> str:
    """An error's reason in words: for an OSError, without its number and path."""
    return getattr(error, "strerror", None) or str(error)


def first_reason(error: BaseException) -> str:
    """The operating system's reason for a lost connection, such as "Connection refused"; without
    one, the error's own text.
    """
    reason, cause = str(error), error.__cause__ or error.__context__
    while cause:
        if isinstance(cause, ConnectionError) and cause.errno:
            reason = os.strerror(cause.errno)  # asyncio's own text has the address in it
        elif isinstance(cause, OSError) and cause.strerror:
            reason = cause.strerror
        first = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else None
        cause = first or cause.__cause__ or cause.__context__
    return reason


class ParleyError(Exception):
    """The base class of Parley's own errors; the text may be shown to the user."""


class SettingsError(ParleyError):
    """A setting is invalid; the text contains the setting's path, the expected value and the actual
    value.
    """


class ServerError(ParleyError):
    """An MCP server did not start, or answered incorrectly; only this server ends."""


class PendingError(ParleyError):
    """A call still runs on a server that is unreachable now: collect the result later."""


class ModelError(ParleyError):
    """A provider refused or failed: `ModelError(message, reason=...)`.

    The `message` is for the user; `reason` is one short line for the notice in the file.
    `retryable` is true if a retry may help; `retry_after` is the delay in seconds, or None if the
    provider did not give one. `status` is the HTTP status, or None if the connection failed;
    `words` is the provider's own text about a refusal. `is_broken` is true if the reply did not
    arrive in full, because the connection, the stream or the server failed.
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
        is_broken: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.words = words
        self.is_broken = is_broken


class GoneError(ParleyError):
    """The document or the answer is gone (wiped, undone, deleted); the turn ends silently."""


class UserCancelled(ParleyError):  # noqa: N818 - not an error
    """The user ended the turn."""

    def __init__(self) -> None:
        super().__init__("Streaming cancelled by user")


class BusyError(ParleyError):
    """Another turn is running in the same chat, in this session or in another process."""
