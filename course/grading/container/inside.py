"""What runs in the container of `grade --container`: the same command, until standard input ends.

That is so when the command outside was ended, even by SIGKILL: nothing goes on in here that nobody waits for.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from course.commands import grade

STOP_SECONDS = 60.0
"""In which what is graded has to be written once nobody waits any more."""


def end_with_standard_input() -> None:
    """As Ctrl-C does, when there is no more input; and if that does not end it, at once."""
    while os.read(0, 4096):
        continue
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(STOP_SECONDS)
    os._exit(130)


if __name__ == "__main__":
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    sys.exit(grade.run(sys.argv[1:]))
