"""The pictures of a request: they are read when it is made, never before."""

from __future__ import annotations

from dataclasses import replace

from parley.engine.ports import Ports
from parley.models.request import Request


async def with_pictures(ports: Ports, request: Request) -> Request:
    """The request with the contents of the attachments that its model can see."""
    attachments = request.attachments()
    return (
        replace(request, pictures=await ports.attachments.read(attachments))
        if attachments
        else request
    )
