"""The program in the container of `grade --container`: run a command of the course until standard input ends.

Standard input ends when the command outside has ended, even by SIGKILL; then this program ends too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from importlib import import_module

STOP_SECONDS = 60.0
"""Time to write the grades after standard input has ended."""


def end_with_standard_input() -> None:
    """Wait until standard input ends; then interrupt the command as Ctrl-C does, and kill it after STOP_SECONDS."""
    while os.read(0, 4096):
        continue
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(STOP_SECONDS)
    os._exit(130)


if __name__ == "__main__":
    command = import_module(sys.argv[1])
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    sys.exit(command.run(sys.argv[2:]))
