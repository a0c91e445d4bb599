"""The rank's side of a run: a process becomes a rank, runs the program, and reports to the launcher."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

from minidl import kernels
from minidl.cluster.comm import Communicator, world
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines import control, reports
from minidl.cluster.engines.anonymous_file import contents
from minidl.cluster.engines.pickled import pickled_result, unpack
from minidl.cluster.engines.position import Notes
from minidl.cluster.engines.printed import KeptFile
from minidl.cluster.engines.real_endpoint import RealEndpoint
from minidl.cluster.trace.recorder import Recorder
from minidl.threads import limit_threads

MAX_DESCRIPTORS = 253  # the most that the kernel lets one message carry


EndpointOf = Callable[["RankContext", float], RealEndpoint]  # the engine's; given the clock's zero by perf_counter()


def end_with_launcher(descriptor: int) -> None:
    """End this process when the launcher's end of the control socket closes, however busy the program is."""
    poll = select.poll()
    poll.register(descriptor, 0)  # reports only that the other end has closed
    poll.poll()
    os._exit(1)


def run_rank(
    launcher: control.ControlSocket, start: control.RankStart, descriptors: list[int], endpoint_of: EndpointOf
) -> None:
    """Become a rank, run the program, and report.

    `endpoint_of` makes the rank's endpoint once all ranks are ready.
    """
    output, errors, task, notes, *engine_descriptors = descriptors
    os.dup2(output, 1)
    os.dup2(errors, 2)
    process, printed = os.getpid(), KeptFile(1)
    sys.stdout = printed
    rank = RankContext(launcher, start, engine_descriptors, endpoint_of, Notes(notes))
    try:
        pickled = unpack(contents(task, start.payload_bytes))
        for descriptor in {output, errors, task} - {1, 2}:
            os.close(descriptor)
        limit_threads(start.threads)
        os.environ["MINIDL_KERNELS"] = start.kernels  # numba is imported when the first kernel is called, if ever
        if kernels.active() != start.kernels:
            kernels.use(start.kernels)
        program, args = cloudpickle.loads(pickled)
        del pickled  # it is as large as the arguments, which may take most of the memory
        rank.begin()
        value = program(rank.communicator, *args)
        _end_copy(process)
        seconds = rank.endpoint.now()
        rank.endpoint.flush()
        result = control.ProgramResult(pickled_result(value, start.rank), seconds, rank.recorder.close())
        last = control.RESULT, pickle.dumps(result, 5)
    except BaseException as error:  # SystemExit too, and what a program derives from BaseException
        _end_copy(process)
        last = control.ERROR, pickle.dumps(rank.failure(error), 5)
    for stream in (printed, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # the program may have closed or replaced it
            stream.flush()
    launcher.send(*last)


def _end_copy(process: int) -> None:
    """End this process if it is a copy of the rank's process that the program has made by os.fork."""
    if os.getpid() != process:
        os._exit(1)


class RankContext:
    """What a rank's process holds: the control socket, then (from `begin` on) endpoint, recorder and communicator."""

    endpoint: RealEndpoint
    recorder: Recorder
    communicator: Communicator

    def __init__(
        self,
        launcher: control.ControlSocket,
        start: control.RankStart,
        descriptors: list[int],
        endpoint_of: EndpointOf,
        notes: Notes,
    ) -> None:
        self.launcher = launcher
        self.start = start
        self.descriptors = descriptors  # those that the engine's endpoint needs
        self._endpoint_of = endpoint_of
        self._notes = notes
        self.lost: dict[int, ClusterError] = {}  # other ranks that have failed in a run that continues without them
        self._has_begun = False

    def begin(self) -> None:
        """Report READY, and return when all ranks are ready; the clock is zero at that moment."""
        self.launcher.send(control.READY)
        kind, body, _ = self.launcher.receive()
        while kind == control.LOST:
            self._lost(pickle.loads(body))
            kind, body, _ = self.launcher.receive()
        if kind == control.ABORT:
            raise pickle.loads(body)
        terms = self.start.terms
        self.endpoint = self._endpoint_of(self, pickle.loads(body))
        self.recorder = Recorder(self.endpoint.now, self.start.trace_events, calls=self._notes)
        faults = terms.faults.of(self.endpoint, self.recorder.fault, sleeps=True) if terms.faults else None
        self.communicator = world(self.endpoint, self.recorder, terms.seed, faults)
        self._has_begun = True

    def read_abort(self) -> ClusterError | None:
        """Read the launcher's frame: returns the error that ends the run on this rank.

        Returns None if the frame only reports that another rank was lost; that rank is then in `lost`.
        """
        kind, body, _ = self.launcher.receive()
        error: ClusterError = pickle.loads(body)
        if kind == control.ABORT:
            return error
        self._lost(error)
        return None

    def _lost(self, error: ClusterError) -> None:
        assert error.rank is not None
        self.lost[error.rank] = error

    def tell(self, obj: Any) -> None:
        """Send an object to the listener of `launch`, if there is one."""
        if self.start.has_listener:
            self.launcher.send(control.TELL, cloudpickle.dumps(obj, 5))

    def failure(self, error: BaseException) -> control.Failure:
        """The report of `error`, with which the program ended on this rank."""
        if not self._has_begun:
            return reports.failure(error, self.start.rank, None, None, 0.0)
        blocked = self.endpoint.blocked if isinstance(error, ClusterError) else None
        return reports.failure(
            error, self.start.rank, self.recorder, blocked, self.endpoint.now(), self.endpoint.unwaited
        )

    def last_words(self) -> None:
        """Send what this rank has recorded, because a planned fault is about to kill it."""
        self.launcher.send(control.LAST_WORDS, pickle.dumps(self.recorder.close(), 5))
