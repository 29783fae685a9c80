"""The process that Neovim starts: pynvim's own plugin host with one plugin in it.

Run as `python -I main.py <folder of the plugin>`. Knows file descriptors and exits, and nothing of
chats.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

OLDEST_PYTHON = (3, 11)
"""The Python that `pyproject.toml` requires; an older Python gets far enough to report it."""


def main() -> None:
    """Serve until Neovim goes away, then end at once: taking the interpreter down takes 0.3 s of
    `:qa`.
    """
    if sys.version_info < OLDEST_PYTHON:
        own, least = (
            ".".join(map(str, version)) for version in (sys.version_info[:3], OLDEST_PYTHON)
        )
        sys.exit(f"Parley needs Python {least} or newer; {sys.executable} is {own}")
    _keep_stdin_private()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    gc.set_threshold(
        50_000, 20, 50
    )  # an SDK makes a million lasting values: scanning them costs a third of the start
    sys.setswitchinterval(0.001)  # SDKs are imported in a thread while the editor waits for answers
    code = 1
    try:
        _serve(sys.argv[1:])
    except (EOFError, OSError):
        code = 0  # Neovim is gone
    except SystemExit:
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and says why
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _keep_stdin_private() -> None:
    """Hide stdin from children: one that inherited it would steal messages, and Neovim would
    crash.
    """
    messages = os.dup(0)  # not inheritable
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = os.fdopen(messages, "rb", buffering=0)


def _serve(plugins: list[str]) -> None:
    import pynvim

    class Host(pynvim.Host):  # type: ignore[misc] # pynvim has no types for it
        """A host whose errors go to stderr, where Lua keeps them, and not into a hit-enter
        prompt.
        """

        def _on_async_err(self, msg: str) -> None:
            sys.stderr.write(msg)

        def _on_error_event(self, kind: Any, msg: str) -> None:
            sys.stderr.write(f"Neovim: {msg}\n")

    Host(pynvim.Nvim.from_session(pynvim.stdio_session())).start(plugins)


if __name__ == "__main__":
    main()
