"""Folding: along which axes of a plan the ranks behave alike, so that one of them is played for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from minidl.cluster.cost.network import Network
from minidl.cluster.cost.topologies import Tree
from minidl.cluster.engines.simulation.flows import Flows
from minidl.cluster.engines.simulation.node import Node
from minidl.cluster.engines.simulation.ports import Transport
from minidl.cluster.engines.simulation.world import transport_over
from minidl.parallel.folded.charges import Charges
from minidl.parallel.folded.collective_rounds import Collective, Turn, are_alike, turns
from minidl.parallel.folded.links import FoldedTree
from minidl.parallel.plan import ParallelPlan

EXACT = 64
"""Ranks of a cluster on which only ranks that do exactly the same are folded."""

MOST_PLAYED = 512
"""Ranks that are played at most: their number times that of micro-batches takes the time."""

AXES = ("dp", "tp")
"""The axes that may be folded."""


class Place(NamedTuple):
    """The coordinates of a rank."""

    dp: int
    pp: int
    tp: int


class Grid:
    """The ranks of a plan by their places.

    Attributes
        places  of all ranks
    """

    def __init__(self, plan: ParallelPlan) -> None:
        self._plan = plan
        found = map(plan.coordinates, range(plan.world))
        self.places = [Place(place["dp"], place["pp"], place["tp"]) for place in found]
        self._ranks = {place: rank for rank, place in enumerate(self.places)}

    def rank(self, place: Place) -> int:
        """The rank at a place."""
        return self._ranks[place]

    def along(self, axis: str, place: Place) -> tuple[int, ...]:
        """The ranks along an axis, those of the one at that place."""
        return tuple(self._ranks[place._replace(**{axis: i})] for i in range(getattr(self._plan, axis)))


class Folding:
    """Which ranks of a plan are played, and for which others.

    Parameters
        plan     of the run
        charges  of its actions, whose collectives are looked at
        network  between the ranks
        node     their speeds
        sizes    samples of the micro-batches, by replica

    Attributes
        alone      the axes along which one rank is played for all
        played     the ranks that are played: of the plan with one rank along each of these
        transport  the network between the ranks that are played
        why        which ranks behave alike, or why they do not

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
        self._plan, self._charges, self._network, self._grid = plan, charges, network, Grid(plan)
        self._topology: Any = None if network is None else network.topology
        self._is_rounded = False  # whether chunks differ by one number
        self._turns: dict[tuple[Collective, Place], list[Turn]] = {}
        several = [axis for axis in AXES if getattr(plan, axis) > 1]
        reasons = {axis: self._difference(axis, node, sizes) for axis in several}
        alike = {axis for axis, reason in reasons.items() if not reason}
        self.alone, self._links = self._sharing_links(alike)
        for axis in alike - self.alone:
            reasons[axis] = _links_differ(axis)
        self.played = Grid(self._folded(self.alone))
        count = len(self.played.places)
        differing = [reason for reason in dict.fromkeys(reasons.values()) if reason]
        rounded = ", but for chunks that differ by a number" * self._is_rounded
        names = " and ".join(axis for axis in AXES if axis in self.alone)
        same = [f"ranks along {names} behave alike{rounded}"] if self.alone else []
        self.why = "; ".join(same + differing) or "no two ranks do the same"
        if count > MOST_PLAYED:
            raise ValueError(
                f"{count:,} of {plan.world:,} ranks would be played, and {MOST_PLAYED} are the most: "
                f"{'; '.join(differing)}. Take equal ranks, or fewer"
            )
        self.transport: Transport = transport_over(network, count)
        if self._links is not None:
            links: Any = self._links
            self.transport = Flows(links)

    @property
    def ranks_of_replica(self) -> int:
        """Ranks that hold the model together, played or not."""
        return self._plan.pp * self._plan.tp

    def replica(self, dp: int) -> list[int]:
        """The ranks of that replica that are played, by their numbers among these."""
        return [rank for rank, place in enumerate(self.played.places) if place.dp == dp]

    def turns(self, place: Place, call: Collective) -> list[Turn]:
        """What the rank at that place does in a collective, with the numbers of ranks that are played.

        Where it is played for all, `to` is the address that it sends to and receives from: itself, or a route.
        """
        if (call, place) not in self._turns:
            self._turns[call, place] = list(self._made_turns(place, call))
        return self._turns[call, place]

    def seconds(self, address: int, nbytes: int) -> float | None:
        """The time of a message to an address, if nothing else uses its links; None: others may."""
        if self._network is None:
            return 0.0
        return self._network.time(nbytes) if self._links is None else self._links.seconds(address, nbytes)

    def _made_turns(self, place: Place, call: Collective) -> Iterator[Turn]:
        group = self._grid.along(call.axis, place)
        of_group = turns(call, self._network, self._counted(group))
        if call.axis not in self.alone:
            played = self.played.along(call.axis, place)
            for turn in of_group[getattr(place, call.axis)]:
                to, source = (None if i is None else played[i] for i in (turn.to, turn.source))
                yield Turn(to, turn.sent, source, turn.reduced)
            return
        for of_round in zip(*of_group, strict=True):  # the largest of each
            to = of_round[0].to
            if to is not None:
                to = self.played.rank(place) if self._links is None else self._links.address(group[0], group[to])
            yield Turn(to, max(turn.sent for turn in of_round), None, max(turn.reduced for turn in of_round))

    # Ranks of the plan

    def _folded(self, alone: set[str]) -> ParallelPlan:
        changes: dict[str, Any] = dict.fromkeys(alone, 1)
        return replace(self._plan, **changes)

    def _counted(self, group: tuple[int, ...]) -> tuple[int, ...]:
        """The group as an all-reduce sees it that is chosen for it: without shared links, only their number counts."""
        return tuple(range(len(group))) if self._topology is None else group

    def _difference(self, axis: str, node: Node | None, sizes: Sequence[Sequence[int]]) -> str:
        """How the ranks along an axis differ, shared links aside; empty: not at all."""
        if self._topology is not None and not isinstance(self._topology, Tree):
            return _links_differ(axis)
        speeds = {rank: node.speed(rank) for rank in range(self._plan.world)} if node else {}
        usual = speeds.get(0)
        if slow := [rank for rank, speed in speeds.items() if speed != usual]:
            return f"rank{'s' * (len(slow) > 1)} {', '.join(map(str, slow[:3]))} and rank 0 have different speeds"
        if axis == "dp" and (longer := [i for i, mine in enumerate(sizes) if mine != sizes[-1]]):
            return f"replicas 0 to {longer[-1]} have more samples than replica {len(sizes) - 1}"
        count, is_rounded = getattr(self._plan, axis), False
        groups = {self._counted(self._grid.along(axis, Place(0, stage, 0))) for stage in range(self._plan.pp)}
        for call in self._charges.collectives(axis):
            for group in groups:
                of_ranks = turns(call, self._network, group)
                if are_alike(of_ranks):
                    continue
                is_rounded = self._plan.world > EXACT and are_alike(of_ranks, call.unit)
                if not is_rounded:
                    what = f"{call.kind} of {call.elements:,} numbers"
                    return f"{count} ranks along {axis} send different messages in the {what}"
        self._is_rounded |= is_rounded
        return ""

    # Shared links

    def _sharing_links(self, alike: set[str]) -> tuple[set[str], FoldedTree | None]:
        """As many of the axes as possible along which all ranks also use links alike, and the links of those played."""
        if self._topology is None:
            return alike, None
        for alone in (alike, *({axis} for axis in AXES if alike > {axis})):
            links = self._links_of(self._topology, alone) if alone else None
            if links is not None:
                return alone, links
        return set(), None

    def _links_of(self, tree: Tree, alone: set[str]) -> FoldedTree | None:
        """The links with one rank along these axes, unless ranks that it would be played for send on different ones."""
        folded = Grid(self._folded(alone))
        played = [folded.rank(place._replace(**dict.fromkeys(alone, 0))) for place in self._grid.places]
        links = FoldedTree(tree, played)
        if not links.is_symmetric:
            return None
        seen: dict[Any, Any] = {}
        for what, src, dst in self._messages():
            route = links.route(src, dst)
            if seen.setdefault((what, played[src], played[dst]), route) != route:
                return None
        return links

    def _messages(self) -> Iterator[tuple[Any, int, int]]:
        """All pairs of ranks that exchange messages, each with its purpose."""
        calls = {axis: self._charges.collectives(axis) for axis in AXES}
        for rank, place in enumerate(self._grid.places):
            for other in self._grid.along("pp", place):
                yield "pp", rank, other
            for axis in AXES:
                group, first = self._grid.along(axis, place), self._grid.along(axis, Place(0, place.pp, 0))
                for call in calls[axis]:
                    for i, turn in enumerate(turns(call, self._network, first)[getattr(place, axis)]):
                        if turn.to is not None:
                            yield (call, i), rank, group[turn.to]


def _links_differ(axis: str) -> str:
    return f"messages of the ranks along {axis} share links in different ways"
