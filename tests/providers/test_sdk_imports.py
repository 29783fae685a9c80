"""An SDK without what a request does not need: names are imported late, and are the same ones."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from parley.models.formats import sdk
from parley.providers.sdk_imports import collected, imported, lean

SDKS = {"openai": 120, "anthropic": 1_200}
"""The maximum number of modules of each SDK that one request needs. Both have many more: 519 and
3,151."""
IMPORT = """
import json, sys
from parley.models.formats import sdk
from parley.providers.sdk_imports import imported
library = imported(sdk(sys.argv[1]), is_lean=True)
import httpx2
httpx2.AsyncHTTPTransport()
before = list(sys.modules)
few = sum(name.startswith(sys.argv[1]) for name in sys.modules)
client = getattr(library, sdk(sys.argv[1]).client)
raised = library.NotFoundError, library.APIError
star = {}
exec(f"from {sys.argv[1]} import *", star)
print(json.dumps({
    "few": few,
    "all": all(name in star for name in library.__all__),
    "same": star[client.__name__] is client and (library.NotFoundError, library.APIError) == raised,
    "types": sys.modules[f"{sys.argv[1]}.types"].__name__ and len(dir(library.types)) > 100,
    "asynchronous": "httpcore2._sync" not in before and httpx2.HTTPTransport() is not None,
    "later": not any(hasattr(finder, "_prefix") for finder in sys.meta_path),
}))
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for packages, none of which is imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def package(folder: Path, name: str, files: dict[str, str]) -> str:
    """Write a package; returns its name."""
    for file, text in files.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return name


def loaded(name: str) -> set[str]:
    return {module for module in sys.modules if module.startswith(f"{name}.")}


@pytest.mark.parametrize("kind", SDKS)
def test_an_sdk_has_all_its_names_but_not_all_its_modules(kind: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT, kind], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found.pop("few") <= SDKS[kind]
    assert found == dict.fromkeys(("all", "same", "types", "asynchronous", "later"), True)


def test_a_name_imports_only_its_module(packages: Path) -> None:
    name = package(
        packages,
        "late_names",
        {
            "__init__.py": "from .one import A as A\nfrom .two import (\n    B as C,  # a comment\n)\n",
            "one.py": "A = 1\n",
            "two.py": "B = 2\n",
        },
    )
    library = lean(name, ("A",))
    assert (library.A, loaded(name)) == (1, {"late_names.one"})
    assert (library.C, loaded(name)) == (2, {"late_names.one", "late_names.two"})
    with pytest.raises(AttributeError, match="late_names"):
        library.D  # noqa: B018 - the access raises


def test_any_other_name_runs_the_package(packages: Path) -> None:
    init = "from .one import A\nB = A + 1\ndef __getattr__(name):\n    return name\n"
    name = package(packages, "late_values", {"__init__.py": init, "one.py": "A = 1\n"})
    library = lean(name, ("A",))
    assert "B" not in library.__dict__
    assert (library.B, library.anything) == (2, "anything")


def test_a_module_of_the_package_is_a_name_of_it(packages: Path) -> None:
    init = "from . import one\nfrom .two import *\nTWO = 2\n"
    files = {"__init__.py": init, "one.py": "", "two.py": "THREE = 3\n", "three/__init__.py": ""}
    library = lean(package(packages, "late_modules", files), ())
    assert library.one is import_module("late_modules.one")
    assert loaded("late_modules") == {"late_modules.one"}
    assert "THREE" in dir(library)
    assert library.TWO == 2


def test_a_name_that_hides_its_module_is_that_of_the_package(packages: Path) -> None:
    files = {"__init__.py": "from .one import one\n", "one.py": "def one():\n    return 1\n"}
    library = lean(package(packages, "late_hidden", files), ())
    import_module("late_hidden.one")
    assert library.one() == 1


def test_a_package_that_needs_its_order_is_imported_as_usual(packages: Path) -> None:
    files = {
        "__init__.py": "from .one import A\n",
        "one.py": "import sys\nsys.modules['late_order'].ready\nA = 1\n",
    }
    ready = "import sys\nsys.modules[__name__].ready = True\nfrom .one import A\n"
    library = lean(package(packages, "late_order", {**files, "__init__.py": ready}), ("A",))
    assert library.A == 1
    broken = package(packages, "late_broken", {"__init__.py": "import not_installed_anywhere\n"})
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        lean(broken, ("A",))


def test_an_sdk_that_writes_a_log_runs_at_once(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATE_LOGGED_LOG", "debug")
    assert lean(package(packages, "late_logged", {"__init__.py": "A = 1\n"}), ()).__dict__["A"] == 1


def test_a_program_that_uses_parley_has_the_usual_sdk() -> None:
    library = imported(sdk("openai"), is_lean=False)
    assert library is import_module("openai")


def test_only_imports_from_the_package_itself_are_collected() -> None:
    source = "import os\nfrom ..up import X\nfrom .a.b import (X, Y as Z)\nif os:\n    from .c import W\n"
    assert collected(source) == {"X": ("a.b", "X"), "Z": ("a.b", "Y")}
