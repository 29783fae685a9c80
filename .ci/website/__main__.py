"""The command: writes the site into a folder that has its pictures; with `--scenes`, lists these."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

from parley.conversion.exports.markdown_html import CODE_COLOURS
from release.address import address
from release.checkout import Checkout
from website.bodies import PICTURES, SIGNS, THEMES, sign_style
from website.builder import SOURCES, built, scenes
from website.contents import GROUPS
from website.frame import Frame
from website.places import FILES

ROOT = Path(__file__).resolve().parents[2]
_OWN = Path(__file__).parent


def picture_names() -> list[str]:
    """The names of the pictures, without `.svg`, which are also the names of scenes."""
    return [*SIGNS, *(f"{start}{scene}" for scene in scenes() for start in THEMES.values())]


def pages() -> dict[str, str]:
    """The site's pages by file."""
    texts = {source: (ROOT / source).read_text(encoding="utf-8") for source in SOURCES}
    repository = address((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    style = (_OWN / "style.css").read_text(encoding="utf-8") + CODE_COLOURS + sign_style()
    frame = Frame(GROUPS, style, (_OWN / "script.js").read_text(encoding="utf-8"))
    return built(texts, Checkout(ROOT).tracked(), repository, frame)


def write(folder: Path) -> list[str]:
    """Write the site; returns the problems."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, html in pages().items():
        (folder / name).write_text(html, encoding="utf-8")
        for path in re.findall(rf'href="{FILES}/([^"#]+)', html):
            (folder / FILES / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, folder / FILES / path)
    shutil.copyfile(_OWN / "icon.svg", folder / "icon.svg")
    (folder / ".nojekyll").touch()  # GitHub Pages then leaves the files as they are
    pictures = (folder / PICTURES / f"{name}.svg" for name in picture_names())
    return [
        f"{path}: this picture is missing. Run `make site`"
        for path in pictures
        if not path.exists()
    ]


def main(arguments: list[str]) -> int:
    """Run the command; returns 1 if a picture is missing."""
    parser = argparse.ArgumentParser(prog="make site", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "site")
    parser.add_argument("--scenes", action="store_true", help="list the pictures, one a line")
    options = parser.parse_args(arguments)
    if options.scenes:
        sys.stdout.write("".join(f"{name}\n" for name in picture_names()))
        return 0
    problems = write(options.folder)
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    if not problems:
        sys.stdout.write(f"Open {options.folder / 'index.html'}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
