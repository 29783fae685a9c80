"""Resources of servers as values."""

from __future__ import annotations

from typing import Any

import pytest

from parley.tools.resources import MOST_OF_A_URI, Resource, resource_from_mcp

WHOLE = {"uri": "a:b", "name": "b", "title": "B\x1b", "description": "one\ntwo", "mimeType": "text/plain"}


@pytest.mark.parametrize(
    ("definition", "resource", "about"),
    [
        (WHOLE, Resource("a:b", "B\\x1b", "one two", "text/plain"), "B\\x1b (text/plain): one two"),
        ({"uriTemplate": "a:{b}", "name": "b"}, Resource("a:{b}", "b"), "b"),
        ({"uri": "a:b", "name": 5, "description": []}, Resource("a:b"), ""),
        ({"uri": "a:b", "name": "x" * 999}, Resource("a:b", "x" * 199 + "…"), "x" * 199 + "…"),
    ],
)
def test_a_definition_is_a_value_of_single_lines(
    definition: dict[str, Any], resource: Resource, about: str
) -> None:
    assert resource_from_mcp(definition) == resource
    assert resource.about == about


@pytest.mark.parametrize("uri", [None, 5, "", "a:" + "b" * MOST_OF_A_URI])
def test_what_has_no_uri_that_can_be_used_is_no_resource(uri: object) -> None:
    with pytest.raises(ValueError, match="needs a URI"):
        resource_from_mcp({"uri": uri, "name": "b"})
