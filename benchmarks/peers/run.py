"""A run of `python -m benchmarks`: from what was typed to the table, the folder and the pages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from benchmarks.peers import compressors, launch, memory, pages, report, scaling, start
from benchmarks.peers.collectives import run as collectives_run
from benchmarks.peers.comparisons import BENCHMARKS, Comparison, Progress
from benchmarks.peers.conditions import conditions, is_installed
from benchmarks.peers.peer import MeasurementError
from benchmarks.peers.simulation import run as simulation_run
from benchmarks.peers.step import compiled, gpu
from benchmarks.peers.step import run as step_run
from benchmarks.peers.step.side import COMPILED, EAGER
from benchmarks.peers.step.workloads import WORKLOADS
from minidl.arguments import one_of, whole_number
from minidl.cli import engines, run_folder
from minidl.cli.display import LiveBar, say, show
from minidl.cli.engines import MOST_SIMULATED
from minidl.cli.quantities import parse_bytes
from minidl.cli.shared_options import items
from minidl.cores import cores

PEERS = {  # what is typed, and the sides that it means
    "torch": ("PyTorch eager", "PyTorch, CUDA", "gloo", "torch.multiprocessing.spawn"),
    "torch.compile": ("torch.compile",),
    "jax": ("jax.jit",),
    "mpich": ("MPICH",),
    "simgrid": ("SimGrid",),
    "none": (),
}
PIPED_WIDTH = 150  # columns, of a table that no terminal bounds


@dataclass
class Asked:
    """What was typed, checked."""

    benchmarks: list[str]
    workloads: list[str]
    threads: list[int]
    nodes: list[int]
    launched: list[int]
    scaled: list[int]
    sizes: list[int]
    ranks: list[int]
    rounds: int
    profile: bool
    write: bool
    simgrid_python: str
    chosen: set[str]
    skipped: list[str] = field(default_factory=list)
    profiles: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many rows the table has for each peer."""
        of = {
            "step": len(self.threads) * sum(len(step_run.alike(WORKLOADS[name], ())) for name in self.workloads),
            "compiler": 1,
            "memory": len(self.workloads),
            "scaling": len(self.scaled) * len(self.workloads),
            "collectives": len(self.nodes) * len(self.sizes),
            "simulation": len(self.ranks) * len(simulation_run.ENGINES),
            "launch": len(self.launched),
            "compressors": compressors.CASES,
            "start": len(start.CASES),
            "gpu": len(self.workloads),
        }
        return sum(of[name] for name in self.benchmarks)

    def peers(self, needs: dict[str, str]) -> list[str]:
        """Those of a benchmark's peers that are wanted and installed; `skipped` names the others."""
        wanted = [name for name in needs if name in self.chosen]
        missing = [name for name in wanted if not is_installed(needs[name])]
        self.skipped += [f"{name} is left out: {needs[name]} is not installed" for name in missing]
        return [name for name in wanted if name not in missing]


def run(options: dict[str, Any]) -> None:
    """Run every benchmark, print the table, write the folder and, with --write, the pages."""
    asked = checked(options)
    where = list(conditions())
    if asked.write:
        pages.write([], where, [])  # pages that cannot be written are found out before the measurements
    folder = run_folder.prepare(options["out"], "bench")
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    for name, value in where:
        say(console, f"{name}: {value}")
    found: list[Comparison] = []
    failures: list[str] = []
    try:
        with LiveBar(console, "measuring") as bar:
            for name in asked.benchmarks:
                try:
                    for one in MEASURED[name](asked, _progress(bar, name, asked.cases, found)):
                        found.append(one)
                except MeasurementError as error:
                    failures.append(f"{name}: {error}")
    except (KeyboardInterrupt, SystemExit):
        if found:
            report.write(folder, found)
        say(console, run_folder.what_is_left(folder))
        raise
    for title, operations in asked.profiles:
        show(console, report.profile_table(title, operations))
    if found:
        show(console, report.table(found))
    left_out = list(dict.fromkeys(asked.skipped))
    for line in left_out:
        say(console, line)
    for name, figures, met in report.overview(found):
        say(console, f"{name}: {figures}" + (f"; goals met: {met}" if met else ""))
    if found:
        report.write(folder, found)
        say(console, run_folder.contents(folder))
    else:
        folder.rmdir()
    if failures:
        raise MeasurementError("; ".join([*failures, *["the pages are as they were"] * asked.write]))
    if asked.write:
        pages.write(found, where, left_out)


