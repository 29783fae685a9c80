"""Answers servers' requests for a form, a page, the working directory or a model's reply.

Parley declares only the capabilities that it can serve, and refuses other requests. A server may
use the model only if its settings allow sampling. The same callbacks answer the requests of older
servers and supply the inputs that a server of revision 2026-07-28 requires before it continues.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from parley.clock import PausableClock
from parley.errors import ParleyError
from parley.frozen import frozen
from parley.mcp.plain import plain
from parley.policy.rate import RateWindow
from parley.programs import start_folder
from parley.text import visible
from parley.tools.results import result_text
from parley.tools.sampling import SamplingReply, SamplingRequest
from parley.tools.schema import check_arguments
from parley.tools.server_settings import ServerSettings
from parley.tools.visits import Visit, visit

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
    )


Left: TypeAlias = Literal["decline", "cancel"]
"""How the user left a form or an unopened page: by declining it, or by just leaving."""


Sample: TypeAlias = Callable[[SamplingRequest], Awaitable[SamplingReply]]
"""Obtains the model's reply to a request. Raises ParleyError."""


class Elicitor(Protocol):
    """Asks the user to fill in forms and open pages."""

    def ask(
        self, server: str, message: str, schema: Mapping[str, Any]
    ) -> Coroutine[Any, Any, dict[str, Any] | Left]:
        """The answers to a server's form, by the names in its schema, or how the user left it.

        Cancelled when the server is gone or the call that needed the form has ended. The texts in
        the JSON schema come from the server: escape them with `text.visible`.
        """
        ...

    def visit(self, server: str, page: Visit) -> Coroutine[Any, Any, Literal["accept"] | Left]:
        """Whether the user opened a server's page; Parley never opens pages in any other way."""
        ...

    def finish(self, server: str, page: Visit) -> Coroutine[Any, Any, bool]:
        """Whether the user has finished with a page; cancelled if the server reports this first."""
        ...


@frozen
class ServerRequests:
    """Answers servers' requests; only an `elicitor` can ask the user.

    `folder` returns the user's working directory. `max_bytes` limits each message that a server
    sends to the model.
    """

    elicitor: Elicitor | None
    folder: Callable[[], Path]
    sample: Sample | None
    max_bytes: int

    def callbacks(self, settings: ServerSettings, clock: PausableClock) -> dict[str, Any]:
        """The callbacks for the SDK's client, which declares no capability without a callback.

        To add a capability, add an entry named after the parameter of `mcp.Client`.
        """
        callbacks: dict[str, Any] = {}
        if self.elicitor is not None:
            callbacks["elicitation_callback"] = _through(
                _Door(5, 20), _elicited(self.elicitor, settings.name, clock)
            )
        if settings.sampling and self.sample is not None:
            callbacks["sampling_callback"] = _through(
                _Door(20, 0), _sampled(self.sample, clock, self.max_bytes)
            )
        if self._may_know_folder(settings):
            callbacks["list_roots_callback"] = self._roots
        return callbacks

    def _may_know_folder(self, settings: ServerSettings) -> bool:
        """Whether to tell the server the folder: as in its settings, or else only if no folder is
        among its arguments.

        A server with a folder among its arguments would replace that folder with our folder.
        Without a `cwd`, relative arguments do not count, because they start at Parley's own folder.
        """
        if settings.roots is not None:
            return settings.roots
        base = None if settings.cwd is None else start_folder(settings.cwd, self.folder())
        named = (Path(argument.rpartition("=")[2]) for argument in settings.args)
        return not any(_is_folder(place, base) for place in named)

    async def _roots(self, _: ClientRequestContext) -> ListRootsResult | ErrorData:
        from mcp_types import ListRootsResult, Root

        folder = self.folder().resolve()
        return ListRootsResult.model_validate({"roots": [Root.model_validate(_root(folder))]})


def _is_folder(named: Path, base: Path | None) -> bool:
    if named.is_absolute():
        return named.is_dir()
    return (
        base is not None
        and (len(named.parts) != 1 or named == Path(".."))
        and (base / named).is_dir()
    )


def _root(folder: Path) -> dict[str, str]:
    return {"uri": folder.as_uri(), "name": folder.name}


class _Door:
    """Limits one server's requests: how many at once, and how many in a minute (0 for no limit)."""

    def __init__(self, at_once: int, a_minute: int) -> None:
        self._free = at_once
        self._rate = RateWindow(a_minute)

    def is_open(self) -> bool:
        """Whether another request may be answered; if so, counts it."""
        now = asyncio.get_running_loop().time()
        if not self._free or self._rate.wait(now) > 0:
            return False
        self._rate.take(now)
        self._free -= 1
        return True

    def leave(self) -> None:
        """Note that a request has been answered."""
        self._free += 1


def _through(door: _Door, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """The callback with limits, because a server may send a thousand requests at once."""

    async def reply(context: ClientRequestContext, params: Any) -> Any:
        if not door.is_open():
            from mcp_types import INTERNAL_ERROR, ErrorData

            return ErrorData(
                code=INTERNAL_ERROR, message="too many requests to the client: not answered"
            )
        try:
            return await answer(context, params)
        finally:
            door.leave()

    return reply


def _sampled(sample: Sample, clock: PausableClock, max_bytes: int) -> Callable[..., Any]:
    async def reply(
        _: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        from mcp_types import INTERNAL_ERROR, CreateMessageResult, ErrorData, TextContent

        try:
            request = SamplingRequest(
                [(message.role, _text(message.content, max_bytes)) for message in params.messages],
                params.system_prompt or "",
                params.max_tokens,
                params.temperature,
            )
            with clock.paused():
                sampled = await sample(request)
        except ParleyError as error:
            return ErrorData(code=INTERNAL_ERROR, message=str(error))
        content = TextContent(type="text", text=sampled.text)
        reason = "maxTokens" if sampled.cut else "endTurn"
        return CreateMessageResult(
            role="assistant", content=content, model=sampled.model, stop_reason=reason
        )

    return reply


def _text(content: Any, max_bytes: int) -> str:
    blocks = content if isinstance(content, list) else [content]
    return result_text([plain(block) for block in blocks], max_bytes=max_bytes)


def _elicited(elicitor: Elicitor, server: str, clock: PausableClock) -> Callable[..., Any]:
    async def elicit(
        _: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        from mcp_types import INVALID_PARAMS, ElicitResult, ErrorData

        if params.mode != "form":
            try:
                page = visit(params.url, params.message, params.elicitation_id or "")
            except ValueError as error:
                return ErrorData(
                    code=INVALID_PARAMS, message=f"this page cannot be opened: {error}"
                )
            with clock.paused():
                action = await clock.while_wanted(elicitor.visit(server, page))
            return ElicitResult(action=action or "cancel")
        schema = params.requested_schema
        with clock.paused():
            content = await clock.while_wanted(
                elicitor.ask(server, visible(params.message), schema)
            )
        if content is None or isinstance(content, str):
            return ElicitResult(action=content or "cancel")
        if check_arguments(json.dumps(content), schema):
            return ElicitResult(action="cancel")  # not an answer to this form
        return ElicitResult(action="accept", content=content)

    return elicit
