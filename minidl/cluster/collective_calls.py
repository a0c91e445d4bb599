"""How a communicator runs a collective: it posts a fingerprint, then does the work at once or concurrently."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from minidl.cluster.channel import Channel
from minidl.cluster.diagnosis.call_site import Site, call_site
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.messages import Messages
from minidl.cluster.rank import Rank
from minidl.cluster.tensors import refuse_tensors
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.work import Work


class CollectiveCalls(Messages):
    """Numbers the collective calls of a group and runs them."""

    def __init__(self, owner: Rank, ranks: tuple[int, ...], group: int, axis: str) -> None:
        super().__init__(owner, ranks, group, axis)
        self._calls = itertools.count()
        self._first_tag = self._whole_tag(0, is_collective=True)  # of this group's collectives

    def _collective(
        self,
        work: Callable[[Channel], Any],
        fingerprint: Fingerprint,
        async_op: bool = False,
        reads: Any = None,
        writes: Any = None,
    ) -> Any:
        """Post the fingerprint of a collective and do its work: now, or concurrently with the program."""
        owner, operation = self._owner, fingerprint.operation
        refuse_tensors(operation, reads, writes)
        if owner.in_flight.uses:
            owner.in_flight.check(operation, reads, writes)
        owner.enter(operation, self.axis)
        call, site = self._post(fingerprint)
        tag = self._first_tag + call
        if not async_op:
            result = work(Channel(owner, owner.recorder, self._ranks, self.rank, tag))
            owner.leave()
            return result
        pending = self._start(operation, lambda lane: work(Channel(owner, lane, self._ranks, self.rank, tag)))
        owner.in_flight.begin(pending, operation, site.place, reads, writes)
        owner.leave()
        return Work(owner, operation, pending, self._finish_concurrent, self.axis)

    def _post(self, fingerprint: Fingerprint) -> tuple[int, Site]:
        """Post the fingerprint of this group's next call; returns the call's number and its place in the program."""
        call, site = next(self._calls), call_site()
        self._owner.endpoint.post_fingerprint(self._group, self._ranks, call, fingerprint, site)
        return call, site

    def _lane(self) -> Recorder:
        """The recorder of what this group does concurrently with the program."""
        return self._owner.recorder.lane(self._owner.lane_of(self._group))

    def _start(self, operation: str, work: Callable[[Recorder], Any]) -> Pending:
        """Let a helper of this rank do the work of the present call, recorded in the lane of this group."""
        owner, number, lane = self._owner, self._owner.recorder.call, self._lane()

        def in_lane() -> Any:
            lane.begin(operation, number, self.axis)
            result = work(lane)
            lane.leave()
            return result

        return owner.endpoint.start(in_lane, owner.lane_of(self._group))

    def _finish_concurrent(self, pending: Pending) -> None:
        self._owner.endpoint.wait(pending)
        self._owner.recorder.waited()
