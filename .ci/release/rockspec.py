"""The rockspec, for LuaRocks and the plugin managers that use it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from release.contents import Rock

_ROCKSPEC = """\
rockspec_format = "3.0"
package = "{name}"
version = "{version}-1"
source = {{
{source}}}
description = {{
  summary = {summary},
{homepage}  license = {licence},
  labels = {{ {labels} }},
}}
dependencies = {{ "lua >= 5.1" }}
build = {{
  type = "builtin",
  -- Parley's `lua/parley/place.lua` finds the other folders, and the files of `conf`.
  modules = {{
{modules}  }},
  install = {{ conf = {{ {files} }} }},
  copy_directories = {{ {folders} }},
}}
"""


def rockspec(
    project: Mapping[str, object], version: str, archive: str, address: str | None, rock: Rock
) -> str:
    """The text for a version, from pyproject.toml's table `project`.

    With the repository's address, LuaRocks clones the version's tag; without an address, it unpacks
    the plugin's archive, which must be next to the rockspec.
    """
    if address:
        source = {
            "url": f"git+{address.rstrip('/').removesuffix('.git')}.git",
            "tag": f"v{version}",
        }
    else:
        source = {"url": archive}
    keywords = project.get("keywords")
    return _ROCKSPEC.format(
        name=project["name"],
        version=version,
        source="".join(f"  {name} = {_quoted(value)},\n" for name, value in source.items()),
        summary=_quoted(project["description"]),
        homepage=f"  homepage = {_quoted(address)},\n" if address else "",
        licence=_quoted(project["license"]),
        labels=_list(keywords if isinstance(keywords, list) else ()),
        modules="".join(
            f"    [{_quoted(name)}] = {_quoted(path)},\n" for name, path in rock.modules.items()
        ),
        files=_list(rock.files),
        folders=_list(rock.folders),
    )


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(_quoted, values))


def _quoted(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
