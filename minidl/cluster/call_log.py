"""The collective calls of one group: each is numbered, posted as a fingerprint, and run at once or concurrently."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from minidl.cluster.call_site import Site, call_site
from minidl.cluster.channel import Channel
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.group import RankGroup
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.work import Work


class CallLog:
    """Numbers the collective calls of a group, and runs them.

    owner    this rank
    group    the group whose ranks make the calls
    numbers  numbers of the next calls; background work and its program share them
    """

    def __init__(self, owner: Rank, group: RankGroup, numbers: Iterator[int] | None = None) -> None:
        self._owner = owner
        self._group = group
        self.numbers = itertools.count() if numbers is None else numbers

    def run(
        self,
        work: Callable[[Channel], Any],
        fingerprint: Fingerprint,
        axis: str,
        async_op: bool = False,
        reads: Any = None,
        writes: Any = None,
    ) -> Any:
        """Post the fingerprint of a collective and do its work: now, or concurrently with the program."""
        owner, group, operation = self._owner, self._group, fingerprint.operation
        site = call_site()
        owner.enter(operation, axis, reads, writes, site=site)
        tag = group.first_call + self.post(fingerprint, site)
        if not async_op:
            result = work(Channel(owner, owner.recorder, group.ranks, group.rank, tag))
            owner.leave()
            return result
        begun = self.start(operation, axis, lambda lane: work(Channel(owner, lane, group.ranks, group.rank, tag)))
        owner.in_flight.begin(begun.pending, operation, site.place, reads, writes)
        owner.leave()
        return begun

    def post(self, fingerprint: Fingerprint, site: Site) -> int:
        """Post the fingerprint of the group's next call, made at `site`; returns the call's number."""
        call, group = next(self.numbers), self._group
        self._owner.endpoint.post_fingerprint(group.number, group.ranks, call, fingerprint, site)
        return call

    def lane(self) -> Recorder:
        """The recorder of this group's operations that run concurrently with the program."""
        return self._owner.recorder.lane(self._owner.lane_of(self._group.number))

    def start(self, operation: str, axis: str, work: Callable[[Recorder], Any]) -> Work:
        """Run the work of the present call on a helper of this rank, and record it in the lane of this group."""
        owner, number, lane = self._owner, self._owner.recorder.call, self.lane()

        def in_lane() -> Any:
            lane.begin(operation, number, axis)
            result = work(lane)
            lane.leave()
            return result

        pending = owner.endpoint.start(in_lane, owner.lane_of(self._group.number))
        return Work(owner, operation, pending, self._finish, axis)

    def _finish(self, pending: Pending) -> None:
        self._owner.endpoint.wait(pending)
        self._owner.recorder.waited()
