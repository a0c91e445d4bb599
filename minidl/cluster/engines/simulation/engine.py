"""The engine of simulated ranks: greenlets in this process, on a virtual clock."""

from __future__ import annotations

import contextvars
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from minidl import kernels
from minidl.arguments import one_of
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.pickled import loaded_result, pickled_program
from minidl.cluster.engines.printed import replay
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.engines.run_error import RankReports
from minidl.cluster.engines.simulation.deadline import Overdue, enforced
from minidl.cluster.engines.simulation.node import Node
from minidl.cluster.engines.simulation.output import routed
from minidl.cluster.engines.simulation.process_wide import rare_collections
from minidl.cluster.engines.simulation.rank import SimulatedRank
from minidl.cluster.engines.simulation.world import SimulatedWorld
from minidl.cluster.run import Run
from minidl.cluster.trace.trace import Trace

EVENTS_OF_A_RANK = 20_000
EVENTS_OF_A_RUN = 1_000_000  # an event takes about 200 bytes


@dataclass(frozen=True)
class Simulation:
    """A simulated cluster in this process; the engine that `on="simulation"` means.

    Parameters
        network   how long messages take: a Network or the name of a preset; None: no time
        node      how long computation takes: a Node; None: kernels take no time, and work that a program states
                  (`comm.compute`) takes as long as on processes
        isolated  run all ranks in one child process; the deadline then also ends a loop in compiled code, and any
                  endless rank where `launch` is not called in the main thread; a crash of the interpreter does no harm
        batched   compute a collective of many ranks at once, where that gives the same as message by message (same
                  times, results, events, counts and errors, much sooner); False: never
        trace     "full", or "ledger" for messages, bytes and shares without events (faster, and without limit)

    Ranks take turns on a virtual clock (see `scheduler.py`). Every run is the same to the last bit, even if a program
    receives from any rank. Not modelled: TCP's slow start, buffers of switches, and caches. Ranks share the modules of
    this process and the state of numpy's old global generator, so use `comm.rng`.

    >>> from minidl import cluster
    >>> def program(comm):
    ...     comm.all_reduce(cluster.Phantom(1_000_000), algorithm="ring")
    >>> network = cluster.Network(alpha=1e-3, beta=1e-6)
    >>> round(cluster.launch(program, nodes=4, on=cluster.Simulation(network)).seconds, 9)
    1.506
    """

    network: Network | str | None = None
    node: Node | None = None
    isolated: bool = False
    trace: str = "full"
    batched: bool = True

    def __post_init__(self) -> None:
        Network.of(self.network)
        if self.node is not None and not isinstance(self.node, Node):
            raise TypeError(f"node must be a cluster.Node, got {type(self.node).__name__}")
        one_of("trace", self.trace, ("full", "ledger"))

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run:
        network = self._network(terms)
        if self.node is not None:
            self.node.check(terms.nodes)
        terms = replace(terms, network=network)
        if self.isolated:
            from minidl.cluster.engines.simulation.isolation import in_a_child  # which imports the processes

            simulate = partial(replace(self, network=None, isolated=False)._simulate, began=time.monotonic())
            return in_a_child(simulate, program, args, terms)
        return self._simulate(program, args, terms, time.monotonic())

    def _network(self, terms: LaunchTerms) -> Network | None:
        own = Network.of(self.network)
        if own is not None and terms.network is not None and own != terms.network:
            raise ValueError(f"two networks were given: launch(network={terms.network!r}) and Simulation({own!r})")
        network = own or terms.network
        if network is not None:
            network.check(terms.nodes)
        return network

    def _simulate(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms, began: float) -> Run:
        ends_at = float("inf") if terms.deadline is None else began + terms.deadline
        packed = pickled_program(program, args)
        with routed() as stdout, rare_collections:
            world = SimulatedWorld(terms, self.batched, ends_at, contextvars.copy_context().run, stdout)
            events = min(EVENTS_OF_A_RANK, EVENTS_OF_A_RUN // terms.nodes) if self.trace == "full" else 0
            ranks = [SimulatedRank(number, world, self.node, events, kernels.active()) for number in range(terms.nodes)]
            try:
                for rank in ranks:
                    rank.begin(packed)
                with enforced(ends_at, world.overrun):
                    world.scheduler.play(world.goes_on)
            except BaseException as error:  # Ctrl-C while no program was running
                world.interrupt(error)
            finally:
                world.close()
        for rank in ranks:
            replay(rank.number, rank.printed())
        return _run_of(world, ranks)


def _run_of(world: SimulatedWorld, ranks: list[SimulatedRank]) -> Run:
    """The Run; raises the error of a run that failed."""
    if world.interruption is not None and not isinstance(world.interruption, Overdue):
        raise world.interruption
    reports = RankReports(
        {rank.number: rank.failure for rank in ranks if rank.failure},
        frozenset(world.returned),
        [rank.recording for rank in ranks],
        "simulated",
        {
            **{rank.number: "it had not begun" for rank in ranks if rank.failure is None and rank.recording is None},
            **dict.fromkeys(world.stopped, "it was stopped (a planned fault)"),
        },
        {rank.number: rank.whereabouts for rank in ranks if rank.whereabouts is not None},
    )
    if world.is_late:
        raise reports.deadline_error(world.terms.deadline or 0.0, at_fault=world.overran)
    if world.culprit is not None:
        raise reports.error(world.culprit, world.failed[world.culprit])
    if world.scheduler.failure is not None:
        raise reports.deadlock_error(world.deadlock)
    return Run(
        [None if rank.result is None else loaded_result(rank.number, rank.result) for rank in ranks],
        max(rank.seconds for rank in ranks),
        Trace(reports.recordings, reports.source),
        {rank: reports.error(rank, world.failed[rank]) for rank in sorted(world.failed)},
    )
