"""What the fork server has ready before it forks a rank: imports, and kernels that have been called once.

A compiled kernel costs a fresh process some tenths of a second even when it comes from numba's cache; ranks forked from
a process that has called it start in hundredths.
"""

import atexit
import contextlib
import os
import threading
import time
import warnings
from collections.abc import Iterator

import cloudpickle  # noqa: F401
import multiprocess.forkserver
import threadpoolctl  # noqa: F401

import minidl.cluster.engines.os_process.worker  # noqa: F401
from minidl import kernels

LAUNCHER = int(os.environ["MINIDL_LAUNCHER"])  # its process id: it may have ended before this line is reached
LOOK_SECONDS = 0.1
FAREWELL_SECONDS = 2.0  # within which a launcher that was killed has ended: its descriptors close a moment earlier


@contextlib.contextmanager
def ending_with_the_launcher() -> Iterator[None]:
    """End this process when the one that started it ends inside, as the fork server does by itself once it serves.

    Compiling takes seconds, and Ctrl-C shall leave nothing behind in that time either.
    """
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_SECONDS):
            if os.getppid() != LAUNCHER:
                os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()  # forked ranks would inherit it half


def remove_socket() -> None:
    """Remove the server's socket and its temporary folder, which a launcher that was killed has left behind."""
    end = time.monotonic() + FAREWELL_SECONDS
    while os.getppid() == LAUNCHER:
        if time.monotonic() > end:
            return  # this server has failed; the launcher goes on, and puts the next socket into the same folder
        time.sleep(LOOK_SECONDS)
    socket = multiprocess.forkserver._forkserver._forkserver_address
    with contextlib.suppress(OSError):  # the launcher has removed them itself, or keeps something else in the folder
        os.unlink(socket)
        os.rmdir(os.path.dirname(socket))


atexit.register(remove_socket)  # for the server alone: a rank leaves by os._exit

if kernels.active() == "numba":
    try:
        with ending_with_the_launcher():
            from minidl.kernels import jit

            jit.warm_up()
    except Exception as error:
        # Ranks start without warm kernels then; a program that calls a broken kernel meets the error on its own rank.
        warnings.warn(f"the compiled kernels could not be called before the first launch: {error!r}", stacklevel=1)
