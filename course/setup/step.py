"""Run one tool of the set-up: a line of progress on the screen, the tool's output in a log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TAIL = 25
"""Lines of the log that a failure shows."""


class SetupStep:
    """Runs tools in `folder`, appends what they print to `log`, and lets them inherit the descriptor `lock`."""

    def __init__(self, log: Path, folder: Path, lock: int) -> None:
        self.log = log
        self._folder = folder
        self._inherited = () if os.name == "nt" else (lock,)

    def run(self, title: str | None, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Run `command` to its end and return its exit code; title: its name in the progress line, None for no line.

        On a terminal one line is redrawn every half second: title, seconds, last line of the log. Elsewhere a line is
        printed at the start, every 15 s and at the end. An interrupt ends the tool before it is raised to the caller.
        """
        started = time.monotonic()
        line = ProgressLine(title, sys.stderr.isatty()) if title else None
        with self.log.open("ab") as output:
            output.write(f"\n$ {' '.join(command)}\n".encode())
            output.flush()
            tool = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                pass_fds=self._inherited,
            )  # fmt: skip
            try:
                while True:
                    try:
                        code = tool.wait(timeout=0.5)
                        break
                    except subprocess.TimeoutExpired:
                        if line:
                            line.show(time.monotonic() - started, self.last_line())
            except BaseException:
                tool.terminate()
                tool.wait()
                raise
        if line:
            line.finish(time.monotonic() - started, code)
        return code

    def last_line(self) -> str:
        """The last line that a tool printed."""
        lines = self.tail().splitlines()
        return lines[-1].strip() if lines else ""

    def tail(self) -> str:
        """The end of the log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 20_000))
            text = file.read().decode(errors="replace")
        return "\n".join(text.rstrip().splitlines()[-TAIL:])


class ProgressLine:
    """The progress of one tool: a line that counts seconds on a terminal, plain lines elsewhere."""

    def __init__(self, title: str, terminal: bool) -> None:
        self._title = title
        self._terminal = terminal
        self._spoke = 0.0
        if not terminal:
            print(f"{title} ...", file=sys.stderr, flush=True)

    def show(self, seconds: float, detail: str) -> None:
        """Redraw the line, or print one if nothing was printed for 15 s."""
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            text = f"{self._title} ... {seconds:.0f} s  {detail}"[:width]
            print(f"\r{text:<{width}}", end="", file=sys.stderr, flush=True)
        elif seconds - self._spoke >= 15:
            self._spoke = seconds
            print(f"{self._title} ... {seconds:.0f} s so far", file=sys.stderr, flush=True)

    def finish(self, seconds: float, code: int) -> None:
        """Print how long it took, or that it failed."""
        outcome = f"{seconds:.0f} s" if code == 0 else f"failed after {seconds:.0f} s"
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{f'{self._title}: {outcome}':<{width}}", file=sys.stderr, flush=True)
        else:
            print(f"{self._title}: {outcome}", file=sys.stderr, flush=True)
