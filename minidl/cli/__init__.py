"""The command `minidl`: train, compare, simulate, info. `minidl train --help` tells the options."""

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
        from minidl.cli.app import app  # here, so that Ctrl-C while it is read ends as any other does

        app(prog_name="minidl")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # we are leaving; a second Ctrl-C has nothing to add


def _leave(number: int, frame: FrameType | None) -> None:
    """End as an exception does, so that the nodes are ended and what is half written is removed."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)
