"""What the ranks of a simulation share, and what happens to the run when a rank fails, dies or waits forever."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, TextIO

import cloudpickle
import numpy as np
from greenlet import getcurrent  # type: ignore[import-untyped]

from minidl.cluster.cost.memory import Memory
from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.errors import (
    ClusterError,
    CollectiveMismatch,
    CommTimeout,
    Deadlock,
    RankFailed,
    can_never_complete,
    deadlock_of,
)
from minidl.cluster.diagnosis.fingerprints import FingerprintTable
from minidl.cluster.engines.protocol import COLLECTIVE, Array, LaunchTerms, Pending
from minidl.cluster.engines.reports import deadline_text
from minidl.cluster.engines.shared_arrays import check_equal
from minidl.cluster.engines.simulation.batched.meeting import Meeting, Meetings
from minidl.cluster.engines.simulation.flows import Flows
from minidl.cluster.engines.simulation.message import Receive, Send, Unmatched
from minidl.cluster.engines.simulation.ports import Ports, Transport
from minidl.cluster.engines.simulation.scheduler import Scheduler
from minidl.cluster.engines.simulation.task import Blocked, SimulatedTask


def transport_over(network: Network | None, nodes: int) -> Transport:
    """The model of the network; without a network, messages cost nothing."""
    if network is None:
        return Ports(nodes, 0.0, 0.0)
    return Flows(network.topology) if network.topology else Ports(nodes, network.alpha, network.beta)


def _all_arrives(terms: LaunchTerms) -> bool:
    """Whether no planned fault ends a rank or spoils a message, and the run ends when a rank fails."""
    return terms.on_failure == "raise" and not (terms.faults and terms.faults.faults)


class SimulatedWorld:
    """The clock, the network, the fingerprints of collectives, and which ranks have ended. It directs the scheduler.

    memory        two tiers in every node, or None
    ends_at       the deadline, by time.monotonic()
    batched       whether collectives of many messages are played at once, where the outcome is the same
    call_outside  calls a function in the launcher's context, outside of all ranks
    stdout        takes the place of sys.stdout while ranks run
    """

    def __init__(
        self,
        terms: LaunchTerms,
        memory: Memory | None,
        batched: bool,
        ends_at: float,
        call_outside: Callable[..., None],
        stdout: TextIO,
    ) -> None:
        self.terms = terms
        self.nodes = terms.nodes
        self.network = terms.network
        self.memory = memory
        self.transport = transport_over(terms.network, terms.nodes)
        self.scheduler = Scheduler(self.transport, terms.timeout, ends_at, self, self.deliver, stdout)
        self.unmatched = [Unmatched() for _ in range(terms.nodes)]
        self.unmatched_sends = [0] * terms.nodes  # by the rank that sends
        self.returned: set[int] = set()
        self.meetings: Meetings | None = None
        self._dissolve: Callable[[], None] | None = None  # what `main` does, because here a rank's stack is in the way
        if batched and terms.network is not None and isinstance(self.transport, Ports) and _all_arrives(terms):
            network, timeout = terms.network, terms.timeout
            self.meetings = Meetings(self.scheduler, self.transport, network, timeout, self.returned)
        self.seals: list[Callable[[], None]] = []  # by rank: keeps what it has recorded and printed so far
        self.fingerprints = FingerprintTable()
        self.ended = 0  # how many ranks have returned or failed
        self.failed: dict[int, str] = {}  # by rank: why, in a line
        self.failed_at: dict[int, float] = {}
        self.blocked = Blocked()
        self._given_up: dict[tuple[int, int], int] = {}  # by rank, tag: the rank whose failure ended it
        self.culprit: int | None = None  # whose failure has ended the run
        self.deadlock = ""
        self.is_late = False
        self._has_overrun = False
        self.overran: int | None = None  # the rank that was running when the deadline had passed
        self.interruption: BaseException | None = None  # from outside the ranks: Ctrl-C, or an error of the listener
        self._call_outside = call_outside
        self.stopped: set[int] = set()
        self._shared: dict[str, Array] = {}

    def deliver(self, send: Send) -> None:
        """A transfer has ended: the receive takes the message, and the tasks that waited for it continue."""
        receive = send.receive
        assert receive is not None
        receive.take(send)
        woken, waiter = self.scheduler.woken, receive.waiter
        if waiter is not None:
            if waiter.is_blocked:
                waiter.is_blocked = False
                woken.append(waiter)
            elif waiter.works_until is receive:
                self.scheduler.interrupt(waiter)
        if not send.done:
            send.done, waiter = True, send.waiter
            if waiter is not None and waiter.is_blocked:
                waiter.is_blocked = False
                woken.append(waiter)

    @property
    def has_shared_arrays(self) -> bool:
        return bool(self._shared)

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The array of that name; initially zeros."""
        if dtype.hasobject:
            raise TypeError(f"an array of dtype {dtype} holds references, which mean nothing on another rank")
        array = self._shared.setdefault(name, np.zeros(shape, dtype))
        check_equal(array, name, shape, dtype)
        return array

    def tell(self, rank: int, obj: Any) -> None:
        """Call the listener with a copy of the object; an error in the listener ends the run."""
        if self.terms.listener is None:
            return
        copied = cloudpickle.loads(cloudpickle.dumps(obj, 5))
        try:
            self._call_outside(self.terms.listener, rank, copied)
        except BaseException as error:
            self.interrupt(error)
            self.scheduler.turn()  # raises

    # How ranks end

    def ends(self, rank: int | None = None) -> None:
        """Dissolve the meetings of a rank that is about to return; None: all, because a rank is about to fail.

        If a rank that met fails in the messages that it sends now, the run has failed earlier; raises that failure.
        """
        if self.meetings is not None and self.scheduler.failure is None:
            self.meetings.dissolve_all(rank)

    def has_returned(self, rank: int) -> None:
        """The rank's program has returned: tasks that wait for a message from it may wait in vain now."""
        self._count_end()
        self.returned.add(rank)
        self._wake_those_that_need(rank)

    def has_failed(self, rank: int, why: str, error: BaseException | None = None) -> None:
        """The rank has failed: end the run or, with on_failure="continue", the operations that need the rank."""
        self._count_end()
        self.failed[rank], self.failed_at[rank] = why, self.scheduler.time
        if isinstance(error, KeyboardInterrupt):
            self.interrupt(error)
        elif self.terms.on_failure == "raise":
            if self.scheduler.failure is None:
                self.culprit = rank
                shared = (kind for kind in (CollectiveMismatch, Deadlock) if isinstance(error, kind))
                at_fault = error.rank if isinstance(error, Deadlock) else rank
                self.scheduler.end(next(shared, RankFailed)(f"rank {rank} failed: {why}", rank=at_fault))
        else:
            for unmatched in self.unmatched:
                unmatched.forget(rank)
            self.unmatched[rank].receives.clear()
            self._wake_those_that_need(rank)

    def _count_end(self) -> None:
        self.ended += 1
        if self.ended == 1:
            for task in self.scheduler.tasks:
                if task.is_blocked and isinstance(task.waiting, Send | Receive):
                    self.blocked.add(task, task.waiting.peer)

    def die(self, rank: int) -> None:
        """End the rank like a crash: at once, with its helpers; does not return."""
        self._park(rank)
        self.has_failed(rank, "the rank was killed (a planned fault)")
        self.scheduler.switch()

    def freeze(self, rank: int) -> None:
        """Stop the rank for good; does not return."""
        self._park(rank)
        self.stopped.add(rank)
        self.scheduler.has_stopped = True
        self.scheduler.switch()

    def interrupt(self, error: BaseException) -> None:
        """End the run for a reason outside its ranks; the caller of `launch` gets this error."""
        self.interruption = self.interruption or error
        self.scheduler.end(RankFailed(f"the run was ended in the launching process by {type(error).__name__}"))

    def _park(self, rank: int) -> None:
        """Give its tasks no further turn; what it has recorded and printed so far is kept."""
        self.seals[rank]()
        for task in self.scheduler.tasks:
            if task.rank == rank:
                task.is_gone, task.is_usual = True, False

    # Operations that can never complete

    def error_of(self, pending: Pending) -> ClusterError | None:
        """The error of an operation that can never complete, because the ranks that it needs have ended; else None."""
        me = self.scheduler.running.rank
        error = self._error_of(pending, me)
        if self._give_up(me, pending, error):
            self._wake_those_that_need(me)
        return error

    def cannot_complete(self, pending: Pending, rank: int) -> bool:
        """Whether `rank` would get that error if it waited for the operation."""
        return self.ended > 0 and self._error_of(pending, rank) is not None

    def lost(self, pending: Pending, rank: int) -> RankFailed:
        """The error of a send to a rank that has failed."""
        text = f"{pending} can never complete: rank {rank} failed: {self.failed[rank]}"
        error, me = RankFailed(text, rank=rank), self.scheduler.running.rank
        if self._give_up(me, pending, error):
            self._wake_those_that_need(me)
        return error

    def _error_of(self, pending: Pending, me: int) -> ClusterError | None:
        if not isinstance(pending, Send | Receive) or pending.peer_posted is not None:
            return None
        peers = {pending.peer} if isinstance(pending.peer, int) else set(pending.peer)
        peers = peers - {me} or peers
        given_up = {peer: self._given_up[peer, pending.tag] for peer in peers if (peer, pending.tag) in self._given_up}
        if not all(peer in self.failed or peer in self.returned or peer in given_up for peer in peers):
            return None
        failed = [peer for peer in peers if peer in self.failed]
        return can_never_complete(
            pending, peers, failed, given_up, lambda rank: f"rank {rank} failed: {self.failed[rank]}"
        )

    def _give_up(self, rank: int, pending: Pending, error: ClusterError | None) -> bool:
        """Whether the error ends a collective on this rank; the ranks that need it there cannot continue either."""
        if not isinstance(error, RankFailed) or error.rank is None or not pending.tag & COLLECTIVE:
            return False
        self._given_up[rank, pending.tag] = error.rank
        return True

    def _wake_those_that_need(self, rank: int) -> None:
        """Wake the tasks that wait for this rank in vain, then those that wait for a rank that therefore gives up."""
        lost = [rank]
        for gone in lost:  # grows as it goes
            for task in self.blocked.on(gone):
                assert task.waiting is not None
                error = self._error_of(task.waiting, task.rank)
                if error is not None:
                    if self._give_up(task.rank, task.waiting, error):
                        lost.append(task.rank)
                    self.scheduler.unblock(task, error)

    # Called by the scheduler

    def goes_on(self) -> bool:
        """Whether a rank has not ended."""
        dissolve, self._dissolve = self._dissolve, None
        if dissolve is not None:
            dissolve()
        return self.ended < self.nodes

    def stuck(self) -> None:
        """Every rank that has not ended is blocked or has stopped, and no message is under way: a deadlock."""
        if self.meetings is not None and self.meetings.are_open():
            self._dissolve = self.meetings.dissolve_all
            self.scheduler.give_way()
            return
        if self.ended == self.nodes:  # a planned fault killed or stopped the last one in its turn
            self.scheduler.give_way()
            return
        blocked = self.scheduler.blocked()
        if not blocked:
            for rank in sorted(self.stopped):
                self.has_failed(rank, "the rank has stopped for good (a planned fault)")
            return
        ranks = sorted({task.rank for task in blocked})
        self.deadlock = str(deadlock_of(ranks))
        for task in blocked:
            self.scheduler.unblock(task, deadlock_of(ranks))
        if self.terms.on_failure == "raise":
            self.scheduler.end(deadlock_of(ranks))

    def overdue(self, task: SimulatedTask) -> None:
        if self.meetings is not None and isinstance(task.waiting, Meeting):
            self._dissolve = partial(self.meetings.dissolve, task.waiting)
            self.scheduler.give_way()
            return
        text = f"{task.waiting} did not complete within {self.terms.timeout:g} s of virtual time"
        self.scheduler.unblock(task, CommTimeout(text))

    def late(self) -> None:
        self.is_late = True
        self.scheduler.end(RankFailed(deadline_text(self.terms.deadline)))

    def overrun(self) -> bool:
        """The deadline has passed; returns whether a rank is running that does not end by itself."""
        running, is_ending, self._has_overrun = self.scheduler.running, self._has_overrun, True
        if self.scheduler.failure is None:
            if running.greenlet is getcurrent() and running is not self.scheduler.main:
                self.overran = running.rank
            self.late()
            is_ending = True
        return is_ending

    # The end

    def close(self) -> None:
        """Raise the run's failure in every task that has not ended."""
        failure = self.scheduler.failure or RankFailed("the run has ended")
        if self.meetings is not None and self.interruption is None:
            self.meetings.cut_off()
        for task in sorted(self.scheduler.tasks, key=lambda task: (task.is_gone, task.order)):
            if task.greenlet.dead:
                continue
            if task.is_gone or not task.greenlet:
                task.greenlet.throw()
            else:
                self.scheduler.throw(task, task.error or copy.copy(failure))
