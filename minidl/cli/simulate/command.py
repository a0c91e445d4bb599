"""`minidl simulate`: what if there were more nodes, another network, another algorithm?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from minidl.cli.ending import ending
from minidl.cli.several_words import items

if TYPE_CHECKING:
    from minidl.cli.simulate.cases import Case, Outcome
    from minidl.cluster.network import Network

MAX_NODES = 1024
MAX_PANELS = 12


def simulate(
    collective: Annotated[
        str,
        typer.Option(
            help="all_reduce, broadcast, reduce, reduce_scatter, all_gather, gather, scatter, all_to_all or barrier."
        ),
    ] = "all_reduce",
    algorithm: Annotated[
        list[str] | None, typer.Option(help="Of all_reduce: ring, tree, ..., auto; repeatable. By default all of them.")
    ] = None,
    nodes: Annotated[list[str] | None, typer.Option(help="How many: 2,4,8,16,32 by default.")] = None,
    nbytes: Annotated[
        list[str] | None,
        typer.Option("--bytes", help="Of the whole vector, float32: 64KiB, 100MB (the default); repeatable."),
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(help="1gbe, 10gbe (the default), 100gbe, infiniband or nvlink; repeatable."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Seconds a message, in place of the network's.")] = None,
    beta: Annotated[float | None, typer.Option(help="Seconds a byte, in place of the network's.")] = None,
    gamma: Annotated[float, typer.Option(help="Seconds a byte reduced.")] = 0.0,
    trace_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ALGORITHM:NODES",
            help="Whose timeline is drawn; repeatable. By default of the fastest and the slowest on up to 8 nodes.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for table and pictures; by default in runs/.")] = None,
) -> None:
    """Simulate a collective on many nodes, and compare algorithms, networks and sizes.

    Lists are given with commas, or by repeating the option. Each run is simulated message by message on a virtual clock
    (nodes compute in no time, gamma aside) and stands beside its formula. The folder gets the table as CSV, the times
    as a picture, and timelines, one above the other as a picture and each for Perfetto.
    """
    with ending("simulate"):
        from minidl.cli.simulate import cases as what_if  # here, so that --help comes at once

        algorithms = _algorithms(collective, items("--algorithm", algorithm, ""))
        networks = _networks(items("--network", network, "10gbe"), alpha, beta, gamma)
        sizes = sorted({_size(text) for text in items("--bytes", nbytes, "100MB")})
        counts = sorted({_nodes(text) for text in items("--nodes", nodes, "2,4,8,16,32")})
        panels = len(networks) * len(sizes)
        if panels > MAX_PANELS:
            raise ValueError(
                f"{len(networks)} networks and {len(sizes)} sizes are {panels} panels of a picture, in which at most "
                f"{MAX_PANELS} can be read: ask for fewer"
            )
        cases = what_if.cases(collective, algorithms, networks, sizes, counts)
        for case in cases:
            if case.formula() == 0:
                raise ValueError(f"{case}, takes no time at all: give an --alpha above 0")
            if not case.formula() < what_if.LONGEST:
                raise ValueError(f"{case}, takes {case.formula():g} s: give fewer bytes, a smaller --alpha or --beta")
        drawn = [_case_of(text, cases) for text in items("--trace-of", trace_of, "")]
        _run(cases, drawn, out)


def _run(cases: list[Case], drawn: list[Case], out: Path | None) -> None:
    """Simulate the cases, draw those that are to be drawn, and write the folder."""
    from rich.console import Console

    from minidl.cli import run_folder
    from minidl.cli.simulate import cases as what_if
    from minidl.cli.simulate import report as what_if_report
    from minidl.cli.train.summary import contents

    folder = run_folder.prepare(out, f"simulate-{cases[0].collective}", None)
    console = Console()
    outcomes: list[Outcome] = []
    with console.status("") as status:
        for number, case in enumerate(cases, 1):
            status.update(f"simulating {case.algorithm} on {case.nodes} nodes ({number} of {len(cases)})")
            outcomes.append(what_if.outcome(case))
        status.update("drawing the pictures")
        what_if_report.write_csv(outcomes, folder / "times.csv")
        what_if_report.picture(outcomes).savefig(folder / "times.png")
        drawn = drawn or _fastest_and_slowest(outcomes)
        what_if_report.draw_timelines(drawn, folder)
    for table in what_if_report.tables(outcomes):
        console.print(table)
        console.print()
    for case in drawn:
        console.print(f"Timeline: {case}", highlight=False, markup=False, soft_wrap=True)
    console.print(contents(folder), highlight=False, markup=False, soft_wrap=True)


def _fastest_and_slowest(outcomes: list[Outcome]) -> list[Case]:
    """Of the runs on the largest number of nodes that a picture shows well; one, if there is no more to compare."""
    counts = {outcome.case.nodes for outcome in outcomes}
    count = max((count for count in counts if count <= 8), default=min(counts))
    place = next(outcome.case for outcome in outcomes if outcome.case.nodes == count)
    runs = [outcome for outcome in outcomes if replace(outcome.case, algorithm=place.algorithm) == place]
    fastest, slowest = (choose(runs, key=lambda run: run.seconds) for choose in (min, max))
    return [fastest.case] if fastest.seconds == slowest.seconds else [fastest.case, slowest.case]


# ---- what is typed ----


def _algorithms(collective: str, names: list[str]) -> list[str]:
    from minidl.cli.simulate.cases import ALGORITHMS
    from minidl.data.checks import one_of

    one_of("collective", collective, ALGORITHMS)
    known = list(ALGORITHMS[collective])
    if names and len(known) == 1:
        raise ValueError(f"{collective} is always done by {known[0]!r}: leave out --algorithm, which is for all_reduce")
    return [one_of("algorithm", name, known) for name in names] or known


def _networks(names: list[str], alpha: float | None, beta: float | None, gamma: float) -> list[tuple[str, Network]]:
    from minidl.cluster.network import PRESETS, Network
    from minidl.data.checks import one_of

    names = [one_of("network", name.lower(), PRESETS) for name in names]
    networks = [Network.preset(name) for name in names]
    if alpha is None and beta is None:
        return [(name, replace(one, gamma=gamma)) for name, one in zip(names, networks, strict=True)]
    if len(networks) > 1:
        raise ValueError("--alpha and --beta describe one network: give at most one --network beside them")
    own = networks[0]
    own = Network(own.alpha if alpha is None else alpha, own.beta if beta is None else beta, gamma)
    return [(f"alpha {own.alpha:g}, beta {own.beta:g}", own)]


def _size(text: str) -> int:
    from minidl.cli.quantities import parse_bytes
    from minidl.cli.simulate.cases import DTYPE

    nbytes = parse_bytes(text)
    if nbytes < 1 or nbytes % DTYPE.itemsize:
        raise ValueError(f"--bytes {text}: a vector of {DTYPE} has a multiple of {DTYPE.itemsize} bytes, above 0")
    return nbytes


def _nodes(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"--nodes takes whole numbers with commas between, such as 2,4,8, got {text!r}")
    if not 2 <= int(text) <= MAX_NODES:
        raise ValueError(f"--nodes must be 2 to {MAX_NODES}, got {text}")
    return int(text)


def _case_of(text: str, cases: list[Case]) -> Case:
    """The first of the cases that ALGORITHM:NODES, or NODES alone, names."""
    algorithm, _, count = text.rpartition(":")
    for case in cases:
        if str(case.nodes) == count and algorithm in ("", case.algorithm):
            return case
    example = f"{cases[0].algorithm}:{cases[0].nodes}"
    raise ValueError(f"--trace-of {text} is none of the runs: name one of them by ALGORITHM:NODES, such as {example}")
