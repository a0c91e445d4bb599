"""What a rank knows of the others: who has ended, who has failed, and so which operation can never complete."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from minidl.cluster.diagnosis.errors import ClusterError, RankFailed
from minidl.cluster.engines.hopeless import awaits_itself, peers_have_returned
from minidl.cluster.engines.protocol import Pending

LOST_PEER_SECONDS = 2.0  # a peer's socket has closed without a goodbye: how long the launcher may take to say why


class Peers:
    """The other ranks as seen by `rank`; `failed` holds those that have failed while the run goes on without them."""

    def __init__(self, rank: int, failed: Mapping[int, ClusterError]) -> None:
        self._rank = rank
        self._alone = (rank, frozenset((rank,)))
        self.failed = failed
        self.ended: set[int] = set()  # they have returned from the program, and everything they sent is here
        self.vanished: dict[int, float] = {}  # their sockets have closed without a goodbye, and when
        self.abandoned: dict[tuple[int, int], int] = {}  # because of whom a collective is given up, by peer and tag

    def is_hopeless(self, operation: Pending, now: float) -> bool:
        """Whether nobody is left who could complete the operation; of its own messages, this rank may yet send one."""
        if operation.peer in self._alone:
            return False
        try:
            self.raise_if_hopeless(operation, now)
        except ClusterError:
            return True
        return False

    def raise_if_hopeless(self, operation: Pending, now: float) -> None:
        """Raise Deadlock or RankFailed if nobody is left who could complete the operation."""
        if not (self.ended or self.vanished or self.failed or self.abandoned or operation.peer in self._alone):
            return  # nothing has happened; this is asked whenever a rank waits
        if operation.kind == "receive" and operation.source >= 0:
            return  # the message is here and held back
        peers = {operation.peer} if isinstance(operation.peer, int) else operation.peer - {self._rank}
        if peers <= {self._rank}:
            raise awaits_itself(operation, self._rank)
        failed = {peer for peer in peers if peer in self.failed and (peer in self.vanished or operation.kind == "send")}
        abandoned = {peer for peer in peers if (peer, operation.tag) in self.abandoned}
        if peers <= self.ended | failed | abandoned:
            self._raise(operation, peers, failed, abandoned)
        lost = [peer for peer in peers if now - self.vanished.get(peer, now) > LOST_PEER_SECONDS]
        if lost and peers <= self.ended | set(self.vanished):
            raise RankFailed(f"{operation} can never complete: rank {lost[0]} is gone", rank=lost[0])

    def _raise(
        self, operation: Pending, peers: Collection[int], failed: Collection[int], abandoned: Collection[int]
    ) -> None:
        if failed:
            rank = min(failed)
            raise RankFailed(f"{operation} can never complete: {self.failed[rank]}", rank=rank)
        if abandoned:
            rank = self.abandoned[min(abandoned), operation.tag]
            who = f"rank {min(abandoned)} has given up this collective"
            because = self.failed.get(rank, f"rank {rank} failed")
            raise RankFailed(f"{operation} can never complete: {who} because {because}", rank=rank)
        raise peers_have_returned(operation, peers)
