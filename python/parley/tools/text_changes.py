"""What a tool's edit does to the text of one file: for Parley's own tools and those of other servers.

Another server's edit is shown as this server applies it, as far as its rule is known; otherwise there
is a doubt. Knows neither paths nor the shapes of arguments.
"""

from __future__ import annotations

from typing import Protocol

from parley.frozen import frozen
from parley.text import counted
from parley.tools.first_matches import with_first_matches
from parley.tools.patch_text import Hunk, patched
from parley.tools.text_edits import EditError, Replacement, apply, rewritten

_NO_FILE = "the file does not exist. Check the path, or create the file first"


class TextChange(Protocol):
    """A change of one file's text; a text is None if the file does not exist."""

    def applied(self, text: str | None) -> str | None:
        """The text after the change. Raises EditError."""

    def doubt(self, text: str | None) -> str:
        """Why the server may write another text, as a clause; "" if there is no reason."""


@frozen
class OwnReplacements:
    """Parley's `edit_file`."""

    replacements: tuple[Replacement, ...]

    def applied(self, text: str | None) -> str:
        if text is not None:
            return apply(text, self.replacements)
        if len(self.replacements) != 1 or self.replacements[0].old:
            raise EditError(_NO_FILE)
        return apply("", self.replacements)

    def doubt(self, text: str | None) -> str:
        return ""


@frozen
class OwnText:
    """Parley's `write_file`."""

    content: str

    def applied(self, text: str | None) -> str:
        return rewritten(text or "", self.content)

    def doubt(self, text: str | None) -> str:
        return ""


@frozen
class ExactReplacements:
    """Another server's replacements of text that must match exactly, and once if it is not for all."""

    replacements: tuple[Replacement, ...]

    def applied(self, text: str | None) -> str:
        return self._result(text)[0]

    def doubt(self, text: str | None) -> str:
        if self._result(text)[1]:
            return ""
        return (
            "the file does not have the old text exactly, so the server may refuse this edit or "
            "change another place"
        )

    def _result(self, text: str | None) -> tuple[str, bool]:
        """The text, and whether all replacements matched exactly."""
        if text is None:
            if len(self.replacements) != 1 or self.replacements[0].old:
                raise EditError(_NO_FILE)
            return self.replacements[0].new, True
        is_exact = True
        for each in self.replacements:
            count = text.count(each.old) if each.old else 0
            if count == 1 or (count and each.all):
                text = text.replace(each.old, each.new)
            else:
                text, is_exact = apply(text, [each]), False
        return text, is_exact


@frozen
class FirstMatches:
    """Replacements by the reference file server."""

    replacements: tuple[Replacement, ...]

    def applied(self, text: str | None) -> str:
        return self._result(text)[0]

    def doubt(self, text: str | None) -> str:
        return self._result(text)[1]

    def _result(self, text: str | None) -> tuple[str, str]:
        if text is None:
            raise EditError(_NO_FILE)
        return with_first_matches(text, self.replacements)


@frozen
class WholeText:
    """Another server's new text of a file. `is_new`: the server may refuse to replace a file."""

    content: str
    is_new: bool = False

    def applied(self, text: str | None) -> str:
        return self.content

    def doubt(self, text: str | None) -> str:
        if self.is_new and text is not None:
            return "the file already exists, so the server may refuse to create it"
        return ""


@frozen
class InsertedLines:
    """New lines below the line with the number `line`, counted from 1; 0 is the top of the file."""

    line: int
    content: str

    def applied(self, text: str | None) -> str:
        if text is None:
            raise EditError(_NO_FILE)
        lines = _with_endings(text)
        if self.line > len(lines):
            raise EditError(
                f"the file has {counted(len(lines), 'line')}. Choose a line in the file, or 0"
            )
        ending = "\r\n" if "\r\n" in text else "\n"
        above, below = "".join(lines[: self.line]), "".join(lines[self.line :])
        if above and not above.endswith("\n"):
            above += ending
        content = self.content.replace("\r\n", "\n").removesuffix("\n").replace("\n", ending)
        return (
            above + content + (ending if below or text.endswith("\n") or not text else "") + below
        )

    def doubt(self, text: str | None) -> str:
        if self.content.endswith("\n"):
            return "the server may add a blank line, because the new text ends with a line break"
        return ""


@frozen
class PatchHunks:
    """Hunks of a patch in Codex's format."""

    hunks: tuple[Hunk, ...]

    def applied(self, text: str | None) -> str:
        return self._result(text)[0]

    def doubt(self, text: str | None) -> str:
        if self._result(text)[1]:
            return ""
        return "the patch fits several places or none exactly, so the server may change a different place"

    def _result(self, text: str | None) -> tuple[str, bool]:
        if text is None:
            raise EditError(_NO_FILE)
        return patched(text, self.hunks)


@frozen
class SameText:
    """The text of a file that only gets another path."""

    def applied(self, text: str | None) -> str:
        if text is None:
            raise EditError(_NO_FILE)
        return text

    def doubt(self, text: str | None) -> str:
        return ""


@frozen
class NoText:
    """The file is deleted."""

    def applied(self, text: str | None) -> None:
        if text is None:
            raise EditError(_NO_FILE)

    def doubt(self, text: str | None) -> str:
        return ""


def _with_endings(text: str) -> list[str]:
    """The lines of a text, each with its ending; only LF and CRLF end a line."""
    *lines, last = text.split("\n")
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]
