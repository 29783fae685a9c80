"""Imports an SDK without the modules that only its other users need: most of them are types.

An SDK's packages import all their modules, but one request needs a tenth of them. Here, a package
whose `__init__.py` only collects names gets a `__getattr__` (PEP 562): a name is imported when
something uses it, and `__init__.py` runs as soon as a name is not simply one of another module. So
every name of the SDK still exists and is the same object, and the client is the SDK's own. If the
SDK cannot be imported in this way, it is imported as usual.

Only for Parley's own processes: a program that uses Parley as a library may use the SDK, too.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

from parley.http.certificates import read_ahead
from parley.late_patterns import late_pattern
from parley.models.formats import ACP, PACKAGE, SDK, sdk

_NAMES = "APIError", "AsyncStream", "DefaultAsyncHttpxClient", "Omit"
"""The names that `client` uses, except for the SDK's client."""
_CONNECTION_NAMES = "AsyncConnectionPool", "Request", "URL", "default_ssl_context"
"""The names that `httpx2` uses for an asynchronous request without a proxy."""
_IMPORT = late_pattern(r"^from \.([\w.]+) import (?:\(([^)]*)\)|([^\n(]*))", re.MULTILINE)
_COMMENT = late_pattern(r"#[^\n]*")
_ONE_AT_A_TIME = threading.Lock()


def warm(kind: str, *, builtin: bool, has_tls: bool) -> None:
    """Import everything that a request to this kind of provider needs; runs in a thread of Parley's
    own process. With `has_tls`, another thread reads the certificates during the imports.
    """
    if kind == ACP:  # such an agent needs neither an SDK nor servers
        import_module("acp.connection")
        return
    if kind != PACKAGE:
        lean("httpcore2", _CONNECTION_NAMES)
        if has_tls:
            threading.Thread(None, read_ahead, "certificates", daemon=True).start()
        imported(sdk(kind), is_lean=True)
    if builtin:
        import_module("parley.demo.server")


def warm_tools(*, has_servers: bool) -> None:
    """Import what calls need; runs in a thread. Without other `has_servers` than Parley's own, the
    SDK for servers is imported with the first call, because it takes a third of the host's memory.
    """
    for name in ("jsonschema", *(("mcp",) if has_servers else ())):
        import_module(name)


def imported(library: SDK, *, is_lean: bool) -> ModuleType:
    """An SDK; if `is_lean`, without what a request does not need. Raises ImportError."""
    if is_lean:
        lean("httpcore2", _CONNECTION_NAMES)
        return lean(library.package, (library.client, *_NAMES))
    return import_module(library.package)


def lean(package: str, names: Sequence[str]) -> ModuleType:
    """Import a package and these names, without what they do not need. Raises ImportError.

    If an SDK is told to write a log, it is imported as usual, because its `__init__.py` prepares
    the log.
    """
    with _ONE_AT_A_TIME:
        if package in sys.modules or f"{package.upper()}_LOG" in os.environ:
            return import_module(package)
        try:
            with _collecting_late(package):
                library = import_module(package)
                for name in names:
                    getattr(library, name)
                return library
        except Exception:  # noqa: BLE001 - the usual import succeeds, or reports its own error
            for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
                del sys.modules[name]
            return import_module(package)


@contextmanager
def _collecting_late(package: str) -> Iterator[None]:
    finder = _PackageFinder(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _PackageFinder(MetaPathFinder):
    """Finds the packages within a package, and lets a `_LateLoader` load them."""

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(self._prefix):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if (
            spec
            and spec.submodule_search_locations
            and isinstance(loader := spec.loader, SourceFileLoader)
        ):
            spec.loader = _LateLoader(loader)
        return spec


class _LateLoader(Loader):
    """Loads a package, but runs its `__init__.py` only when one of its names requires that."""

    def __init__(self, usual: SourceFileLoader) -> None:
        self._usual = usual

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._usual
        if module.__spec__:
            module.__spec__.loader = self._usual
        found = collected(self._usual.get_source(module.__name__) or "")
        if any(name == home.partition(".")[0] for name, (home, _) in found.items()):
            self._usual.exec_module(module)  # a name that hides a module depends on the order
            return
        late = _LateNames(module, self._usual, found)
        module.__dict__.update(__getattr__=late.find, __dir__=late.names)


class _LateNames:
    """The names of a package whose `__init__.py` has not run."""

    def __init__(
        self, module: ModuleType, usual: SourceFileLoader, homes: dict[str, tuple[str, str]]
    ) -> None:
        self._module = module
        self._usual = usual
        self._homes = homes
        self._running = set[int]()
        """The threads that run `__init__.py` now. If there are two, the second run changes
        nothing."""

    def find(self, name: str) -> object:
        """The value of a name that the package does not have yet. Raises AttributeError."""
        package = self._module.__name__
        if name in self._homes:
            home, there = self._homes[name]
            value = getattr(import_module(f"{package}.{home}"), there)
            setattr(self._module, name, value)
            return value
        if name.isidentifier() and not name.startswith("__"):
            with suppress(ModuleNotFoundError):
                return import_module(f"{package}.{name}")
        if threading.get_ident() in self._running or _is_of_imports(name):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        self._run()
        return getattr(self._module, name)

    def names(self) -> list[str]:
        """All names, as `dir` lists them."""
        self._run()
        return sorted(self._module.__dict__)

    def _run(self) -> None:
        self._running.add(threading.get_ident())
        try:
            self._usual.exec_module(self._module)
        finally:
            self._running.discard(threading.get_ident())
        for name, own in (("__getattr__", self.find), ("__dir__", self.names)):
            if self._module.__dict__.get(name) == own:
                delattr(self._module, name)


def _is_of_imports(name: str) -> bool:
    """Whether the import system asks for this name, which a module need not have."""
    return name.startswith("__") and name not in ("__all__", "__version__")


def collected(source: str) -> dict[str, tuple[str, str]]:
    """The names that an `__init__.py` imports from the package's own modules, each with the module
    and its name there.
    """
    found = dict[str, tuple[str, str]]()
    for home, many, few in _IMPORT.findall(source):
        for piece in _COMMENT.sub("", many or few).split(","):
            match piece.split():
                case [name]:
                    found[name] = home, name
                case [there, "as", name]:
                    found[name] = home, there
                case _:
                    pass
    found.pop("*", None)
    return found
