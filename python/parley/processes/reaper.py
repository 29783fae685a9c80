"""Ends all MCP servers and commands when this process ends in any way, even by SIGKILL.

A small shell in its own session reads the process groups of both from a FIFO, which only this
process keeps open for writing. The end of file means that this process is gone, so the shell ends
the remaining ones. Here, a command counts as a server. POSIX only: on other systems, servers start
directly. Knows neither MCP nor the commands.
"""

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SHELL = "/bin/sh"
_CLOSE_S = 4.0
_POLL_S = 0.01

# stdin is the FIFO, and `$1` its path. Each line is a process group, or 0 as a request to check
# which groups remain, or `-` and a group that has ended: its strays end now. The shell immediately
# forgets groups that are gone, because their numbers may be reused. Servers have 0.5 s to exit
# after their stdin ends, and 1.3 s after SIGTERM. A process that has ended but has not been waited
# for counts as gone (state Z, man proc_pid_stat), because a container's first process need not be
# an init. Reading again after the end of file catches a server that was just being started. dash
# needs `kill -s NAME -- -GROUP`. By then, a server's child may have its own session and another
# parent. The shell finds it by the mark in its inherited environment (see `_LAUNCH`). Without
# /proc, `ps -E` shows the mark (macOS; man ps: "Display the environment as well").
_REAPER = r"""
trap '' HUP INT TERM
fifo=$1
groups=
ending=
thorough=
strays() {
  if [ -r /proc/self/environ ]; then
    grep -Fls -- "PARLEY_SERVER=$1" /proc/[0-9]*/environ 2>/dev/null |
      while IFS=/ read -r _ _ pid _; do echo "$pid"; done
  else
    ps -AEww -o pid=,command= 2>/dev/null | grep -F -- "PARLEY_SERVER=$1" |
      while read -r pid _; do echo "$pid"; done
  fi
}
signal() {
  for group in $groups; do kill -s "$1" -- "-$group" 2>/dev/null; done
  for stray in $(strays "$2"); do kill -s "$1" "$stray" 2>/dev/null; done
}
pause() { sleep "$1" 2>/dev/null || sleep 1; }
sweep() {
  groups=
  for name in TERM KILL KILL; do
    ticks=5
    while [ -n "$(strays "$1")" ]; do
      [ "$ticks" -gt 0 ] || { signal "$name" "$1"; break; }
      pause 0.1
      ticks=$((ticks - 1))
    done
  done
}
lives() {
  kill -s 0 -- "-$1" 2>/dev/null || return 1
  [ -z "$thorough" ] || [ ! -r /proc/self/stat ] || grep -Eqs -- "\) [^XZ] [0-9]+ $1 " /proc/[0-9]*/stat
}
prune() {
  left=
  for group in $groups; do
    if lives "$group"; then left="$left $group"
    elif [ -z "$ending" ]; then sweep "$fifo:$group:" </dev/null & fi
  done
  groups=$left
}
forget() {
  left=
  for group in $groups; do [ "$group" = "$1" ] || left="$left $group"; done
  groups=$left
  [ -n "$ending" ] || sweep "$fifo:$1:" </dev/null &
}
collect() {
  while read -r line; do
    prune
    case $line in
      0|?*[!0-9]*|[!0-9-]*|-|'') ;;
      -*) forget "${line#-}" ;;
      *) groups="$groups $line" ;;
    esac
  done
}
wait_for() {
  while prune; left_over=${groups:-$(strays "$fifo:")}; [ $# -gt 0 ] && [ -n "$left_over" ]; do
    pause "$1"
    [ "$1" != 0.1 ] || thorough=1
    shift
  done
}
collect
ending=1
half='0.01 0.02 0.03 0.04 0.1 0.1 0.1 0.1'
for step in "TERM $half" "KILL $half $half 0.1 0.1 0.1" 'KILL 0.1 0.1 0.1'; do
  wait_for ${step#* }
  collect
  [ -n "$left_over$groups" ] || break
  signal "${step%% *}" "$fifo:"
done
rm -f "$fifo"
rmdir "${fifo%/*}"
"""

# `exec` keeps the pid, so this is the server's pid. It is also its process group, because the SDK
# starts the shell in a new session. A server that cannot be announced does not start.
_LAUNCH = 'export PARLEY_SERVER="$0:$$:" && echo $$ >>"$0" && exec "$@"'


@dataclass(slots=True)
class _Guard:
    """A running shell and our end of its FIFO."""

    process: subprocess.Popen[bytes]
    fifo: Path
    writer: int

    def usable(self) -> bool:
        return self.process.poll() is None and self.fifo.is_fifo()


class Reaper:
    """Starts a shell with the first server, and another shell if the first shell was killed or its
    FIFO was deleted.
    """

    def __init__(self) -> None:
        self._guards: list[_Guard] = []

    def launch(self, command: str, args: Sequence[str]) -> tuple[str, list[str]]:
        """The command and arguments that start `command` so that it cannot outlive this process."""
        if os.name != "posix":
            return command, list(args)
        if not self._guards or not self._guards[-1].usable():
            self._guards.append(_start())  # an earlier shell keeps watching its servers
        return _SHELL, ["-c", _LAUNCH, str(self._guards[-1].fifo), command, *args]

    def prune(self) -> None:
        """Have the shells forget the process groups of servers that have ended."""
        self._tell("0")

    def sweep(self, group: int) -> None:
        """Have the shells end the processes that left a group which was just killed."""
        self._tell(f"-{group}")

    def _tell(self, line: str) -> None:
        for guard in self._guards:
            with contextlib.suppress(BlockingIOError):  # the FIFO is full: the shell is not reading
                os.write(guard.writer, f"{line}\n".encode())

    async def close(self) -> None:
        """End all remaining servers and return when they are gone, within about two seconds."""
        guards, self._guards = self._guards, []
        for guard in guards:
            os.close(guard.writer)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                for guard in guards:
                    while guard.process.poll() is None:  # noqa: ASYNC110 - a `Popen` sets no event
                        await asyncio.sleep(_POLL_S)


def _start() -> _Guard:
    fifo = Path(tempfile.mkdtemp(prefix="parley-")) / "servers"
    os.mkfifo(fifo, 0o600)
    # Opened for reading and writing, so neither this process nor a server waits for a reader.
    # Children do not inherit it, so the FIFO ends when this process ends.
    writer = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    # Opened here, because the shell would wait forever if this process had already ended.
    reader = os.open(fifo, os.O_RDONLY | os.O_CLOEXEC)
    try:
        process = subprocess.Popen(
            [_SHELL, "-c", _REAPER, "parley-reaper", str(fifo)],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(reader)
    return _Guard(process, fifo, writer)
