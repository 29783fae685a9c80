"""The process that Neovim starts: pynvim's plugin host with a single plugin.

Run it as `python -I main.py <plugin folder>`. Knows file descriptors and exits, but not chats.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

OLDEST_PYTHON = (3, 11)
"""The version that `pyproject.toml` requires. This file must run on older Python versions, so that
it can report them.
"""


def main() -> None:
    """Serve until Neovim exits, and then exit at once: a normal exit would delay `:qa` by 0.3 s."""
    if sys.version_info < OLDEST_PYTHON:
        own, least = (
            ".".join(map(str, version)) for version in (sys.version_info[:3], OLDEST_PYTHON)
        )
        sys.exit(f"Parley needs Python {least} or newer; {sys.executable} is {own}")
    _keep_stdin_private()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    gc.set_threshold(200_000, 20, 50)  # more than the start creates: scanning takes a tenth of it
    sys.setswitchinterval(0.001)  # the editor waits while a thread imports SDKs: switch more often
    code = 1
    try:
        _serve(sys.argv[1:])
    except (EOFError, OSError):
        code = 0  # Neovim is gone
    except SystemExit:
        code = 0
    except BaseException:  # noqa: BLE001 - report every error before exiting
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _keep_stdin_private() -> None:
    """Hide stdin from child processes: a child that reads stdin would consume Neovim's messages,
    and Neovim would crash.
    """
    messages = os.dup(0)  # not inheritable
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = os.fdopen(messages, "rb", buffering=0)


def _serve(plugins: list[str]) -> None:
    import pynvim

    class Host(pynvim.Host):  # type: ignore[misc] # pynvim has no types for it
        """A host that writes errors to stderr, which Lua records, instead of showing a prompt."""

        def _on_async_err(self, msg: str) -> None:
            sys.stderr.write(msg)

        def _on_error_event(self, kind: Any, msg: str) -> None:
            sys.stderr.write(f"Neovim: {msg}\n")

    Host(pynvim.Nvim.from_session(pynvim.stdio_session())).start(plugins)


if __name__ == "__main__":
    main()
