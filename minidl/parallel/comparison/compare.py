"""compare: train a job with several strategies, on several networks, with several seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from minidl import cluster, kernels
from minidl.arguments import real_number, whole_number
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.protocol import Engine
from minidl.parallel.comparison.compared_run import ComparedRun, mean_shares
from minidl.parallel.comparison.comparison import Comparison, check_formats
from minidl.parallel.comparison.entrant import Entrant
from minidl.parallel.job import Job
from minidl.parallel.run.divergence import NonFiniteLoss
from minidl.parallel.run.history import Progress
from minidl.parallel.strategy import Strategy, check_strategy
from minidl.parallel.train import train

NETWORKS = ("1gbe", "10gbe", "infiniband")

Listener = Callable[[ComparedRun, Progress | None], None]


def compare(
    job: Job,
    strategies: Mapping[str, Strategy | tuple[Strategy, Job]],
    nodes: int = 4,
    on: str | Engine = "simulation",
    networks: Sequence[str] | Mapping[str, str | Network | None] | None = None,
    seeds: int = 1,
    target: float | None = None,
    slow: Mapping[int, float] | None = None,
    folder: str | Path | None = None,
    formats: Sequence[str] = ("png",),
    progress: Listener | None = None,
    timeout: float | None = None,
    deadline: float | None = None,
    title: str = "",
    settings: Mapping[str, Any] | None = None,
    keep_traces: bool = False,
) -> Comparison:
    """Train `job` with every strategy on every network with every seed, and return the Comparison.

    Parameters
        job         what to train
        strategies  maps names, as shown in tables and pictures, to strategies; a pair (strategy, job) has a job of its
                    own, such as one with another learning rate
        nodes       number of ranks that train, servers not included; Serial trains on one
        on          engine, as in `parallel.train`. "simulation" has nodes of 1 GFLOP/s and 10 GB/s; give a
                    `cluster.Simulation(node=...)` for others
        networks    names of presets, or a dict of names and `cluster.Network` or None; by default 1gbe, 10gbe and
                    infiniband in a simulation, and elsewhere none: messages take their real time
        seeds       runs of every strategy on every network, with the seeds job.seed, job.seed + 1, ...; an Ensemble's
                    members have a seed each, so the seeds of its runs differ by its number of members
        target      test accuracy; the time that a strategy takes to reach it is reported. None: the highest that every
                    run reaches, rounded down to a percent
        slow        maps a rank to the factor by which its computing takes longer
        folder      where `Comparison.save` writes: the CSV files after every run, the picture at the end; None: nowhere
        formats     formats of the picture: "png", "svg", "pdf"
        progress    called with the run and a `parallel.Progress`, and with the run and None when it has ended
        timeout     as in `parallel.train`; by default 60 s, and in a simulation no limit
        deadline    real seconds for each run, as in `parallel.train`; None: no limit
        title       text above the picture; by default nodes, minibatch, epochs and seeds
        settings    further columns of runs.csv, the same in all rows
        keep_traces keep the trace of each strategy's run on the first network with the first seed, for
                    `Comparison.player`; an engine of your own must record it: `cluster.Simulation(trace="full")`

    Notes
        Strategies read the same samples in the same number of epochs; of an Ensemble, each member does. `batch_size`
        counts the samples of all nodes together; an asynchronous gradient is of batch_size / nodes samples, so that a
        node computes as much between two messages under every strategy. A run whose loss is not finite is reported as
        diverged.
        In a simulation a compressor's work takes no time, unless `compress.CodingTime` charges it; tables and picture
        say so. On processes it takes its real time.

    Raises
        ValueError    a strategy cannot train the job, or an argument is out of range; nothing has run by then
        TypeError     a value that is not a strategy, a job, or a pair of them
        ClusterError  a rank failed

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(
    ...     model=lambda: nn.models.MLP(2, 16, 3),
    ...     data=lambda: data.spirals(n=100),
    ...     optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
    ...     epochs=2,
    ... )
    >>> strategies = {"every step": parallel.Synchronous(), "every 4 steps": parallel.LocalSGD(period=4)}
    >>> comparison = parallel.compare(job, strategies, nodes=2, networks=["1gbe"], seeds=3)
    >>> [(row["strategy"], row["seeds"]) for row in comparison.summary()]
    [('every step', 3), ('every 4 steps', 3)]
    """
    nodes, seeds = whole_number("nodes", nodes, at_least=1), whole_number("seeds", seeds, at_least=1)
    if target is not None:
        target = real_number("target", target, above=0, at_most=1)
    check_formats(formats)
    _check_slow(slow or {}, nodes)
    engine = on
    if isinstance(on, str) and on == "simulation":  # slow enough for small models to have something to compute
        engine = cluster.Simulation(
            node=cluster.Node(flops_per_s=1e9, bytes_per_s=1e10), trace="full" if keep_traces else "ledger"
        )
    is_simulation = isinstance(engine, cluster.Simulation)
    entrants = _entrants(job, strategies, nodes)
    places = _places(networks, is_simulation)
    for entrant in entrants:
        entrant.check_networks(places.values())
    comparison = Comparison(
        title or _title(job, nodes, seeds),
        "simulated" if is_simulation else "measured",
        range(job.seed, job.seed + seeds),
        target,
        {**(settings or {}), "slow": " ".join(f"{rank}:{factor:g}" for rank, factor in (slow or {}).items()),
         "kernels": kernels.active()},
        is_writer=cluster.is_first(on),
    )  # fmt: skip
    limit = timeout if timeout is not None else math.inf if is_simulation else 60.0
    for network_name, network in places.items():
        for entrant in entrants:
            for number in range(seeds):
                seeded = entrant.with_seed(job.seed, number)
                keeps = keep_traces and number == 0 and network_name == next(iter(places))
                trained = partial(_trained, seeded, network_name, network, slow or {}, limit, deadline, progress, keeps)
                is_alone = seeded.nodes == 1 and (engine == "mpi" or isinstance(engine, cluster.MPI))
                # Not an MPI job, whose ranks are all the nodes: one of the processes trains it
                run = cluster.once(partial(trained, "processes"), engine) if is_alone else trained(engine)
                comparison.runs.append(run)
                if folder is not None and comparison.is_writer:
                    comparison.save_tables(Path(folder))  # at once: a program that is stopped keeps them
                if progress is not None:
                    progress(run, None)
    if folder is not None:
        comparison.save(folder, formats)
    return comparison


def _entrants(job: Job, strategies: Mapping[str, Strategy | tuple[Strategy, Job]], nodes: int) -> Sequence[Entrant]:
    if not isinstance(strategies, Mapping) or not strategies:
        raise ValueError(
            f'compare needs strategies by name, such as {{"synchronous": parallel.Synchronous()}}, got {strategies!r}'
        )
    entrants = []
    for name, given in strategies.items():
        strategy, own = given if isinstance(given, tuple) and len(given) == 2 else (given, job)
        if not isinstance(own, Job):
            raise TypeError(f"{name}: a pair (strategy, job) expected, got {own!r} for the job")
        check_strategy(f"compare: {name}", strategy)
        entrants.append(Entrant.of(name, strategy, own, nodes))
        entrants[-1].check()
    return entrants


def _places(
    networks: Sequence[str] | Mapping[str, str | Network | None] | None, is_simulation: bool
) -> dict[str, Network | None]:
    if networks is None:
        networks = NETWORKS if is_simulation else {"none": None}
    if isinstance(networks, str) or not networks:
        raise ValueError(f'networks must be a list of names, such as ["1gbe", "10gbe"], or a dict, got {networks!r}')
    named = networks if isinstance(networks, Mapping) else {name: None if name == "none" else name for name in networks}
    return {name: Network.of(network) for name, network in named.items()}


def _check_slow(slow: Mapping[int, float], nodes: int) -> None:
    for rank, factor in slow.items():
        if rank not in range(nodes):
            raise ValueError(f"slow: there is no node {rank}, the nodes are 0 to {nodes - 1}")
        real_number(f"slow[{rank}]", factor, at_least=1)


def _title(job: Job, nodes: int, seeds: int) -> str:
    of_seeds = f"seed {job.seed}" if seeds == 1 else f"seeds {job.seed} to {job.seed + seeds - 1}"
    return f"nodes: {nodes}, minibatch: {job.batch_size}, epochs: {job.epochs}, {of_seeds}"


def _trained(
    entrant: Entrant,
    network_name: str,
    network: Network | None,
    slow: Mapping[int, float],
    timeout: float,
    deadline: float | None,
    progress: Listener | None,
    keeps_trace: bool,
    on: str | Engine,
) -> ComparedRun:
    rows: list[Any] = []
    run = ComparedRun(entrant, network_name, rows)

    def listen(now: Progress) -> None:
        if now.row is not None:
            rows.append(now.row)
        if progress is not None:
            progress(run, now)

    faults = cluster.FaultPlan()
    for rank, factor in slow.items():
        if rank < entrant.nodes:
            faults = faults.slow(rank, factor)
    try:
        report = train(
            entrant.job, entrant.strategy, entrant.nodes, on, network,
            progress=listen, timeout=timeout, deadline=deadline, faults=faults,
        )  # fmt: skip
    except NonFiniteLoss as error:
        run.ended = f"diverged in epoch {error.epoch}"
        return run
    run.history = report.history
    run.bytes_sent = [sum(traffic.nbytes for traffic in rank.values()) for rank in report.trace.ledger()]
    run.shares = mean_shares([report.trace.shares(rank) for rank in range(report.nodes)])  # without the servers'
    run.staleness = report.staleness
    run.trace = report.trace if keeps_trace else None
    return run
