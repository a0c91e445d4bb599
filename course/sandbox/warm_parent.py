"""The warm parent (Linux): a process that has imported what answers need, and forks the process of each answer.

`python -m course.sandbox.warm_parent LINK MODULE...` imports these modules, and what runs cells. LINK is a socket, from
which it receives six descriptors for each answer: the supervisor's link, then REQUESTS, REPLIES, PASSED and STACK of
`answer_process.py`, then the answer's output. The check's process starts it once and keeps it; it ends with that
process. It reads nothing that a check or an answer sends, so one answer leaves nothing in it for the next.
"""

from __future__ import annotations

import builtins
import gc
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from course.sandbox import answer_process, confinement, forked, supervisor
from course.sandbox.exchange import channel
from course.sandbox.fence import no_input
from course.sandbox.refused.originals import Originals
from course.sandbox.scratch import remove
from course.sandbox.terms import Terms

DESCRIPTORS = 6

CELLS = ("course.sandbox.cells.shell", "IPython.core.application", "IPython.core.completerlib", "IPython.core.magics")
"""What runs cells, and what each new shell imports."""


def main(arguments: list[str]) -> None:
    """Import, then fork a supervisor with an answer for each request, until the check's process ends."""
    number, *modules = arguments
    link, check = socket.socket(fileno=int(number)), os.getppid()
    gc.disable()
    answer_process.import_whole([*CELLS, *modules])
    builtins.input = no_input  # recorded as the original, since each answer's fence sets it
    originals = Originals()
    has_own_view = confinement.can_make_own_view()
    if len(threads := os.listdir("/proc/self/task")) > 1:  # OpenBLAS has ended its own before the first fork
        raise RuntimeError(f"a process with {len(threads)} threads cannot be forked safely")
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    while descriptors := next_request(link, check):
        if os.fork() == 0:
            os.close(link.detach())
            begin(check, descriptors, originals, has_own_view)
        for descriptor in descriptors:
            os.close(descriptor)


def next_request(link: socket.socket, check: int) -> list[int]:
    """The descriptors of the next request; none after the check's process has ended."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    while not poll.poll(1000):
        if os.getppid() != check:
            return []
    return socket.recv_fds(link, 1, DESCRIPTORS)[1]


def begin(check: int, descriptors: Sequence[int], originals: Originals, has_own_view: bool) -> NoReturn:
    """Be the supervisor of an answer."""
    try:
        control, requests, replies, passed, stack, output = descriptors
        for standard in (1, 2):
            os.dup2(output, standard)
        os.setsid()
        os.write(control, b"%d\n" % os.getpid())
        message = channel.read_message(requests)
        if message is not None:
            terms: Terms = pickle.loads(message)

            def answer() -> NoReturn:
                become_answer(terms, originals, has_own_view, control, (requests, replies, passed, stack))

            supervisor.supervise(control, check, answer, lambda: remove(terms.scratch))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def become_answer(
    terms: Terms, originals: Originals, has_own_view: bool, control: int, connections: tuple[int, int, int, int]
) -> NoReturn:
    """Be the answer's process."""
    supervisor.close_all_but(control, *connections)
    forked.renew(terms.environment)
    if has_own_view and not confinement.make_own_view(terms.scratch, terms.limits.written):
        raise OSError("an answer's view of the file system could not be made")
    supervisor.report(control, supervisor.OWN if has_own_view else supervisor.COMMON)
    os.close(control)
    os.setsid()
    confinement.confine(terms.scratch, terms.path, terms.secret)
    answer_process.answer(terms, *connections, originals)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
