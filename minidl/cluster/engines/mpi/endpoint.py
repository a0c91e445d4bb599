"""What a rank's program stands on under MPI: the mailbox, and what else an endpoint offers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from mpi4py import MPI

from minidl.cluster.board import Fingerprint
from minidl.cluster.engines.helpers import Helpers, Task
from minidl.cluster.engines.mpi.mailbox import MPIMailbox
from minidl.cluster.engines.mpi.memory import SharedFile
from minidl.cluster.engines.mpi.reduction import NativeAllReduce
from minidl.cluster.engines.process_endpoint import BYTES_PER_S, FLOPS_PER_S
from minidl.cluster.engines.protocol import Array, Pending
from minidl.cluster.engines.shared_arrays import SharedArrays
from minidl.cluster.errors import ClusterError
from minidl.cluster.network import Network


class MPIEndpoint(MPIMailbox):
    """The endpoint of this process among those of `comm`; `tell` hands something to the caller of `launch`."""

    network: Network | None = None

    def __init__(
        self,
        comm: MPI.Intracomm,
        *,
        timeout: float,
        news: Callable[[], ClusterError | None],
        tell: Callable[[Any], None],
        memory: SharedFile,
        debug: bool,
    ) -> None:
        super().__init__(comm, timeout, news)
        self._tell = tell
        self._debug = debug
        self._helpers = Helpers(self._finished)
        self._memory = memory
        self._shared_arrays: SharedArrays | None = None
        self._reduction = NativeAllReduce(self, comm)

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
        task.done = True

    def wait(self, pending: Pending) -> None:
        super().wait(pending)
        if isinstance(pending, Task):
            self._helpers.waited(pending)
            if pending.error is not None:
                raise pending.error

    def _raise_if_hopeless(self, pending: Pending) -> None:
        if all(task.done for task in self._helpers.unwaited()):  # else a helper may yet send it
            super()._raise_if_hopeless(pending)

    def flush(self) -> None:
        for task in self._helpers.unwaited():
            self.wait(task)
        super().flush()

    # MPI's own all-reduce

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int) -> bool:
        return self._reduction.run(x, op, ranks, tag)

    def begin_all_reduce(self, comm: MPI.Intracomm, x: Array, op: MPI.Op) -> MPI.Request:
        """Start to reduce x in place."""
        with self._mpi:
            self._raise_failure()
            request = comm.Iallreduce(MPI.IN_PLACE, x, op)
            self._requests.append((request, x))
            return request

    def finish_all_reduce(self, request: MPI.Request) -> None:
        """Return when x is reduced: `progress` has then found the request done, which makes it the null request."""
        self.look_until(lambda: request == MPI.REQUEST_NULL, "MPI's own all-reduce")

    # Wrong programs

    def post_fingerprint(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        if fingerprint.algorithm == "auto":
            self._reduction.expect(group, call)

    # What else an endpoint offers

    def charge(self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0) -> None:
        """Sleep: what a program states as work is not done here."""
        time.sleep(seconds + max(flops / FLOPS_PER_S, nbytes / BYTES_PER_S))

    def charge_reduction(self, nbytes: int) -> None:
        """Nothing: a reduction has taken its time."""

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        with self._mpi:
            if self._shared_arrays is None:
                self._shared_arrays = SharedArrays(self._memory.open(), self.timeout)
        return self._shared_arrays.get(name, shape, dtype)

    def die(self) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process goes on")

    def freeze(self) -> NoReturn:
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)
