"""Prepares the fork server before it forks the first rank: imports modules and calls each kernel in numba's cache once.

A compiled kernel costs a fresh process some tenths of a second even when it comes from numba's cache; ranks forked from
a process that has called it start in hundredths. Nothing is compiled here: a program may need no kernel. A rank
compiles what it calls, and others that call the same kernel wait for it (`minidl.kernels.jit.compiled`).
"""

import atexit
import contextlib
import gc
import os
import threading
import time
import warnings
from collections.abc import Iterator

import cloudpickle  # noqa: F401
import multiprocess.forkserver

import minidl.cluster.engines.processes.rank  # noqa: F401
from minidl import cluster, kernels
from minidl.threads import thread_pools

for name in cluster.__all__:
    getattr(cluster, name)  # engines too, which are imported on demand: a rank may simulate, or unpickle a Node

LAUNCHER = int(os.environ["MINIDL_LAUNCHER"])  # its process id; it may have ended before this line runs
LOOK_SECONDS = 0.1
FAREWELL_SECONDS = 2.0  # a killed launcher ends within this time after its descriptors have closed


@contextlib.contextmanager
def ending_with_the_launcher() -> Iterator[None]:
    """Inside, end this process when the launcher ends; afterwards the fork server does that by itself.

    Loading kernels takes a second, and Ctrl-C must leave nothing behind during that time either.
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
        watcher.join()  # a fork would copy the thread's state without the thread


def remove_socket() -> None:
    """Remove the server's socket and its temporary folder, which a killed launcher leaves behind."""
    end = time.monotonic() + FAREWELL_SECONDS
    while os.getppid() == LAUNCHER:
        if time.monotonic() > end:
            return  # only this server has failed; the launcher puts the next one's socket into the same folder
        time.sleep(LOOK_SECONDS)
    socket = multiprocess.forkserver._forkserver._forkserver_address
    with contextlib.suppress(OSError):  # the launcher has removed them, or keeps something else in the folder
        os.unlink(socket)
        os.rmdir(os.path.dirname(socket))


atexit.register(remove_socket)  # runs only in the server, because a rank leaves by os._exit

if kernels.active() == "numba":
    try:
        with ending_with_the_launcher():
            from minidl.kernels import cache
            from minidl.kernels.jit.first_calls import load

            load(os.environ.get(cache.MODEL_VARIABLE, cache.ALL))
    except Exception as error:
        # The ranks then start without warm kernels; a program that calls a broken kernel gets the error on its rank.
        warnings.warn(f"the compiled kernels could not be called before the first launch: {error!r}", stacklevel=1)

thread_pools()  # searched for once, and not by each rank
gc.collect()
gc.freeze()  # a rank's first full collection takes 0.1 ms in place of 67, which copied 36 MB that it shares with others
