"""The rank's process: it waits for its task, becomes a rank, runs the program and reports."""

from __future__ import annotations

import contextlib
import linecache
import os
import pickle
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import cloudpickle

from minidl import kernels
from minidl.cluster.comm import Communicator, world
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines import control, report
from minidl.cluster.engines.os_process.task import contents
from minidl.cluster.engines.printed import KeptFile
from minidl.cluster.engines.processes.endpoint import ProcessEndpoint
from minidl.cluster.engines.processes.shared_page import Page
from minidl.cluster.engines.protocol import Endpoint, Pending
from minidl.cluster.engines.threads import limit_threads
from minidl.cluster.engines.whereabouts import Notes
from minidl.cluster.trace.recorder import Begun, Recorder

MAX_DESCRIPTORS = 253  # that one message can carry, by the kernel


class RankEndpoint(Endpoint, Protocol):
    """An endpoint whose rank is a process."""

    @property
    def blocked(self) -> tuple[Pending, float] | None:
        """What the program is blocked in, and since when."""
        ...

    @property
    def unwaited(self) -> Begun | None:
        """What the end of the program waits for, or was waiting for when that failed."""
        ...

    def flush(self) -> None:
        """The program has returned: see to it that the others get what was sent to them."""
        ...


EndpointOf = Callable[["Rank", float], RankEndpoint]  # given the clock's zero, by `time.perf_counter()`


def entry(link: socket.socket) -> NoReturn:
    """Where a fresh process begins; it never returns, because there is nothing in it to go back to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the launcher alone answers it
    launcher = control.ControlSocket(link)
    try:
        _, body, descriptors = launcher.receive(max_descriptors=MAX_DESCRIPTORS)
        threading.Thread(target=end_with_launcher, args=(link.fileno(),), daemon=True).start()
        run_rank(launcher, pickle.loads(body), descriptors, _process_endpoint)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(1)  # the launcher has ended, and nobody is left to be told
    os._exit(0)  # at once: finalising an interpreter that holds numba takes tenths of a second


def end_with_launcher(descriptor: int) -> None:
    """End this process when the launcher's end of the control socket closes, however busy the program is."""
    poll = select.poll()
    poll.register(descriptor, 0)  # nothing but the hang-up
    poll.poll()
    os._exit(1)


def run_rank(
    launcher: control.ControlSocket, start: control.Start, descriptors: list[int], endpoint_of: EndpointOf
) -> None:
    """Become a rank, whose endpoint `endpoint_of` makes when all are ready, run the program and report."""
    output, errors, task, notes, *peers = descriptors
    os.dup2(output, 1)
    os.dup2(errors, 2)
    process, printed = os.getpid(), KeptFile(1)
    sys.stdout = printed
    rank = Rank(launcher, start, peers, endpoint_of, Notes(notes))
    try:
        environment, sources, program_bytes = pickle.loads(contents(task, start.payload_bytes))
        for descriptor in {output, errors, task} - {1, 2}:
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(environment)
        linecache.cache.update(sources)
        limit_threads(start.threads)
        os.environ["MINIDL_KERNELS"] = start.kernels  # numba is imported when the first kernel is called, if ever
        if kernels.active() != start.kernels:
            kernels.use(start.kernels)
        program, args = cloudpickle.loads(program_bytes)
        rank.begin()
        value = program(rank.communicator, *args)
        _end_copy(process)
        seconds = rank.endpoint.now()
        rank.endpoint.flush()
        result = control.Result(report.pickled_result(value, start.rank), seconds, rank.recorder.close())
        last = control.RESULT, pickle.dumps(result, 5)
    except BaseException as error:  # SystemExit and what a program derives from BaseException count as well
        _end_copy(process)
        last = control.ERROR, pickle.dumps(rank.failure(error), 5)
    for stream in (printed, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # the program may have closed it, or put None
            stream.flush()
    launcher.send(*last)


def _end_copy(process: int) -> None:
    """End this process if it is a copy of the rank's process that the program has made by os.fork."""
    if os.getpid() != process:
        os._exit(1)


class Rank:
    """What a rank has at hand; before `begin`, only what is needed to report a failure."""

    endpoint: RankEndpoint
    recorder: Recorder
    communicator: Communicator

    def __init__(
        self,
        launcher: control.ControlSocket,
        start: control.Start,
        peers: list[int],
        endpoint_of: EndpointOf,
        notes: Notes,
    ) -> None:
        self.launcher = launcher
        self.start = start
        self.peers = peers  # descriptors of the sockets to the other ranks, in their order
        self._endpoint_of = endpoint_of
        self._notes = notes
        self.lost: dict[int, ClusterError] = {}  # the other ranks that have failed while the run goes on
        self._has_begun = False

    def begin(self) -> None:
        """Report ready, and return when all ranks are: the time of that moment is zero of the clock."""
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
        """What the launcher says when its socket is readable: the error that ends the run here.

        None if the run goes on without another rank, which is then in `lost`.
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
        """Hand an object to the listener, if there is one."""
        if self.start.has_listener:
            self.launcher.send(control.TOLD, cloudpickle.dumps(obj, 5))

    def failure(self, error: BaseException) -> control.Failure:
        """What there is to say about `error`, on which the program of this rank has ended."""
        if not self._has_begun:
            return report.failure(error, self.start.rank, None, None, 0.0)
        blocked = self.endpoint.blocked if isinstance(error, ClusterError) else None
        return report.failure(
            error, self.start.rank, self.recorder, blocked, self.endpoint.now(), self.endpoint.unwaited
        )

    def last_words(self) -> None:
        """Report what was recorded, because this rank is about to die on purpose."""
        self.launcher.send(control.LAST_WORDS, pickle.dumps(self.recorder.close(), 5))


def _process_endpoint(rank: Rank, origin: float) -> RankEndpoint:
    others = [peer for peer in range(rank.start.terms.nodes) if peer != rank.start.rank]
    *peers, memory, page = rank.peers
    faults = rank.start.terms.faults
    return ProcessEndpoint(
        rank.start.rank,
        {peer: socket.socket(fileno=descriptor) for peer, descriptor in zip(others, peers, strict=True)},
        control=rank.launcher.socket.fileno(),
        read_control=rank.read_abort,
        timeout=rank.start.terms.timeout,
        origin=origin,
        network=rank.start.terms.network,
        memory=memory,
        page=Page(page, rank.start.terms.nodes),
        lost=rank.lost,
        tell=rank.tell,
        last_words=rank.last_words,
        may_share=faults is None or not faults.spoils_messages,
    )
