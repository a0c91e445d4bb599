"""What a rank's program stands on under MPI: the mailbox, and what else an endpoint offers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.errors import ClusterError, CollectiveMismatch, Deadlock
from minidl.cluster.diagnosis.fingerprints import Fingerprint, FingerprintTable
from minidl.cluster.engines.mpi.mailbox import MPIMailbox
from minidl.cluster.engines.mpi.memory import SharedFile
from minidl.cluster.engines.mpi.reduction import NativeAllReduce
from minidl.cluster.engines.os_process.helper_threads import Helpers, Task
from minidl.cluster.engines.os_process.real_rank import RealRank
from minidl.cluster.engines.os_process.shared_arrays import SharedArrays
from minidl.cluster.engines.protocol import Array, Pending
from minidl.cluster.trace.recorder import Recorder


class MPIEndpoint(MPIMailbox, RealRank):
    """The endpoint of this process among those of `comm`.

    `tell` hands something to the caller of `launch`; `last_words` is called before the rank dies on purpose;
    `may_reduce`: whether all-reduces may be left to MPI; `debug`: whether the ranks tell each other their collectives.
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
        self._board = FingerprintTable() if debug else None
        self._told: set[tuple[int, int, int]] = set()  # group, call, and a rank that has not said what it calls there
        self._heard: set[tuple[int, int, int]] = set()  # the other way round: what this rank has not called yet
        self._program = threading.get_ident()
        self._helpers = Helpers(self._finished)
        self._finishing = threading.Condition()
        self._memory = memory
        self._shared_arrays: SharedArrays | None = None
        self._reduction = NativeAllReduce(self, comm)
        self._begun_by: dict[int, dict[int, int]] = {}  # by rank that has returned: its last all-reduces by MPI

    @property
    def blocked(self) -> tuple[Pending, float] | None:
        """What the program, or what it waits for beside it, was blocked in when that failed, and since when."""
        return self.failed_in.get(self._program)

    def tell(self, obj: Any) -> None:
        self._tell(obj)

    # Beside the program

    def start(self, work: Callable[[], Any], lane: int) -> Pending:
        if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
            raise RuntimeError("async_op=True needs an MPI that more than one thread may call, and this one forbids it")
        task = Task("helper", self.rank, 0, self.now(), work=work)
        self._helpers.start(task, lane)
        return task

    def _finished(self, task: Task) -> None:
        with self._finishing:
            task.blocked = self.failed_in.get(threading.get_ident())  # in this task, or in one before it
            task.done = True
            self._finishing.notify_all()

    def wait(self, pending: Pending) -> None:
        if not isinstance(pending, Task):
            super().wait(pending)
            return
        with self._finishing:  # without a timeout: what the helper waits for has one, and fails with the run
            self._finishing.wait_for(lambda: pending.done)
        self._helpers.waited(pending)
        if pending.error is not None:
            if pending.blocked is not None:
                self.failed_in[self._program] = pending.blocked
            raise pending.error

    def _has_help(self) -> bool:
        return not all(task.done for task in self._helpers.unwaited())

    def flush(self) -> None:
        self._helpers.finish(self.wait)
        if self._board is not None:
            self._hear_the_rest()
        super().flush()

    # MPI's own all-reduce

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int, recorder: Recorder) -> bool:
        """By MPI's own algorithm, which does not say what it sends: recorded are this rank's bytes, as one message."""
        if not (self._may_reduce and self._reduction.run(x, op, ranks, tag)):
            return False
        recorder.exchanged(1, x.nbytes)
        return True

    def begin_all_reduce(self, comm: MPI.Intracomm, x: Array, op: MPI.Op) -> MPI.Request:
        """Start to reduce x in place."""
        with self._mpi:
            self._raise_failure()
            request = comm.Iallreduce(MPI.IN_PLACE, x, op)
            self._requests.append((request, x))
            return request

    def finish_all_reduce(self, request: MPI.Request, ranks: tuple[int, ...], group: int, call: int) -> None:
        """Return when x is reduced: `progress` has then found the request done, which makes it the null request.

        Raises Deadlock when another rank has returned from the program without this call of the group.
        """

        def raise_if_hopeless() -> None:
            for rank in ranks:
                if rank in self._ended and self._begun_by[rank].get(group, -1) < call:
                    raise Deadlock(
                        f"MPI's own all-reduce can never complete: rank {rank} has already returned from the program",
                        rank=rank,
                    )

        self.look_until(lambda: request == MPI.REQUEST_NULL, "MPI's own all-reduce", raise_if_hopeless)

    def _farewell(self) -> bytes:
        return pickle.dumps(self._reduction.begun)

    def _hear_farewell(self, source: int, farewell: bytes) -> None:
        self._begun_by[source] = pickle.loads(farewell)

    # The board: every rank keeps one, and tells the others of the group what it puts up

    def post_fingerprint(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        if fingerprint.algorithm == "auto":
            self._reduction.expect(group, call)
        if self._board is not None:
            with self._mpi:
                others = {(group, call, rank) for rank in ranks if rank != self.rank}
                for _, _, rank in others:
                    self._post_note(rank, (group, ranks, call, fingerprint))
                self._told |= others - self._heard
                self._heard -= others
                self._board.post(self.rank, group, ranks, call, fingerprint)
            self.progress()  # so that the last rank to call has seen what the others call

    def _read_note(self, source: int, note: Any) -> None:
        group, ranks, call, fingerprint = note
        assert self._board is not None
        said = {(group, call, source)}
        self._heard |= said - self._told
        self._told -= said
        try:
            self._board.post(source, group, ranks, call, fingerprint)
        except CollectiveMismatch as error:
            self._failure = self._failure or error  # the program may be waiting in another thread than this

    def _hear_the_rest(self) -> None:
        """Return when all that still run have said what they call where this rank has called."""
        self.look_until(
            lambda: {rank for _, _, rank in self._told} <= self._ended, "the comparison of collective calls"
        )

    # What else an endpoint offers

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        with self._mpi:
            if self._shared_arrays is None:
                self._shared_arrays = SharedArrays(self._memory.open(), self.timeout)
        return self._shared_arrays.get(name, shape, dtype)

    def close(self) -> None:
        """All ranks have what they wanted: give back what MPI and the system have lent."""
        self._reduction.close()
        self._memory.close()
        self._comm.Free()
