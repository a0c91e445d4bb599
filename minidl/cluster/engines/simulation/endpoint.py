"""A simulated rank's end of the network: it matches sends with receives, and charges work to the virtual clock."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, NoReturn

import numpy as np

from minidl.cluster.call_site import Site
from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.engines.protocol import EAGER_BYTES, Array, CollectiveCall, Concurrent, Peer, Pending
from minidl.cluster.engines.simulation.batched.plans import PLANS
from minidl.cluster.engines.simulation.message import ARRAY, Receive, Send
from minidl.cluster.engines.simulation.node import Core
from minidl.cluster.engines.simulation.task import Awaited, SimulatedTask
from minidl.cluster.engines.simulation.world import SimulatedWorld
from minidl.cluster.trace.recorder import ConcurrentCall, Recorder
from minidl.kernels import counting

LOOK_SECONDS = 1e-6  # virtual time of asking whether an operation is done, so that a polling loop ends


class SimulatedEndpoint:
    """The endpoint of one simulated rank; implements Endpoint. All ranks share the `world`.

    A call takes effect at the rank's turn (see `scheduler.py`). While the rank has not worked since its last turn, the
    scheduler's `time` equals `now`, and the turn still lasts.
    """

    def __init__(
        self,
        rank: int,
        world: SimulatedWorld,
        core: Core,
        program: SimulatedTask,
        context: contextvars.Context,
        counts: bool,
    ) -> None:
        self.rank = rank
        self.size = world.nodes
        self.network: Network | None = world.network
        self.memory = world.memory
        self.counts = counts  # whether the work of kernels is counted and takes time
        self._program = program
        self._context = context
        self._world = world
        self._scheduler = world.scheduler
        self._gamma = world.network.gamma if world.network else 0.0
        self._core = core
        self._core_is_taken_until = 0.0  # by the helpers
        self._link_is_taken_until = [0.0, 0.0]  # to the host, and to the device
        self._lanes: dict[int, list[SimulatedHelper]] = {}
        self._failed: list[SimulatedHelper] = []
        self._are_abandoned = False  # whether the errors of helpers are dropped
        self.unwaited: ConcurrentCall | None = None  # the operation that the end of the program waits for
        self._ready = world.transport.ready
        self._unmatched_of = world.unmatched
        self._unmatched = world.unmatched[rank]

    # Messages

    def post_send(self, payload: Any, dst: int, tag: int, synchronous: bool = False) -> Pending:
        scheduler = self._scheduler
        if scheduler.time > scheduler.now:
            scheduler.turn()
        send = Send(payload, self.rank, dst, tag, scheduler.time, not synchronous)
        if not synchronous and send.nbytes <= EAGER_BYTES:
            send.done = True
        unmatched = self._unmatched_of[dst]
        receives = unmatched.receives.get(tag)
        if receives is not None:
            index = 0 if receives[0].peer == self.rank else _first_for(self.rank, receives)
            if index >= 0:
                receive = receives.pop(index)
                if not receives:
                    del unmatched.receives[tag]
                self._match(send, receive)
                return send
        if dst in self._world.failed:
            raise self._world.lost(send, dst)
        self._world.unmatched_sends[self.rank] += 1
        sends = unmatched.sends.get(tag)
        if sends is None:
            unmatched.sends[tag] = [send]
        else:
            sends.append(send)
        return send

    def post_receive(self, src: Peer, tag: int, out: Array | None = None) -> Pending:
        scheduler = self._scheduler
        if scheduler.time > scheduler.now:
            scheduler.turn()
        receive = Receive(src, tag, out, scheduler.time)
        unmatched = self._unmatched
        sends = unmatched.sends.get(tag)
        if sends is not None:
            index = 0 if sends[0].src == src else _first_from(src, sends)
            if index >= 0:
                send = sends.pop(index)
                if not sends:
                    del unmatched.sends[tag]
                self._world.unmatched_sends[send.src] -= 1
                self._match(send, receive)
                return receive
        receives = unmatched.receives.get(tag)
        if receives is None:
            unmatched.receives[tag] = [receive]
        else:
            receives.append(receive)
        return receive

    def _match(self, send: Send, receive: Receive) -> None:
        """Join the two halves of a message and start its transfer; a message to itself is delivered at once."""
        send.receive = receive
        send.peer_posted = receive.posted
        receive.source = send.src
        receive.peer_posted = send.posted
        if send.src == send.dst:
            self._world.deliver(send)
        else:
            self._ready(send, self._scheduler.now)

    def wait(self, pending: Pending) -> None:
        scheduler = self._scheduler
        if scheduler.time > scheduler.now:
            scheduler.turn()
        if not pending.done:
            assert isinstance(pending, Awaited)
            if get_ident() != scheduler.thread:
                scheduler.check_thread()
            task = scheduler.running
            task.waiting, task.since = pending, scheduler.time
            world = self._world
            if world.ended:
                if (impossible := world.error_of(pending)) is not None:
                    raise impossible
                world.blocked.add(task, pending.peer)
            pending.waiter, task.is_blocked = task, True
            scheduler.switch()
            if world.ended:
                world.blocked.remove(task, pending.peer)
            if task.error is not None:
                pending.waiter = None  # if it is done later, the task is in another operation
                error, task.error = task.error, None
                raise error
        if type(pending) is Receive:
            if pending.form != ARRAY:
                pending.unpack()
        elif type(pending) is SimulatedHelper and pending.error is not None:
            error, pending.error = pending.error, None
            raise error

    # Helpers

    def start(self, work: Callable[[], Any], lane: int) -> Pending:
        scheduler = self._scheduler
        if scheduler.time > scheduler.now:
            scheduler.turn()
        helper = SimulatedHelper(self.rank, lane, scheduler.time, work)
        queue = self._lanes.setdefault(lane, [])
        queue.append(helper)
        if len(queue) == 1:
            self._begin(helper)
        return helper

    def _begin(self, helper: SimulatedHelper) -> None:
        helper.task = SimulatedTask(self.rank, helper.tag)
        self._scheduler.begin(helper.task, lambda: self._help(helper), self._context)

    def _help(self, helper: SimulatedHelper) -> None:
        try:
            helper.payload = helper.work()
            self._scheduler.turn()
        except BaseException as error:  # raised where the program waits for it, at the latest at the program's end
            helper.error = error
            self._failed.append(helper)
        helper.done = True
        if self._scheduler.failure is not None:
            return
        if helper.waiter is not None:
            self._scheduler.unblock(helper.waiter)
        queue = self._lanes[helper.tag]
        queue.pop(0)
        if queue:
            self._begin(queue[0])

    def blocked(self) -> tuple[Pending, float] | None:
        """The operation that the program, or the helper it waits for, is blocked in or failed in, and since when."""
        task = self._program
        if isinstance(task.waiting, SimulatedHelper):
            helper = task.waiting if task.waiting.task is not None else self._lanes[task.waiting.tag][0]
            assert helper.task is not None
            task = helper.task
        waiting = task.waiting
        return None if waiting is None or waiting.done else (waiting, task.since)

    def finish_helpers(self) -> None:
        """Return when all helpers have finished; raises an error of a helper that the program has not waited for.

        If they are abandoned, it returns at the first error.
        """
        try:
            for queue in self._lanes.values():
                while queue:
                    self.unwaited = queue[0].concurrent_call
                    self.wait(queue[0])
            for helper in self._failed:
                self.unwaited = helper.concurrent_call
                self.wait(helper)
        except ClusterError:
            if not self._are_abandoned:
                raise
        self.unwaited = None

    def abandon_helpers(self) -> None:
        self._are_abandoned = True

    # Work and time

    def charge(
        self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0, until: Pending | None = None
    ) -> None:
        if until is None:
            self._work(self._core.seconds(seconds, flops, nbytes))
            self._scheduler.turn()
            return
        assert isinstance(until, Receive)
        self.clock()
        self._work(self._core.seconds(seconds, flops, nbytes))
        self._scheduler.turn_until(until)

    def charge_reduction(self, nbytes: int) -> None:
        if self._gamma:
            self._work(self._core.factor * self._gamma * nbytes)

    def _work(self, seconds: float) -> None:
        """The running task uses the core for `seconds`; while a helper uses it, the program's work is delayed."""
        if not seconds:
            return
        scheduler = self._scheduler
        if scheduler.running.on_host:
            scheduler.time += seconds / (self.memory.host if self.memory else 1.0)
            return
        begin = max(scheduler.time, self._core_is_taken_until)
        scheduler.time = begin + seconds
        if scheduler.running.lane:
            self._core_is_taken_until = scheduler.time
            if self._program.until > begin:
                self._program.debt += seconds

    def clock(self) -> float:
        """The time of the running task, after the work of its kernels has been charged."""
        if self.counts:
            work = counting.take()
            if work.flops or work.nbytes:
                self._work(self._core.seconds(0.0, work.flops, work.nbytes))
        return self._scheduler.time

    def transfer(self, nbytes: int, is_fetch: bool) -> float:
        self.now()
        assert self.memory is not None
        begin = max(self._scheduler.time, self._link_is_taken_until[is_fetch])
        self._scheduler.time = self._link_is_taken_until[is_fetch] = begin + self.memory.time(nbytes)
        self._scheduler.turn()
        return begin

    @contextmanager
    def on_host(self) -> Iterator[None]:
        self.clock()
        task = self._scheduler.running
        task.on_host = True
        try:
            yield
            self.now()
        finally:
            task.on_host = False

    def now(self) -> float:
        self.clock()
        self._scheduler.turn()
        return self._scheduler.time

    # The rest

    def is_done(self, pending: Pending) -> bool:
        if not pending.done:
            self._work(LOOK_SECONDS)
            self._scheduler.turn()
        return pending.done

    def cannot_complete(self, pending: Pending) -> bool:
        return not pending.done and self._world.cannot_complete(pending, self.rank)

    def peek(self, pending: Pending) -> bool:
        return pending.done

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int, recorder: Recorder) -> bool:
        return False

    def play(self, call: CollectiveCall, by_messages: Callable[[], Any]) -> Any:
        meetings, plan = self._world.meetings, PLANS.get(call.algorithm)
        if meetings is None or plan is None or len(call.ranks) < plan.least:
            return by_messages()
        if self._scheduler.time > self._scheduler.now:
            self._scheduler.turn()
        return meetings.play(call, by_messages, self._core.factor * self._gamma, self._is_free())

    def _is_free(self) -> bool:
        """Whether the program is the caller, all that this rank has posted is matched, and it shares no memory."""
        return (
            self._scheduler.running is self._program
            and not any(self._lanes.values())
            and not self._unmatched.receives
            and not self._world.unmatched_sends[self.rank]
            and not self._world.has_shared_arrays
        )

    def post_fingerprint(
        self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint, site: Site
    ) -> None:
        if self._scheduler.time > self._scheduler.now:
            self._scheduler.turn()
        self._world.fingerprints.post(self.rank, group, ranks, call, fingerprint, site)

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        self._scheduler.turn()
        return self._world.shared_array(name, shape, dtype)

    def tell(self, obj: Any) -> None:
        self._scheduler.turn()
        self._world.tell(self.rank, obj)

    def die(self) -> NoReturn:
        self._scheduler.turn()
        self._world.die(self.rank)
        raise AssertionError("a dead rank goes on")

    def freeze(self) -> NoReturn:
        self._scheduler.turn()
        self._world.freeze(self.rank)
        raise AssertionError("a stopped rank goes on")


def _first_for(src: int, receives: list[Receive]) -> int:
    """The index of the first receive that takes messages from rank `src`; -1 if there is none."""
    takes = (
        receive.peer == src or (isinstance(receive.peer, frozenset) and src in receive.peer) for receive in receives
    )
    return next((index for index, does in enumerate(takes) if does), -1)


def _first_from(src: Peer, sends: list[Send]) -> int:
    """The index of the first send from rank `src`, or from one rank of the set `src`; -1 if there is none."""
    ranks = src if isinstance(src, frozenset) else (src,)
    return next((index for index, send in enumerate(sends) if send.src in ranks), -1)


class SimulatedHelper(Awaited, Concurrent):
    """Work of a helper, concurrent with the program; `tag` is its lane, `task` does it once it has begun."""

    __slots__ = ("concurrent_call", "error", "task", "work")

    def __init__(self, rank: int, lane: int, posted: float, work: Callable[[], Any]) -> None:
        super().__init__("helper", rank, lane, posted)
        self.concurrent_call: ConcurrentCall | None = None
        self.work = work
        self.task: SimulatedTask | None = None
        self.error: BaseException | None = None
        self.waiter = None
