"""The other ranks as one rank sees them: which have ended or failed, and which operations can never complete."""

from __future__ import annotations

from collections.abc import Mapping

from minidl.cluster.diagnosis.errors import ClusterError, RankFailed, awaits_itself, can_never_complete
from minidl.cluster.engines.protocol import Pending

LOST_PEER_SECONDS = 2.0  # how long after a peer's socket closed without a goodbye the launcher may report why


class Peers:
    """The other ranks, as `rank` sees them; `failed` has those that failed in a run that continues without them."""

    def __init__(self, rank: int, failed: Mapping[int, ClusterError]) -> None:
        self._rank = rank
        self._alone = (rank, frozenset((rank,)))
        self.failed = failed
        self.ended: set[int] = set()  # returned from the program; everything they sent has arrived
        self.vanished: dict[int, float] = {}  # their sockets closed without a goodbye, and when
        self.abandoned: dict[tuple[int, int], int] = {}  # by peer, tag: the rank whose failure ended it

    def cannot_complete(self, operation: Pending, now: float) -> bool:
        """Whether no other rank can complete the operation; False for a message from this rank itself."""
        if operation.peer in self._alone:
            return False
        try:
            self.check_completable(operation, now)
        except ClusterError:
            return True
        return False

    def check_completable(self, operation: Pending, now: float) -> None:
        """Raise Deadlock or RankFailed if no other rank can complete the operation."""
        if not (self.ended or self.vanished or self.failed or self.abandoned or operation.peer in self._alone):
            return  # the usual case
        if operation.kind == "receive" and operation.source >= 0:
            return  # the message has arrived and is held back
        peers = {operation.peer} if isinstance(operation.peer, int) else operation.peer - {self._rank}
        if peers <= {self._rank}:
            raise awaits_itself(operation, self._rank)
        failed = {peer for peer in peers if peer in self.failed and (peer in self.vanished or operation.kind == "send")}
        given_up = {
            peer: self.abandoned[peer, operation.tag] for peer in peers if (peer, operation.tag) in self.abandoned
        }
        if peers <= self.ended | failed | given_up.keys():
            raise can_never_complete(
                operation, peers, failed, given_up, lambda rank: self.failed.get(rank, f"rank {rank} failed")
            )
        lost = [peer for peer in peers if now - self.vanished.get(peer, now) > LOST_PEER_SECONDS]
        if lost and peers <= self.ended | set(self.vanished):
            raise RankFailed(f"{operation} can never complete: rank {lost[0]} is gone", rank=lost[0])
