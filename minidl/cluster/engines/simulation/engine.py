"""The engine of simulated ranks: greenlets on a virtual clock, in this process or (isolated=True) in a child."""

from __future__ import annotations

import contextlib
import contextvars
import io
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cloudpickle

from minidl import kernels
from minidl.arguments import one_of
from minidl.cluster.comm import Communicator
from minidl.cluster.cost.memory import Memory
from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.errors import CommTimeout, RankFailed
from minidl.cluster.engines.pickled import loaded_result, pickled_program
from minidl.cluster.engines.printed import replay, show
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.engines.reports import NOT_BEGUN, RankReports, deadline_text
from minidl.cluster.engines.simulation.deadline import Overdue, enforced
from minidl.cluster.engines.simulation.node import Node
from minidl.cluster.engines.simulation.process_wide import rare_collections, routed
from minidl.cluster.engines.simulation.rank import SimulatedRank
from minidl.cluster.engines.simulation.world import SimulatedWorld
from minidl.cluster.run import Run
from minidl.cluster.trace.trace import Trace

EVENTS_OF_A_RANK = 20_000
EVENTS_OF_A_RUN = 1_000_000  # an event takes about 80 bytes


@dataclass(frozen=True)
class Simulation:
    """A simulated cluster in this process; the engine that `on="simulation"` means.

    Parameters
        network   how long messages take: a Network or the name of a preset; None: no time
        node      how long computation takes: a Node; None: kernels take no time, and work that a program states
                  (`comm.compute`) takes as long as on processes
        isolated  run all ranks in one child process; the deadline then also ends a loop in compiled code, and any
                  endless rank where `launch` is not called in the main thread; a crash of the interpreter does no harm
        batched   compute a collective of more than about 50 messages at once, where that gives the same as message by
                  message (same times, results, events, counts and errors, much sooner); False: never
        memory    two tiers of memory in every node, as a `cluster.Memory`; None: one memory without limit
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
    memory: Memory | None = None

    def __post_init__(self) -> None:
        Network.of(self.network)
        if self.node is not None and not isinstance(self.node, Node):
            raise TypeError(f"node must be a cluster.Node, got {type(self.node).__name__}")
        if self.memory is not None and not isinstance(self.memory, Memory):
            raise TypeError(f"memory must be a cluster.Memory, got {type(self.memory).__name__}")
        one_of("trace", self.trace, ("full", "ledger"))

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run:
        network = self._network(terms)
        if self.node is not None:
            self.node.check(terms.nodes)
        terms = replace(terms, network=network)
        if self.isolated:
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
            world = SimulatedWorld(terms, self.memory, self.batched, ends_at, contextvars.copy_context().run, stdout)
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
        {rank.number: rank.position for rank in ranks if rank.position is not None},
    )
    if world.is_late:
        raise reports.deadline_error(world.terms.deadline or 0.0, at_fault=world.overran)
    if world.culprit is not None:
        raise reports.error(world.culprit, world.failed[world.culprit])
    if world.scheduler.failure is not None:
        raise reports.deadlock_error(world.deadlock)
    failures = {rank: reports.error(rank, world.failed[rank]) for rank in sorted(world.failed)}
    for rank, error in failures.items():
        error.seconds = world.failed_at[rank]
    return Run(
        [None if rank.result is None else loaded_result(rank.number, rank.result) for rank in ranks],
        max(rank.seconds for rank in ranks),
        Trace(reports.recordings, reports.source),
        failures,
    )


GRACE_SECONDS = 0.5  # for the child to report by itself that the deadline has passed, and what each rank waited for

Simulate = Callable[[Program, tuple[Any, ...], LaunchTerms], Run]


def in_a_child(simulate: Simulate, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run:
    """Call `simulate(program, args, terms)` in a child process, which is a launch of one rank on `processes`."""
    from minidl.cluster.engines.processes.engine import Processes  # here, because most simulations need no processes

    listener = terms.listener
    forward = None if listener is None else lambda _, pair: listener(*pair)
    deadline = None if terms.deadline is None else terms.deadline + GRACE_SECONDS
    outer = LaunchTerms(
        1, terms.timeout, deadline, "raise", network=None, faults=None, seed=terms.seed, listener=forward
    )
    inner = replace(terms, listener=None)
    try:
        run = Processes(trace_events=0).run(_host, (simulate, program, args, inner, listener is not None), outer)
    except CommTimeout as error:
        why = "the simulation did not answer: one of its ranks computed, or slept, without end"
        if stack := error.tracebacks.get(0):
            why += f"\n\nIts stack (most recent call last):\n{stack}"
        raise CommTimeout(
            f"{deadline_text(terms.deadline)}\n{NOT_BEGUN if NOT_BEGUN in str(error) else why}"
        ) from error
    except RankFailed as error:
        if error.cause is not None:
            raise
        death = str(error).partition("\n")[0]
        raise RankFailed(f"{death}\nit was the process in which all ranks were simulated") from error
    simulated, failure, printed = run.results[0]
    show(printed)
    if failure:
        raise cloudpickle.loads(failure)
    result: Run = simulated
    return result


def _host(
    comm: Communicator,
    simulate: Simulate,
    program: Program,
    args: tuple[Any, ...],
    terms: LaunchTerms,
    has_listener: bool,
) -> tuple[Run | None, bytes, str]:
    """In the child: its Run, or the pickled error that ended it, and everything that was printed."""
    if has_listener:
        terms = replace(terms, listener=lambda rank, obj: comm.tell((rank, obj)))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            run, error = simulate(program, args, terms), b""
        except Exception as raised:
            run, error = None, cloudpickle.dumps(raised, 5)
    return run, error, printed.getvalue()
