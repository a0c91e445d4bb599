"""The other ranks as one rank sees them: which have ended or failed, and which operations can never complete."""

from __future__ import annotations

from collections.abc import Mapping

from minidl.cluster.diagnosis.errors import ClusterError, awaits_itself, can_never_complete
from minidl.cluster.engines.protocol import Pending


class Peers:
    """The other ranks, as `rank` sees them; `failed` has those that failed in a run that continues without them."""

    def __init__(self, rank: int, failed: Mapping[int, ClusterError]) -> None:
        self._rank = rank
        self._alone = (rank, frozenset((rank,)))
        self.failed = failed
        self.ended: set[int] = set()  # returned from the program; everything they sent has arrived
        self.vanished: set[int] = set()  # their sockets closed without a goodbye; the launcher reports why
        self.abandoned: dict[tuple[int, int], int] = {}  # by peer, tag: the rank whose failure ended it

    def awaited(self, operation: Pending) -> set[int]:
        """The ranks that may still complete the operation; this rank itself only if no other is asked."""
        peers = self._asked(operation)
        return peers - self.ended - self._failed(operation, peers) - self._given_up(operation, peers).keys()

    def cannot_complete(self, operation: Pending) -> bool:
        """Whether no other rank can complete the operation; False for a message from this rank itself."""
        if operation.peer in self._alone:
            return False
        try:
            self.check_completable(operation)
        except ClusterError:
            return True
        return False

    def check_completable(self, operation: Pending) -> None:
        """Raise Deadlock or RankFailed if no other rank can complete the operation."""
        if not (self.ended or self.failed or self.abandoned or operation.peer in self._alone):
            return  # the usual case
        if operation.kind == "receive" and operation.source >= 0:
            return  # the message has arrived and is held back
        if operation.peer in self._alone:
            raise awaits_itself(operation, self._rank)
        if self.awaited(operation):
            return
        peers = self._asked(operation)
        failed, given_up = self._failed(operation, peers), self._given_up(operation, peers)
        raise can_never_complete(
            operation, peers, failed, given_up, lambda rank: self.failed.get(rank, f"rank {rank} failed")
        )

    def _asked(self, operation: Pending) -> set[int]:
        peers = {operation.peer} if isinstance(operation.peer, int) else operation.peer - {self._rank}
        return set(peers) or {self._rank}

    def _failed(self, operation: Pending, peers: set[int]) -> set[int]:
        """Those of the peers that have failed; what they had sent before has all arrived once their sockets close."""
        return {peer for peer in peers if peer in self.failed and (peer in self.vanished or operation.kind == "send")}

    def _given_up(self, operation: Pending, peers: set[int]) -> dict[int, int]:
        return {peer: self.abandoned[peer, operation.tag] for peer in peers if (peer, operation.tag) in self.abandoned}
