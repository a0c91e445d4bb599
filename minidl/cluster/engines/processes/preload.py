"""What the fork server has ready before it forks a rank: imports, and kernels that have been called once.

A compiled kernel costs a fresh process some tenths of a second even when it comes from numba's cache; ranks forked from
a process that has called it start in hundredths.
"""

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator

import cloudpickle  # noqa: F401
import threadpoolctl  # noqa: F401

import minidl.cluster.engines.worker  # noqa: F401
from minidl import kernels

LOOK_SECONDS = 0.1


@contextlib.contextmanager
def ending_with_the_launcher() -> Iterator[None]:
    """End this process when the one that started it ends inside, as the fork server does by itself once it serves.

    Compiling takes seconds, and Ctrl-C shall leave nothing behind in that time either. MINIDL_LAUNCHER is its process
    id: the launcher may have ended before this line is reached.
    """
    launcher, is_over = int(os.environ["MINIDL_LAUNCHER"]), threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_SECONDS):
            if os.getppid() != launcher:
                os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()  # forked ranks would inherit it half


if kernels.active() == "numba":
    try:
        with ending_with_the_launcher():
            from minidl.kernels import jit

            jit.warm_up()
    except Exception as error:
        # Ranks start without warm kernels then; a program that calls a broken kernel meets the error on its own rank.
        warnings.warn(f"the compiled kernels could not be called before the first launch: {error!r}", stacklevel=1)
