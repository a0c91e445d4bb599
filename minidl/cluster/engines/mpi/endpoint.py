"""The endpoint of a rank under MPI: a mailbox, with helper threads, fingerprints, shared arrays, MPI's all-reduce."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from minidl.cluster.call_site import Site
from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.errors import ClusterError, CollectiveMismatch
from minidl.cluster.diagnosis.fingerprints import Fingerprint, FingerprintTable
from minidl.cluster.engines.anonymous_file import anonymous_file
from minidl.cluster.engines.mpi.mailbox import MPIMailbox
from minidl.cluster.engines.mpi.reduction import NativeAllReduce
from minidl.cluster.engines.protocol import Array, Pending
from minidl.cluster.engines.real_endpoint import HelperTask
from minidl.cluster.engines.shared_arrays import SharedArrays
from minidl.cluster.trace.recorder import Recorder


class SharedFile:
    """The file behind shared arrays: rank 0 of `comm` creates it, and the others open it through /proc.

    All ranks construct this object at the same time. The file has no name, so nothing is left behind however they end.
    A rank can ask for an array without the others; an MPI window, in contrast, is created by all ranks together and has
    a name in /dev/shm.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._mine = anonymous_file("minidl shared arrays") if comm.rank == 0 else None
        self._places = comm.allgather((MPI.Get_processor_name(), os.getpid(), self._mine))

    def open(self) -> int:
        """A descriptor of the file; RuntimeError if the ranks cannot all open it."""
        machines = {machine for machine, _, _ in self._places}
        if len(machines) > 1:
            raise RuntimeError(
                f"shared_array needs all ranks on one machine, but these are on {', '.join(sorted(machines))}: use "
                "messages, or launch with on='processes'"
            )
        _, process, descriptor = self._places[0]
        path = f"/proc/{process}/fd/{descriptor}"
        if not os.path.exists(path):
            raise RuntimeError(f"shared_array under MPI needs Linux's /proc, but {path} cannot be opened")
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the file; arrays that are mapped from it stay valid."""
        if self._mine is not None:
            os.close(self._mine)


class MPIEndpoint(MPIMailbox):
    """The endpoint of this process, which is a rank of `comm`.

    news        returns the error to raise when the run is over, else None
    tell        sends an object to the listener of `launch`
    last_words  called before a planned fault kills or stops this rank
    memory      the file behind shared arrays
    may_reduce  whether all-reduces may be left to MPI
    debug       whether the ranks compare their collectives; costs a message to every rank of the group for each
    """

    network: Network | None = None

    def __init__(
        self,
        comm: MPI.Intracomm,
        *,
        timeout: float,
        news: Callable[[], ClusterError | None],
        tell: Callable[[Any], None],
        last_words: Callable[[], None],
        memory: SharedFile,
        may_reduce: bool,
        debug: bool,
    ) -> None:
        super().__init__(comm, timeout, news)
        self._tell = tell
        self._last_words = last_words
        self._may_reduce = may_reduce
        self._fingerprints = FingerprintTable() if debug else None
        # Collective calls as (group, call, rank)
        self._awaited: set[tuple[int, int, int]] = set()  # made here, not yet reported by that rank
        self._early: set[tuple[int, int, int]] = set()  # reported by that rank, not yet made here
        self._finishing = threading.Condition()
        self._memory = memory
        self._shared_arrays: SharedArrays | None = None
        self._reduction = NativeAllReduce(self, comm)

    # Helper threads

    def start(self, work: Callable[[], Any], lane: int) -> Pending:
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise RuntimeError("async_op=True needs an MPI that more than one thread may call, and this one forbids it")
        task = HelperTask("helper", self.rank, 0, self.now(), work=work)
        self._start(task, lane)
        return task

    def _finished(self, task: HelperTask) -> None:
        with self._finishing:
            task.blocked = self.failed_in.get(threading.get_ident())  # in this task, or in an earlier one
            task.done = True
            self._finishing.notify_all()

    def _join(self, task: HelperTask) -> None:
        with self._finishing:
            self._finishing.wait_for(lambda: task.done)

    def flush(self) -> None:
        self._finish_tasks()
        if self._fingerprints is not None:
            self._await_fingerprints()
        super().flush()

    # MPI's own all-reduce

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int, recorder: Recorder) -> bool:
        """Reduce by MPI, which does not report its messages: the ledger counts one message with the bytes of x."""
        if not (self._may_reduce and self._reduction.run(x, op, ranks, tag)):
            return False
        recorder.took(0, -1)  # the time of the call; MPI does not say which bytes came from whom
        recorder.exchanged(1, x.nbytes)
        return True

    def _farewell(self) -> bytes:
        return pickle.dumps(self._reduction.begun)

    def _receive_farewell(self, source: int, farewell: bytes) -> None:
        self._reduction.begun_by[source] = pickle.loads(farewell)

    # Fingerprints: every rank sends its own to the group, and compares those that it knows

    def post_fingerprint(
        self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint, site: Site
    ) -> None:
        if fingerprint.algorithm == "auto":
            self._reduction.expect(group, call)
        if self._fingerprints is not None:
            with self._mpi:
                others = {(group, call, rank) for rank in ranks if rank != self.rank}
                for _, _, rank in others:
                    self._post_note(rank, (group, ranks, call, fingerprint, site))
                self._awaited |= others - self._early
                self._early -= others
                self._fingerprints.post(self.rank, group, ranks, call, fingerprint, site)
            self.progress()  # so that the last rank to call compares the fingerprints of all others

    def _read_note(self, source: int, note: Any) -> None:
        group, ranks, call, fingerprint, site = note
        assert self._fingerprints is not None
        reported = {(group, call, source)}
        self._early |= reported - self._awaited
        self._awaited -= reported
        try:
            self._fingerprints.post(source, group, ranks, call, fingerprint, site)
        except CollectiveMismatch as error:
            self._failure = self._failure or error  # the program may be waiting in another thread

    def _await_fingerprints(self) -> None:
        """Return when every rank that still runs has reported the collectives that this rank has called."""
        self.look_until(
            lambda: {rank for _, _, rank in self._awaited} <= self._ended, "the comparison of collective calls"
        )

    # The rest

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        with self._mpi:
            if self._shared_arrays is None:
                self._shared_arrays = SharedArrays(self._memory.open(), self.timeout)
        return self._shared_arrays.get(name, shape, dtype)

    def close(self) -> None:
        """Free MPI's communicators and the shared file; called when no rank needs a message any more."""
        self._reduction.close()
        self._memory.close()
        self._comm.Free()
