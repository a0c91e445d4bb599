"""A run of `minidl simulate`: from what was typed to the tables and the folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Console

from minidl.arguments import one_of, whole_number
from minidl.cli import run_folder
from minidl.cli.display import say
from minidl.cli.engines import LONGEST, MOST_SIMULATED
from minidl.cli.quantities import parse_bytes
from minidl.cli.several_words import items
from minidl.cli.simulate import report
from minidl.cli.simulate.cases import ALGORITHMS, DTYPE, Case, SimulatedCase, combinations, simulated
from minidl.cluster.cost.network import PRESETS, Network

MAX_PANELS = 12


def run(options: dict[str, Any]) -> None:
    """Simulate every combination of the options, print the tables, and write the folder."""
    collective = options["collective"]
    algorithms = _algorithms(collective, items("--algorithm", options["algorithm"], ""))
    networks = _networks(options, items("--network", options["network"], "10gbe"))
    sizes = sorted({_size(text) for text in items("--bytes", options["nbytes"], "100MB")})
    counts = sorted({_nodes(text) for text in items("--nodes", options["nodes"], "2,4,8,16,32")})
    panels = len(networks) * len(sizes)
    if panels > MAX_PANELS:
        raise ValueError(
            f"{len(networks)} networks and {len(sizes)} sizes are {panels} panels of a picture, in which at most "
            f"{MAX_PANELS} can be read: ask for fewer"
        )
    cases = combinations(collective, algorithms, networks, sizes, counts)
    for case in cases:
        if case.formula() == 0:
            raise ValueError(f"{case}, takes no time at all: give an --alpha above 0")
        if not case.formula() < LONGEST:
            raise ValueError(f"{case}, takes {case.formula():g} s: give fewer bytes, a smaller --alpha or --beta")
    drawn = [_case_of(text, cases) for text in items("--trace-of", options["trace_of"], "")]

    folder = run_folder.prepare(options["out"], f"simulate-{collective}")
    console = Console()
    runs: list[SimulatedCase] = []
    with console.status("") as status:
        for number, case in enumerate(cases, 1):
            status.update(f"simulating {case.algorithm} on {case.nodes} nodes ({number} of {len(cases)})")
            runs.append(simulated(case))
        status.update("drawing the pictures")
        report.write_times(runs, folder)
        report.picture(runs).savefig(folder / "times.png")
        drawn = drawn or _fastest_and_slowest(runs)
        report.draw_timelines(drawn, folder)
    for table in report.tables(runs):
        console.print(table)
        console.print()
    for case in drawn:
        say(console, f"Timeline: {case}")
    say(console, run_folder.contents(folder))


def _fastest_and_slowest(runs: list[SimulatedCase]) -> list[Case]:
    """The two runs, on the largest number of nodes that a picture shows well; one run if all take equally long."""
    counts = {run.case.nodes for run in runs}
    count = max((count for count in counts if count <= 8), default=min(counts))
    first = next(run.case for run in runs if run.case.nodes == count)
    compared = [run for run in runs if replace(run.case, algorithm=first.algorithm) == first]
    fastest, slowest = (choose(compared, key=lambda run: run.seconds) for choose in (min, max))
    return [fastest.case] if fastest.seconds == slowest.seconds else [fastest.case, slowest.case]


# ---- what is typed ----


def _algorithms(collective: str, names: list[str]) -> list[str]:
    known = list(ALGORITHMS[one_of("--collective", collective, ALGORITHMS)])
    if names and len(known) == 1:
        raise ValueError(f"{collective} is always done by {known[0]!r}: leave out --algorithm, which is for all_reduce")
    return [one_of("--algorithm", name, known) for name in names] or known


def _networks(options: dict[str, Any], names: list[str]) -> list[tuple[str, Network]]:
    alpha, beta, gamma = options["alpha"], options["beta"], options["gamma"]
    names = [one_of("--network", name.lower(), PRESETS) for name in names]
    networks = [Network.preset(name) for name in names]
    if alpha is None and beta is None:
        return [(name, replace(one, gamma=gamma)) for name, one in zip(names, networks, strict=True)]
    if len(networks) > 1:
        raise ValueError("--alpha and --beta describe one network: give at most one --network with them")
    own = networks[0]
    own = Network(own.alpha if alpha is None else alpha, own.beta if beta is None else beta, gamma)
    return [(f"alpha {own.alpha:g}, beta {own.beta:g}", own)]


def _size(text: str) -> int:
    nbytes = parse_bytes(text)
    if nbytes < 1 or nbytes % DTYPE.itemsize:
        raise ValueError(f"--bytes {text}: a vector of {DTYPE} has a multiple of {DTYPE.itemsize} bytes, above 0")
    return nbytes


def _nodes(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"--nodes takes whole numbers with commas between, such as 2,4,8, got {text!r}")
    return whole_number("--nodes", int(text), at_least=2, at_most=MOST_SIMULATED)


def _case_of(text: str, cases: list[Case]) -> Case:
    """The first of the cases that ALGORITHM:NODES, or NODES alone, names."""
    algorithm, _, count = text.rpartition(":")
    for case in cases:
        if str(case.nodes) == count and algorithm in ("", case.algorithm):
            return case
    example = f"{cases[0].algorithm}:{cases[0].nodes}"
    raise ValueError(f"--trace-of {text} is none of the runs: name one of them by ALGORITHM:NODES, such as {example}")
