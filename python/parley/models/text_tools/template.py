"""Prompt templates: how tools are described to each model family; users can add templates as data
files.

Knows the format of the files, which `templates/default.toml` explains; knows nothing about
requests. An installed package's templates are files, too: none of its code is imported.
"""

from __future__ import annotations

import tomllib
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from parley.bounded_files import whole
from parley.entry_points import TEMPLATES, EntryPointError, folder
from parley.errors import reason_of
from parley.frozen import frozen
from parley.tables import TableReader, rule

BUILTIN = Path(__file__).parent / "templates"

Style = Literal["schema", "code"]


@frozen
class Template:
    """Prompts for one model family; `json` and `xml` contain `$tools` and `$example`."""

    name: str = "default"
    models: tuple[str, ...] = field(default=(), metadata=rule(noun="a list of patterns"))
    native: bool = True
    style: Style = "schema"
    json: str = ""
    xml: str = ""


Templates = tuple[Template, ...]
"""The user's templates, followed by the built-in templates."""


@cache
def builtin_templates() -> Templates:
    """Parley's own templates; the default template comes last."""
    default = _read(BUILTIN / "default.toml", Template())
    others = (path for path in sorted(BUILTIN.glob("*.toml")) if path.name != "default.toml")
    return (*(_read(path, default) for path in others), default)


PACKAGE_PREFIX = "package:"
"""The prefix of a setting that is the name of a package's entry point instead of a path."""


def load_templates(path: str | None) -> tuple[Templates, tuple[str, ...]]:
    """The templates in a file, or in a folder's `*.toml` files, followed by the built-in templates;
    also all problems.

    `package:NAME` means the folder of the package that offers NAME in the group `parley.templates`.
    """
    builtin = builtin_templates()
    if path is None:
        return builtin, ()
    own, problems = list[Template](), list[str]()
    try:
        files = _files(path)
    except EntryPointError as error:
        return builtin, (f"parley: prompt_tools.templates: {error}",)
    for file in files:
        try:
            own.append(_read(file.expanduser(), builtin[-1]))
        except (OSError, ValueError, RuntimeError) as error:
            problems.append(f"parley: prompt_tools.templates: {file}: {reason_of(error)}")
    return (*own, *builtin), tuple(problems)


def _files(path: str) -> list[Path]:
    """The files that a setting refers to; a wrong path counts as one file, which then cannot be
    read.
    """
    try:
        is_of_package = path.startswith(PACKAGE_PREFIX)
        place = (
            folder(TEMPLATES, path.removeprefix(PACKAGE_PREFIX))
            if is_of_package
            else Path(path).expanduser()
        )
        return sorted(place.glob("*.toml")) if place.is_dir() else [place]
    except (OSError, RuntimeError):  # there is no home directory of that name
        return [Path(path)]


def template_for(model: str, templates: Templates) -> Template:
    """The template whose pattern matches a model's name best: the longest pattern wins."""
    fits = [(_closeness(model.lower(), template), template) for template in templates]
    return max(fits, key=lambda fit: fit[0])[1]


def _closeness(model: str, template: Template) -> int:
    return max((len(p) for p in template.models if fnmatchcase(model, p.lower())), default=0)


def _read(path: Path, default: Template) -> Template:
    table = tomllib.loads(whole(path).decode())
    reader = TableReader("templates have no such field")
    values = reader.values(Template, table)
    if reader.flaws:
        raise ValueError("; ".join(map(str, reader.flaws)))
    prompts = {key: values[key].strip() for key in ("json", "xml") if key in values}
    return replace(default, **{"name": path.stem, "models": ()} | values | prompts)
