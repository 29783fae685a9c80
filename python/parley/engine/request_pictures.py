"""Reads a request's pictures, but only when the request is made."""

from __future__ import annotations

from dataclasses import replace

from parley.engine.ports import Ports
from parley.models.request import Request


async def with_pictures(ports: Ports, request: Request) -> Request:
    """The request with the contents of the attachments that the model can see."""
    attachments = request.attachments()
    return (
        replace(request, pictures=await ports.attachments.read(attachments))
        if attachments
        else request
    )
