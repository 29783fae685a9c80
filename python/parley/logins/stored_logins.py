"""Logins at MCP servers and providers: each URL has a file with its tokens or key, which only the
user can read.

Knows the files and their content as plain JSON, but not how a login is made or used.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from parley.bounded_files import whole
from parley.errors import ServerError
from parley.frozen import frozen
from parley.late_patterns import late_pattern
from parley.paths import private_file, private_folder
from parley.secrets import HANDED_OUT

_MOST_BYTES = 1_000_000
_EARLY_S = 30.0
"""A token that expires within this time is renewed before it is used."""
_LOOK_AGAIN_S = 0.05
_SCOPE = late_pattern(r"[!#-\[\]-~]{1,200}")
_MOST_SCOPES = 50
_SECRETS = ("access_token", "refresh_token", "client_secret")


@frozen
class Login:
    """The grants for an exact URL: the received `tokens`, and the `client` to which they belong.

    `places` are the addresses of the server that granted them, for renewals; `expires_at` is in
    seconds since 1970.
    """

    url: str
    tokens: Mapping[str, Any] = field(repr=False)
    client: Mapping[str, Any] = field(repr=False)
    places: Mapping[str, Any]
    expires_at: float | None = None
    lacking_scope: str = ""
    """The further scope that the server required for a request."""

    @property
    def token(self) -> str:
        """The token that requests carry."""
        return str(self.tokens["access_token"])

    @property
    def scope(self) -> str:
        """The granted scope, as the server reports it, together with the scope that is still
        missing.
        """
        granted = self.tokens.get("scope")
        return union_of(granted if isinstance(granted, str) else "", self.lacking_scope)

    def is_to_renew(self, refused: str) -> bool:
        """Whether the login can and must be renewed: it has expired, or `refused` is its token."""
        has_expired = self.expires_at is not None and self.expires_at - _EARLY_S <= time.time()
        return bool(self.tokens.get("refresh_token")) and (has_expired or self.token == refused)


def union_of(*scopes: str) -> str:
    """The scopes in all these texts, in order, without duplicates and invalid words.

    "scope-token = 1*( %x21 / %x23-5B / %x5D-7E )"
    (datatracker.ietf.org/doc/html/rfc6749#section-3.3, 2026-11-23).
    """
    words = (word for scope in scopes for word in scope.split(" ") if _SCOPE.fullmatch(word))
    return " ".join(islice(dict.fromkeys(words), _MOST_SCOPES))


class Logins:
    """All logins of a kind, in a folder that processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, url: str) -> Login | None:
        """The current login for this exact URL."""
        try:
            table = json.loads(whole(self._path(url), _MOST_BYTES))
            lacking = table.get("lacking_scope", "")
            login = Login(
                url, table["tokens"], table["client"], table["places"], table["expires_at"], lacking
            )
            is_sound = table["url"] == url and isinstance(login.tokens["access_token"], str)
            is_sound = is_sound and isinstance(lacking, str)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        _hand_out(login)
        return login if is_sound else None

    def put(self, login: Login) -> None:
        """Keep a login, replacing the previous one. Raises ServerError."""
        _hand_out(login)
        path = self._path(login.url)
        new = path.with_suffix(f".{os.getpid()}.new")
        table = {
            "url": login.url,
            "tokens": dict(login.tokens),
            "client": dict(login.client),
            "places": dict(login.places),
            "expires_at": login.expires_at,
            "lacking_scope": login.lacking_scope,
        }
        try:
            private_folder(private_folder(path.parent.parent) and path.parent)
            with suppress(FileNotFoundError):
                new.unlink()
            with private_file(new).open("w", encoding="utf-8") as file:
                json.dump(table, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as error:
            raise ServerError(f"cannot write {path}: {error.strerror}") from error

    async def lack(self, url: str, scope: str) -> None:
        """Note the further scope that a URL's server requires. Raises ServerError."""
        async with self.alone(url):
            login = self.get(url)
            if (
                login is not None
                and (lacking := union_of(login.lacking_scope, scope)) != login.lacking_scope
            ):
                self.put(replace(login, lacking_scope=lacking))

    def forget(self, url: str) -> bool:
        """Forget a URL's login; return whether there was one. Raises ServerError."""
        path = self._path(url)
        try:
            for unfinished in path.parent.glob(
                f"{path.stem}.*.new"
            ):  # of a process that was killed
                unfinished.unlink(missing_ok=True)
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ServerError(f"cannot delete {path}: {error.strerror}") from error
        return True

    @asynccontextmanager
    async def alone(self, url: str) -> AsyncIterator[None]:
        """Lock the renewal of this URL's login: each refresh token works only once."""
        try:
            lock = os.open(private_file(self._path(url).with_suffix(".lock")), os.O_RDONLY)
        except OSError:
            yield
            return
        try:
            while not _is_locked(lock):  # noqa: ASYNC110 - other processes cannot set an event
                await asyncio.sleep(_LOOK_AGAIN_S)
            yield
        finally:
            os.close(lock)

    def _path(self, url: str) -> Path:
        name = hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._folder / f"{name}.json"


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # the file system has no locks: continue without one
    return True


def _hand_out(login: Login) -> None:
    for table in (login.tokens, login.client):
        for name in _SECRETS:
            if isinstance(secret := table.get(name), str):
                HANDED_OUT[secret] = f"{name} of a login"
