"""The command `minidl`: train, compare, simulate and info, each in a folder or file of its name.

`minidl COMMAND --help` lists the options of a command. The other files are shared by the commands: what a user types
(`strategies`, `models`, `job`, `engines`, `quantities`), how it is read (`components`, `calls`, `value_types`,
`several_words`, `shared_options`), and what is printed and written (`display`, `run_folder`, `ending`).
"""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the run failed, 2 bad input, 130 interrupted, 143 terminated."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)
    try:
        from minidl.cli.app import app  # here, so that Ctrl-C during this import ends as at any other time

        app(prog_name="minidl")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process is ending: a second Ctrl-C changes nothing


def _leave(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that the nodes are ended and half-written files are removed."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)
