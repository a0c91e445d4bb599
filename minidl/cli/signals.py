"""Signals that end a command raise an exception in it, so that nodes are ended and half-written files are removed."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 0.05  # after a signal was dropped; to free an object takes microseconds


class Terminated(SystemExit):
    """SIGTERM or SIGHUP has arrived. The exit code is 128 + its number, as of a program that it kills."""


def answer_signals() -> None:
    """From now on SIGTERM and SIGHUP raise Terminated, and SIGINT raises KeyboardInterrupt as before.

    A signal that somebody else answers or ignores stays so (`nohup` ignores SIGHUP).

    Python prints and drops an exception in a `__del__` or in a callback from C, since nobody called it. A signal whose
    exception is dropped there is sent again. The first compilation of the kernels frees thousands of LLVM's objects,
    each with a `__del__`: the program went on after Ctrl-C. An object that a signal has left half made cannot be freed
    properly; its error is not printed.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _answer)
    sys.unraisablehook = _answer_dropped


def ignore_signals() -> None:
    """From now on a second Ctrl-C or SIGTERM changes nothing: the process is ending."""
    for number in {signal.SIGINT, *_arrived}:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def raising_dropped_signals() -> Iterator[None]:
    """An error inside becomes the exception of a signal that was dropped just before.

    Where a callback of LLVM's was interrupted, numba goes on without what it should have made, and fails.
    """
    try:
        yield
    except Exception:
        if not _sending:
            raise
        number, again = _sending.popitem()
        again.cancel()
        raise (KeyboardInterrupt() if number == signal.SIGINT else Terminated(128 + number)) from None


_arrived: set[int] = set()
"""Numbers of signals that have raised their exception. A second SIGTERM or SIGHUP changes nothing."""

_sending: dict[int, threading.Timer] = {}
"""Numbers of signals whose exceptions were dropped, until they are sent again."""


def _answer(number: int, frame: FrameType | None) -> None:
    is_first = number not in _arrived
    _arrived.add(number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if is_first:
        raise Terminated(128 + number)


def _answer_dropped(dropped: sys.UnraisableHookArgs) -> None:
    if isinstance(dropped.exc_value, KeyboardInterrupt):
        number: int = signal.SIGINT
    elif isinstance(dropped.exc_value, Terminated):
        number = dropped.exc_value.args[0] - 128
    elif _arrived:
        return  # a consequence of the signal, which ends the command
    else:
        sys.__unraisablehook__(dropped)
        return
    timer = _sending[number] = threading.Timer(AGAIN_SECONDS, _send_again, (number,))
    timer.daemon = True
    timer.start()


def _send_again(number: int) -> None:
    _sending.pop(number, None)
    _arrived.discard(number)  # here, in a thread of its own: so no signal interrupts _answer_dropped
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, number)
