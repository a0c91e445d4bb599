"""A run of `minidl simulate`: from what was typed to the tables and the folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from minidl import cluster
from minidl.arguments import one_of, whole_number
from minidl.cli import engines, mpi_job, run_folder
from minidl.cli.display import LiveBar, say, show
from minidl.cli.engines import LONGEST, MOST_SIMULATED
from minidl.cli.quantities import parse_bytes
from minidl.cli.shared_options import items
from minidl.cli.simulate import report
from minidl.cli.simulate.cases import (
    ALGORITHMS,
    DTYPE,
    HIERARCHICAL,
    IMPORTED_ALL_REDUCES,
    Case,
    SimulatedCase,
    combinations,
    measured,
    simulated,
)
from minidl.cluster.cost.network import PRESETS, Network

MAX_PANELS = 12
MOST_DRAWN = 64  # nodes of a timeline that was not asked for
MOST_IN_A_COLLECTIVE = 16_384  # nodes without shared links; their ring, half a billion messages, takes over a minute
MOST_IN_AN_ALL_TO_ALL = 4_096  # nodes; estimated: the lists of 16,384 nodes would take 8 GB
Named = tuple[str, Network]


def run(options: dict[str, Any]) -> None:
    """Simulate every combination of the options, print the tables, and write the folder."""
    on = _engine(options)
    cases = _cases(options, on)
    drawn = [_case_of(text, cases) for text in items("--trace-of", options["trace_of"], "")]
    folder = cluster.once(lambda: run_folder.prepare(options["out"], f"simulate-{cases[0].collective}"), on)
    console = Console()
    with LiveBar(console, "simulating") as bar:
        runs = cluster.once(lambda: _simulated(cases, bar), on)
    if options["measured"]:
        with LiveBar(console, "making the calls for real") as bar:
            made: list[SimulatedCase] = []
            for one in measured(runs, on):
                made.append(one)
                bar.show(len(made), len(runs), f"{len(made)} of {len(runs)} calls made for real", "")
            runs = made
    if not cluster.is_first(on):
        return
    drawn = drawn or _fastest_and_slowest(runs)
    with LiveBar(console, "drawing the pictures"):
        _write(runs, drawn, folder)
    for table in report.tables(runs):
        show(console, table)
        console.print()
    if len({run.case.network_name for run in runs}) > 1 and len({run.case.algorithm for run in runs}) > 1:
        show(console, report.winners(runs))
        console.print()
    for case in drawn:
        say(console, f"Timeline: {case}")
    if not drawn:
        say(console, f"No timeline of more than {MOST_DRAWN} nodes is drawn unless --trace-of names it")
    say(console, run_folder.contents(folder))


def _simulated(cases: list[Case], bar: LiveBar) -> list[SimulatedCase]:
    runs, done, total = [], 0, sum(case.nodes for case in cases)  # each takes a time that grows with its nodes
    for number, case in enumerate(cases, 1):
        bar.show(done, total, f"simulating {number} of {len(cases)}", f"{case.algorithm} on {case.nodes} nodes")
        runs.append(simulated(case))
        done += case.nodes
    return runs


def _write(runs: list[SimulatedCase], drawn: list[Case], folder: Path) -> None:
    report.write_times(runs, folder)
    report.picture(runs).savefig(folder / "times.png")
    if runs[0].measured:
        report.picture(runs, "measured").savefig(folder / "measured.png")
    if drawn:
        report.draw_timelines(drawn, folder)
    first = runs[0].case
    if all(run.case.network_name == first.network_name for run in runs) and first.network_name not in PRESETS:
        first.network.save(folder / "network.json", f"minidl simulate, {first.network_name}")


def _fastest_and_slowest(runs: list[SimulatedCase]) -> list[Case]:
    """The two runs, on the largest number of nodes that a picture shows well; one run if all take equally long.

    None if all have more nodes than a picture can show: a timeline of 1,024 nodes has a million bars.
    """
    counts = {run.case.nodes for run in runs}
    if min(counts) > MOST_DRAWN:
        return []
    count = max((count for count in counts if count <= 8), default=min(counts))
    first = next(run.case for run in runs if run.case.nodes == count)
    compared = [run for run in runs if replace(run.case, algorithm=first.algorithm) == first]
    fastest, slowest = (choose(compared, key=lambda run: run.seconds) for choose in (min, max))
    return [fastest.case] if fastest.seconds == slowest.seconds else [fastest.case, slowest.case]


# ---- what is typed ----


def _engine(options: dict[str, Any]) -> str:
    """Where --measured makes the calls; ValueError for an --on that nothing uses."""
    on: str = options["on"] or "processes"
    one_of("--on", on, engines.REAL)
    if options["on"] is not None and not options["measured"]:
        raise ValueError("--on says where --measured makes the calls for real: give --measured too, or leave out --on")
    mpi_job.check(on)
    return on


def _cases(options: dict[str, Any], on: str) -> list[Case]:
    """The calls that are asked for; ValueError for what cannot be simulated, or measured here."""
    collective, is_measured = options["collective"], options["measured"]
    algorithms = _algorithms(collective, items("--algorithm", options["algorithm"], ""))
    per_group = options["per_group"]
    if per_group is not None and HIERARCHICAL not in algorithms:
        raise ValueError("--per-group is for hierarchical: leave it out, or add --algorithm hierarchical")
    sizes = _sizes(collective, options["nbytes"], "1MB" if is_measured else "100MB")
    fits = is_measured and all(options[name] is None for name in ("network", "alpha", "beta"))
    found = [] if fits else networks(options, items("--network", options["network"], "10gbe"))
    if is_measured and len(found) > 1:
        raise ValueError("--measured is set beside one network: give at most one --network with it")
    texts = items("--nodes", options["nodes"], _nodes_by_default(is_measured, on, found))
    counts = sorted({_nodes(text) for text in texts})
    _check_most(counts[-1], collective, found, [name for name in algorithms if name in IMPORTED_ALL_REDUCES])
    if is_measured:
        for count in counts:
            engines.check(on, count)
    if fits:
        found = [_this_machine(on, counts[0] if mpi_job.nodes_by_mpiexec(0) else 2, options["gamma"])]
    if len(found) * len(sizes) > MAX_PANELS:
        raise ValueError(
            f"{len(found)} networks and {len(sizes)} sizes are {len(found) * len(sizes)} panels of a picture, in which "
            f"at most {MAX_PANELS} can be read: ask for fewer"
        )
    cases = combinations(collective, algorithms, found, sizes, counts, per_group)
    for case in cases:
        case.network.check(case.nodes)
        seconds = (replace(case, algorithm="ring") if case.is_imported else case).alone()
        if seconds == 0:
            raise ValueError(f"{case}, takes no time at all: give an --alpha above 0")
        if not seconds < LONGEST:
            raise ValueError(f"{case}, takes {seconds:g} s: give fewer bytes, a smaller --alpha or --beta")
    return cases


def _nodes_by_default(is_measured: bool, on: str, found: list[Named]) -> str:
    """As many as mpiexec has started; all that the topology has; otherwise several numbers."""
    if is_measured:
        return str((on == "mpi" and mpi_job.nodes_by_mpiexec(0)) or "2,4")
    ranks = [network.ranks for _, network in found if network.ranks is not None]
    return str(min(ranks)) if ranks else "2,4,8,16,32"


def _this_machine(on: str, nodes: int, gamma: float | None) -> Named:
    """A network that is fitted now to messages on the engine that makes the calls."""
    network = cluster.calibrate(nodes, on)
    return f"{on}, calibrated", network if gamma is None else replace(network, gamma=gamma)


def _algorithms(collective: str, names: list[str]) -> list[str]:
    known = list(ALGORITHMS[one_of("--collective", collective, ALGORITHMS)])
    if collective == "all_reduce":
        known += IMPORTED_ALL_REDUCES
    if names and len(known) == 1:
        raise ValueError(f"{collective} is always done by {known[0]!r}: leave out --algorithm, which is for all_reduce")
    return [one_of("--algorithm", name, known) for name in names] or known


def _sizes(collective: str, texts: list[str] | None, by_default: str) -> list[int]:
    if collective != "barrier":
        return sorted({_size(text) for text in items("--bytes", texts, by_default)})
    if texts:
        raise ValueError("--bytes is the size of a vector, and a barrier sends none: leave it out")
    return [0]


def _size(text: str) -> int:
    nbytes = parse_bytes(text)
    if nbytes < 1 or nbytes % DTYPE.itemsize:
        raise ValueError(f"--bytes {text}: a vector of {DTYPE} has a multiple of {DTYPE.itemsize} bytes, above 0")
    return nbytes


def _nodes(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"--nodes takes whole numbers with commas between, such as 2,4,8, got {text!r}")
    return whole_number("--nodes", int(text), at_least=2, at_most=MOST_IN_A_COLLECTIVE)


def _check_most(nodes: int, collective: str, found: list[Named], imported: list[str]) -> None:
    """Raise ValueError if this collective would take hours or many gigabytes with this number of nodes."""
    has_links = any(network.topology is not None for _, network in found)
    if (has_links or imported) and nodes > MOST_SIMULATED:
        what = "nodes of a topology" if has_links else f"nodes by {imported[0]}"
        why = f"at most {MOST_SIMULATED:,} {what} are simulated, because their messages are played one by one"
        raise ValueError(f"--nodes {nodes}: {why}")
    if collective == "all_to_all" and nodes > MOST_IN_AN_ALL_TO_ALL:
        why = f"an all_to_all is simulated on at most {MOST_IN_AN_ALL_TO_ALL:,}, because each has an item for each"
        raise ValueError(f"--nodes {nodes}: {why}")


def _case_of(text: str, cases: list[Case]) -> Case:
    """The first of the cases that ALGORITHM:NODES, or NODES alone, names."""
    algorithm, _, count = text.rpartition(":")
    for case in cases:
        if str(case.nodes) == count and algorithm in ("", case.algorithm):
            return case
    example = f"{cases[0].algorithm}:{cases[0].nodes}"
    raise ValueError(f"--trace-of {text} is none of the runs: name one of them by ALGORITHM:NODES, such as {example}")


# ---- the networks: with a name, from a file, by their constants, or a topology ----


def networks(options: dict[str, Any], names: list[str]) -> list[Named]:
    """Each network with the name that tables and pictures give it; `names`: what --network says, or its default.

    Raises
        ValueError  an unknown name, constants that cannot be, or options that do not go together
        OSError     a file that cannot be read
    """
    alpha, beta, gamma = options["alpha"], options["beta"], options["gamma"]
    found = [(name, engines.named_network(name)) for name in names]
    if gamma is not None:
        found = [(name, replace(one, gamma=gamma)) for name, one in found]
    if alpha is None and beta is None:
        return found
    if len(found) > 1:
        raise ValueError("--alpha and --beta describe one network: give at most one --network with them")
    name, base = found[0]
    if base.topology is not None:
        raise ValueError(
            f"--alpha and --beta cannot replace the links of {name}: write them as KIND:SIZES@LATENCY/SPEED"
        )
    typed = Network(base.alpha if alpha is None else alpha, base.beta if beta is None else beta, base.gamma)
    return [(f"alpha {typed.alpha:g}, beta {typed.beta:g}", typed)]
