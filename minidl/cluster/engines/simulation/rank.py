"""One simulated rank: it unpickles the program, runs it in a context of its own, and pickles the result."""

from __future__ import annotations

import contextvars
from functools import partial

import cloudpickle

from minidl import kernels
from minidl.cluster import comm
from minidl.cluster.call_site import caller
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines import reports
from minidl.cluster.engines.control import Failure
from minidl.cluster.engines.pickled import pickled_result
from minidl.cluster.engines.position import Position
from minidl.cluster.engines.simulation.endpoint import SimulatedEndpoint
from minidl.cluster.engines.simulation.node import Core, Node
from minidl.cluster.engines.simulation.process_wide import keep
from minidl.cluster.engines.simulation.task import SimulatedTask
from minidl.cluster.engines.simulation.world import SimulatedWorld
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.trace.recording import Recording
from minidl.kernels import counting


class SimulatedRank:
    """One rank, as the engine sees it; ambient state (generators, kernels, output) lives in its own context."""

    def __init__(self, number: int, world: SimulatedWorld, node: Node | None, events: int, kernels_in_use: str) -> None:
        self.number = number
        self.result: bytes | None = None
        self.seconds = 0.0
        self.failure: Failure | None = None
        self.recording: Recording | None = None
        self.position: Position | None = None  # of a rank that a planned fault has killed or stopped
        self._world = world
        self._scheduler = world.scheduler
        self._context = contextvars.Context()
        self._output = keep(self._context)
        self._sealed: str | None = None
        self._kernels = kernels_in_use
        terms = world.terms
        core = Core(node, number, terms.faults.slowdown(number) if terms.faults else 1.0, terms.seed)
        self._task = SimulatedTask(number, 0)
        self._endpoint = SimulatedEndpoint(number, world, core, self._task, self._context, node is not None)
        self._events = events
        self._recorder: Recorder | None = None
        world.seals.append(self.seal)

    def begin(self, packed: bytes) -> None:
        """Let the rank's program begin at its first turn."""
        self._scheduler.begin(self._task, lambda: self._play(packed), self._context)

    def _play(self, packed: bytes) -> None:
        try:
            if kernels.active() != self._kernels:
                kernels.use(self._kernels)
            program, args = cloudpickle.loads(packed)
            value = program(self._communicator(), *args)
            self._endpoint.finish_helpers()
            self.seconds = self._endpoint.clock()
            self._scheduler.turn()
            self._world.ends(self.number)
            self.result = pickled_result(value, self.number)
            self.recording = self._close()
        except BaseException as error:  # SystemExit too, and what a program derives from BaseException
            if not self._task.is_gone:
                self._fail(self._first(error))
        else:
            self._world.has_returned(self.number)

    def _communicator(self) -> comm.Communicator:
        if self._endpoint.counts:
            counting.start()
        clock = self._endpoint.clock if self._endpoint.counts else partial(getattr, self._scheduler, "time")
        recorder = self._recorder = Recorder(clock, self._events)
        plan = self._world.terms.faults
        faults = plan.of(self._endpoint, recorder.fault, sleeps=False) if plan else None
        return comm.world(self._endpoint, recorder, self._world.terms.seed, faults)

    def _first(self, error: BaseException) -> BaseException:
        """Return the error, or the run's failure if another rank has failed before."""
        try:
            self._world.ends()
        except ClusterError as earlier:
            return earlier
        return error

    def _fail(self, error: BaseException) -> None:
        blocked = self._endpoint.blocked() if isinstance(error, ClusterError) else None
        now = self._scheduler.time
        self.failure = reports.failure(error, self.number, self._recorder, blocked, now, self._endpoint.unwaited)
        self.recording = self.failure.recording
        self._world.has_failed(self.number, self.failure.summary, error)

    def seal(self) -> None:
        """Keep what this rank has recorded and printed so far, because it is about to die or to stop."""
        self.recording = self._close()
        self._sealed = self._output.getvalue()
        if self._recorder is not None and self._recorder.operation is not None:
            operation, call = self._recorder.operation, self._recorder.call
            self.position = Position(operation, call, caller().place, is_inside=True)

    def _close(self) -> Recording | None:
        return self._recorder.close() if self._recorder else None

    def printed(self) -> str:
        """The output of the program."""
        return self._output.getvalue() if self._sealed is None else self._sealed
