"""Folding: along which axes of a plan the ranks behave alike, so that one of them is played for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from minidl.cluster.cost.network import Network
from minidl.cluster.engines.simulation.node import Node
from minidl.parallel.folded.charges import Charges
from minidl.parallel.folded.collective_rounds import Collective, Turn, are_alike, turns
from minidl.parallel.plan import ParallelPlan

EXACT = 64
"""Ranks of a cluster on which only ranks that do exactly the same are folded."""

MOST_PLAYED = 512
"""Ranks that are played at most: their number times that of micro-batches takes the time."""


class Folding:
    """Which ranks of a plan are played, and for which others.

    Parameters
        plan     of the run
        charges  of its actions, whose collectives are looked at
        network  between the ranks
        node     their speeds
        sizes    samples of the micro-batches, by replica

    Attributes
        played  the plan with one rank along each axis that is folded
        why     which ranks behave alike, or why they do not

    Raises
        ValueError  more than `MOST_PLAYED` ranks differ
    """

    def __init__(
        self,
        plan: ParallelPlan,
        charges: Charges,
        network: Network | None,
        node: Node | None,
        sizes: Sequence[Sequence[int]],
    ) -> None:
        self._plan, self._network = plan, network
        self._is_rounded = False  # whether chunks differ by one number
        several = [axis for axis in ("dp", "tp") if getattr(plan, axis) > 1]
        reasons = {axis: self._difference(axis, charges, node, sizes) for axis in several}
        alone: dict[str, Any] = {axis: 1 for axis, reason in reasons.items() if not reason}
        self.played = replace(plan, **alone)
        differing = [reason for reason in dict.fromkeys(reasons.values()) if reason]
        rounded = ", but for chunks that differ by a number" * self._is_rounded
        same = [f"ranks along {' and '.join(alone)} behave alike{rounded}"] if alone else []
        self.why = "; ".join(same + differing) or "no two ranks do the same"
        if self.played.world > MOST_PLAYED:
            raise ValueError(
                f"{self.played.world:,} of {plan.world:,} ranks would be played, and {MOST_PLAYED} are the most: "
                f"{'; '.join(differing)}. Take equal ranks, or fewer"
            )
        self._alone = set(alone)
        self._turns: dict[tuple[Collective, tuple[int, ...]], list[Turn]] = {}
        places = [self.played.coordinates(rank) for rank in range(self.played.world)]
        self._ranks = {self._key(place): rank for rank, place in enumerate(places)}

    def groups(self, place: Mapping[str, int]) -> dict[str, list[int]]:
        """The ranks played along each axis, those of a rank at that place."""
        return {
            axis: [self._ranks[self._key({**place, axis: i})] for i in range(getattr(self.played, axis))]
            for axis in ("dp", "pp", "tp")
        }

    def turns(self, place: Mapping[str, int], call: Collective) -> list[Turn]:
        """What the rank at that place does in a collective."""
        key = call, tuple(place.values())
        if key not in self._turns:
            self._turns[key] = self._made_turns(place, call)
        return self._turns[key]

    def _made_turns(self, place: Mapping[str, int], call: Collective) -> list[Turn]:
        of_group = turns(call, self._network, self._members(call.axis, place))
        if call.axis not in self._alone:
            return of_group[place[call.axis]]
        return [  # the largest of each round
            Turn(0, max(turn.sent for turn in of_round), 0, max(turn.reduced for turn in of_round))
            if of_round[0].to is not None
            else Turn(None, 0, None, max(turn.reduced for turn in of_round))
            for of_round in zip(*of_group, strict=True)
        ]

    def _key(self, place: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(place[axis] for axis in ("dp", "pp", "tp"))

    def _members(self, axis: str, place: Mapping[str, int]) -> tuple[int, ...]:
        """The numbers in the run of the ranks along an axis."""
        count = getattr(self._plan, axis)
        if self._network is None or self._network.topology is None:
            return tuple(range(count))  # all groups are alike
        return tuple(self.groups(place)[axis])

    def _difference(self, axis: str, charges: Charges, node: Node | None, sizes: Sequence[Sequence[int]]) -> str:
        """How the ranks along an axis differ; empty: not at all."""
        if self._network is not None and self._network.topology is not None:
            return "messages of all ranks share the links of the network"
        speeds = {rank: node.speed(rank) for rank in range(self._plan.world)} if node else {}
        usual = speeds.get(0)
        if slow := [rank for rank, speed in speeds.items() if speed != usual]:
            return f"rank{'s' * (len(slow) > 1)} {', '.join(map(str, slow[:3]))} and rank 0 have different speeds"
        if axis == "dp" and (longer := [i for i, mine in enumerate(sizes) if mine != sizes[-1]]):
            return f"replicas 0 to {longer[-1]} have more samples than replica {len(sizes) - 1}"
        count, is_rounded = getattr(self._plan, axis), False
        for call in charges.collectives(axis):
            of_ranks = turns(call, self._network, tuple(range(count)))
            if are_alike(of_ranks):
                continue
            is_rounded = self._plan.world > EXACT and are_alike(of_ranks, call.unit)
            if not is_rounded:
                what = f"{call.kind} of {call.elements:,} numbers"
                return f"{count} ranks along {axis} send different messages in the {what}"
        self._is_rounded |= is_rounded
        return ""
