"""Calls of MPI: one thread at a time, and with errors that say which rank has died."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from mpi4py import MPI

from minidl.cluster.diagnosis.errors import ClusterError, RankFailed

NEWS_SECONDS = 1.0  # how long after an error of MPI the death of another rank may become known as its cause
LOOK_SECONDS = 1e-3


class MPICalls:
    """A lock around calls of MPI, as a context; an MPI.Exception inside leaves it as a ClusterError.

    When a rank has been killed, MPI's calls on the others fail too. `news` then says which rank it was. MPI's own
    exceptions must not reach the launcher, because unpickling one there would initialize MPI.
    """

    def __init__(self, news: Callable[[], ClusterError | None]) -> None:
        self._news = news
        self._lock = threading.RLock()  # held briefly: no call under it waits for another rank

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if isinstance(error, MPI.Exception):
                raise self._reason(error) from None
        finally:
            self._lock.release()

    def _reason(self, error: MPI.Exception) -> ClusterError:
        end = time.monotonic() + NEWS_SECONDS
        while (news := self._news()) is None and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        return news or RankFailed(f"MPI has failed, and no other rank has died: {str(error).strip()}")


def highest_tag(comm: MPI.Intracomm) -> int:
    """The highest tag that this MPI accepts; at least 32767."""
    tag = comm.Get_attr(MPI.TAG_UB)
    assert isinstance(tag, int)
    return tag