def checked(options: dict[str, Any]) -> Asked:
    """What was typed; ValueError for what cannot be measured."""
    chosen = [one_of("--against", name, PEERS) for name in items("--against", options["against"], ",".join(PEERS))]
    many = "1,2" if cores() > 1 else "1"
    asked = Asked(
        benchmarks=[one_of("the benchmark", name, BENCHMARKS) for name in options["benchmarks"] or BENCHMARKS],
        workloads=[one_of("--workload", name, WORKLOADS) for name in items("--workload", options["workload"], "")]
        or list(WORKLOADS),
        threads=_numbers("--threads", options["threads"], many, at_least=1, at_most=cores()),
        nodes=_numbers("--nodes", options["nodes"], "2,4", at_least=2),
        launched=_numbers("--nodes", options["nodes"], "4", at_least=2),
        scaled=_numbers("--nodes", options["nodes"], "2", at_least=2),
        sizes=[_size(text) for text in items("--bytes", options["nbytes"], "4KB,64KB,1MB,16MB,100MB")],
        ranks=_numbers("--ranks", options["ranks"], "64,256", at_least=2, at_most=MOST_SIMULATED),
        rounds=whole_number("--rounds", options["rounds"], at_least=1),
        profile=options["profile"],
        write=options["write"],
        simgrid_python=options["simgrid_python"],
        chosen={side for name in chosen for side in PEERS[name]},
    )
    for name in ("workload", "threads", "nodes", "bytes", "ranks", "against"):
        if asked.write and options["nbytes" if name == "bytes" else name]:
            raise ValueError(f"--write takes the results of whole benchmarks: leave out --{name}")
    for count in asked.nodes:
        engines.check("processes", count)
    return asked


def _numbers(flag: str, given: list[str] | None, default: str, **bounds: Any) -> list[int]:
    numbers = []
    for text in items(flag, given, default):
        if not text.isdecimal():
            raise ValueError(f"{flag} takes whole numbers with commas between, such as 1,2, got {text!r}")
        numbers.append(whole_number(flag, int(text), **bounds))
    return numbers


def _size(text: str) -> int:
    nbytes = parse_bytes(text)
    if nbytes < 4 or nbytes % 4:
        raise ValueError(f"--bytes {text}: a vector of float32 has a multiple of 4 bytes, above 0")
    return nbytes


def _progress(bar: LiveBar, name: str, cases: int, found: list[Comparison]) -> Progress:
    def show(case: str, what: str) -> None:
        bar.show(len({one.key for one in found}), cases, f"{name}, {case}", what)

    return show


# ---- the benchmarks ----


def _steps(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    peers = asked.peers(step_run.PEERS)
    for threads in asked.threads:
        with ExitStack() as stack:
            sides = step_run.StepRun(threads, [EAGER, COMPILED, *peers], asked.rounds, progress, asked.skipped, stack)
            for workload in asked.workloads:
                compared = list(sides.compare(workload, step_run.alike(WORKLOADS[workload], peers)))
                yield from compared
                if asked.profile:
                    title = f"{workload}, {sides.setting}: {compared[0].limit:.0%} of the limit"
                    asked.profiles.append((title, sides.profile()))


def _compiler(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    yield from compiled.compare(asked.peers(step_run.PEERS), asked.rounds, progress, asked.skipped)


def _memory(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    yield from memory.compare(asked.workloads, asked.peers(memory.PEERS), progress, asked.skipped)


def _scaling(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    for nodes in asked.scaled:
        if nodes > cores():
            asked.skipped.append(f"scaling on {nodes} nodes is left out: each needs a core, and there are {cores()}")
        else:
            yield from scaling.compare(nodes, asked.workloads, asked.rounds, progress)


def _collectives(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    peers = asked.peers(collectives_run.PEERS)
    for nodes in asked.nodes:
        yield from collectives_run.compare(nodes, asked.sizes, peers, asked.rounds, progress, asked.skipped)


def _simulations(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    python = asked.simgrid_python if "SimGrid" in asked.chosen else None
    if python is not None and simulation_run.simgrid_version(python) is None:
        asked.skipped.append(f"SimGrid is left out: {python} cannot import simgrid (--simgrid-python names another)")
        python = None
    for ranks in asked.ranks:
        yield from simulation_run.compare(ranks, python, asked.rounds, progress)


def _gpu(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    if missing := gpu.missing():
        asked.skipped.append(f"gpu is left out: {missing}")
    else:
        yield from gpu.compare(asked.workloads, asked.peers(gpu.PEERS), asked.rounds, progress, asked.skipped)


def _launches(asked: Asked, progress: Progress) -> Iterator[Comparison]:
    peers = asked.peers(launch.PEERS)
    for nodes in asked.launched:
        yield from launch.compare(nodes, peers, asked.rounds, progress, asked.skipped)


MEASURED: dict[str, Callable[[Asked, Progress], Iterator[Comparison]]] = {
    "step": _steps,
    "compiler": _compiler,
    "memory": _memory,
    "scaling": _scaling,
    "collectives": _collectives,
    "simulation": _simulations,
    "launch": _launches,
    "compressors": lambda asked, progress: compressors.compare(asked.rounds, progress),
    "start": lambda asked, progress: start.compare(asked.rounds, progress),
    "gpu": _gpu,
}
