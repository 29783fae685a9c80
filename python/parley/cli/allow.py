"""`parley allow`: list the user's permissions, or remove some of them."""

from __future__ import annotations

import argparse
import os

from parley.cli.exits import COMPLETE
from parley.cli.terminal import emit, plain, say_line
from parley.errors import ParleyError
from parley.policy.permissions import listing


def allow(arguments: argparse.Namespace) -> int:
    """List the permissions that you gave in Neovim, or remove some of them."""
    from parley.storage.ledger import shell_ledger

    with shell_ledger(os.environ) as ledger:
        permissions = ledger.permissions() if ledger else []
        known = {permission.number for permission, _ in permissions}
        for number in arguments.remove:
            if number not in known:
                raise ParleyError(f"there is no permission {number}. `parley allow` lists them")
        if ledger and arguments.remove:
            for number in arguments.remove:
                ledger.disallow(number)
            permissions = ledger.permissions()
    for permission, given in permissions:
        if arguments.json:
            emit("permission", number=permission.number, **plain(permission), given=given)
        else:
            say_line(listing(permission))
    if not permissions and not arguments.json:
        say_line("No permissions.")
    return COMPLETE
