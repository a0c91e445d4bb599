"""`minidl memory`: what the memory of a node is filled with while it trains, before anything is allocated."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table
from typer import Context, Option

from minidl.cli.display import results_table, say, show
from minidl.cli.ending import ending
from minidl.cli.shared_options import STRATEGIES, Formats, Import, Model, Out, offer, picture_formats

if TYPE_CHECKING:  # each function imports what it calls, so that --help starts at once
    from minidl.cli.job import Options
    from minidl.parallel import Job, Strategy
    from minidl.parallel.memory import NodeMemory


def memory(
    context: Context,
    model: Model = "resnet",
    data: Annotated[
        str | None,
        Option(
            help="Data set whose samples the model reads, as for minidl train; by default digits, for gpt stdlib_text."
        ),
    ] = None,
    plan: Annotated[
        str | None,
        Option(help="As for minidl train: dp=8,tp=2 or spatial=2x4, also with shard=3, recompute=full."),
    ] = None,
    shard: Annotated[
        int | None,
        Option(help="shard= of the plan: replicas share out 1 the optimizer's state, 2 gradients too, 3 weights too."),
    ] = None,
    recompute: Annotated[str | None, Option(help="recompute= of the plan: full or selective.")] = None,
    nodes: Annotated[int, Option(help="Nodes, without --plan.")] = 1,
    strategy: Annotated[
        str | None,
        Option(
            help="Instead of --plan: such as sharded:stage=3, with settings; any strategy with --measure.",
            autocompletion=STRATEGIES,
        ),
    ] = None,
    batch_size: Annotated[int, Option(help="Samples of a minibatch, over all nodes.")] = 64,
    optimizer: Annotated[
        str | None,
        Option(
            help="As for minidl train; by default the model's (sgd with momentum, for gpt adamw).",
            autocompletion=offer("minidl.cli.strategies", "OPTIMIZERS"),
        ),
    ] = None,
    precision: Annotated[
        str | None, Option(help="As for minidl train: float32, bfloat16 or float16, with float32 masters.")
    ] = None,
    device_memory: Annotated[
        str | None, Option(help="What a node has, such as 80GB: says whether it suffices, and what would help.")
    ] = None,
    measure: Annotated[
        bool,
        Option("--measure", help="Also train a few minibatches on this machine, and print what the arrays held."),
    ] = False,
    all_ranks: Annotated[bool, Option("--all-ranks", help="A line for each rank, not the fullest one alone.")] = False,
    imported: Import = None,
    formats: Formats = None,
    out: Out = None,
    as_json: Annotated[bool, Option("--json", help="Print the results as one JSON document alone.")] = False,
) -> None:
    """Show what fills the memory of a node at its peak: weights, gradients, optimizer, activations, buffers.

    It is computed from shapes, so that a model of any size takes a second; --measure compares it with a run, and shows
    the run alone for strategies without a formula. The folder gets a picture, whose areas are bytes, by component and
    layer.
    """
    with ending("minidl memory"):
        from minidl.cli import run_folder
        from minidl.cli.imported import register_all
        from minidl.cli.models import name_of
        from minidl.cli.quantities import parse_bytes
        from minidl.parallel.memory import live
        from minidl.plots import treemap

        register_all(imported, "processes")
        endings = picture_formats(formats)
        capacity = None if device_memory is None else parse_bytes(device_memory)
        how: Any
        job, how, nodes, typed = _asked(context)
        if measure and getattr(how, "overlap", True) is None:  # as on processes of one machine
            how = replace(how, overlap=False)
        formula = _formula(job, how, nodes, measure)
        folder = run_folder.prepare(out, f"memory-{name_of(model)}-{nodes}")
        real = live(job, how, nodes, on="processes") if measure else None
        sources = {"formula": formula, "measured": real}
        found = {source: ranks for source, ranks in sources.items() if ranks is not None}
        source, ranks = next(iter(found.items()))
        worst = max(range(nodes), key=lambda rank: ranks[rank].total)
        advice = "" if capacity is None else _advice(job, typed if formula else None, ranks[worst], capacity)
        maps = {f"rank {worst}, {source}": ranks[worst].parts for source, ranks in found.items()}
        page = treemap.draw(maps, source=tuple(found), capacity=capacity or 0)
        for each in endings:
            page.savefig(folder / f"memory.{each}")
        if as_json:
            said = _as_json(ranks, worst, capacity, advice, all_ranks, folder, real)
            print(json.dumps({"source": source, **said}, indent=2))
            return
        console, both = Console(), real if formula else None
        title = f"Rank {worst} of {nodes}" + ", measured" * (formula is None)
        show(console, _table(ranks[worst], title, None if both is None else both[worst]))
        if both is not None:
            say(console, _difference(ranks, both, worst))
        if all_ranks:
            show(console, _all(ranks))
        say(console, f"{advice}\n" if advice else "")
        say(console, run_folder.contents(folder))


def _asked(context: Context) -> tuple[Job, Strategy, int, dict[str, str]]:
    """What to train, how, on how many nodes, and the settings of the plan that says so.

    Raises ValueError for options that contradict each other.
    """
    from minidl.cli import engines, job, strategies
    from minidl.cli.models import name_of
    from minidl.cli.train.options import completed, with_plan

    options: Options = context.params
    plan, nodes, strategy = options["plan"], options["nodes"], options["strategy"]
    typed = [f"{name}={options[name]}" for name in ("shard", "recompute") if options[name] is not None]
    if typed and strategy is not None:
        raise ValueError(
            f"--shard and --recompute are settings of a plan, not of --strategy {strategy}: leave it out, and give "
            f"--plan dp={nodes},{','.join(typed)}"
        )
    for setting in typed:
        name = setting.partition("=")[0]
        if plan is not None and f"{name}=" in plan and setting not in plan.split(","):
            raise ValueError(f"--{name} {options[name]} and --plan {plan}: give one of them")
        plan = f"dp={nodes}" if plan is None else plan
        plan = plan if f"{name}=" in plan else f"{plan},{setting}"
    if plan is not None:
        sources = {name: context.get_parameter_source(name) for name in ("strategy", "nodes")}
        given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
        options = options | with_plan(plan, options, given)
    has_host = plan is None and getattr(strategy and strategies.parse(strategy)[0], "offload", None) is not None
    if has_host and options["measure"]:
        raise ValueError(
            "--measure counts the arrays of host and device together, the formula those of the device alone: leave out "
            "--measure, or let minidl train --on simulation --device-memory 2MB@10us/16GB count what is on the device"
        )
    is_text = name_of(options["model"]) == "gpt"
    data, size = options["data"] or ("stdlib_text" if is_text else "digits"), options["batch_size"]
    rest: Options = {"epochs": None, "lr": None, "momentum": None, "lr_decay": None, "kernels": None, "flops": None}
    rest |= {"seed": 0, "algorithm": "auto", "bucket_mb": 1.0, "on": "simulation", "network": "none", "data": data}
    rest["device_memory"] = None  # of a simulated node: here the option is a size alone
    if has_host:  # as every process has
        rest["on"] = "processes"
    nodes = options["nodes"]
    rest["nodes"] = min(nodes, engines.MOST_SIMULATED)  # there may be more: none is simulated
    complete, how, _ = completed(options | rest)
    made = job.build(complete | {"batch_size": 1})
    made = replace(made, batch_size=size, data=_as_many(made, size))
    return made, how, nodes, _as_plan(complete, made, how, nodes)


def _formula(job: Job, how: Strategy, nodes: int, is_measured: bool) -> list[NodeMemory] | None:
    """The memory of each rank, predicted; None if that is unknown, and a run is measured."""
    from minidl.kernels.shapes import NoContents
    from minidl.parallel.memory import MemoryUnknown, predicted

    try:
        ranks = predicted(job, how, nodes)
    except (MemoryUnknown, NoContents) as error:
        if is_measured:
            return None
        reason = getattr(error, "reason", "the model decides by numbers that it computes")
        raise ValueError(f"{reason}: add --measure, which trains a few minibatches on this machine") from error
    if is_measured:
        _check_room(ranks)
    return ranks


def _as_plan(options: Options, made: Job, strategy: Strategy, nodes: int) -> dict[str, str]:
    """The settings of --plan for a strategy that was typed."""
    from minidl.cli import components
    from minidl.parallel import Hybrid

    text, known = options["strategy"], components.settings(Hybrid)
    typed = {} if text is None else components.parse("strategy", text).named
    typed = {"micro_batches" if name == "accumulate" else name: value for name, value in typed.items()}
    plan = strategy.plan(made, nodes)
    shard = {} if plan.shard is None else {"shard": str(plan.shard)}
    extents = {name: str(extent) for name in ("pp", "tp") if (extent := getattr(plan, name)) > 1}
    others = {name: value for name, value in typed.items() if name in known and name not in ("dp", "pp", "tp")}
    return {"dp": str(plan.dp), **extents, **shard, **others}


def _as_many(made: Job, count: int) -> Any:
    """Data of that many samples, each the first one, in the memory of one: its shape is all that is needed."""
    import numpy as np

    from minidl.data import Dataset, Splits
    from minidl.data.pairs import minibatch

    arrays = minibatch(made.build_data().train, np.arange(1))
    x, y = (np.broadcast_to(array, (count, *array.shape[1:])) for array in arrays)
    dataset = Dataset(x, y)
    return Splits(dataset, dataset)


def _advice(job: Job, plan: dict[str, str] | None, worst: NodeMemory, capacity: int) -> str:
    """Whether the memory fits into a device of that capacity; if not, the first change of a known plan that helps."""
    import shlex
    from contextlib import suppress

    from minidl.cli import strategies
    from minidl.cli.train.options import with_plan
    from minidl.parallel.memory import predicted
    from minidl.parallel.spatial.division import grid_of
    from minidl.plots.style import bytes_text

    size, rest = bytes_text(capacity), capacity - worst.total
    if rest >= 0:
        return f"It fits into {size}: {bytes_text(rest)} are left."
    said = f"It does not fit into {size}: {bytes_text(-rest)} are missing."
    if plan is None:
        return said

    def changed(**change: object) -> tuple[str, Any, int]:
        """A plan with this change as it is typed, its strategy, and its nodes."""
        text = ",".join(f"{name}={value}" for name, value in (plan | change).items())
        options = with_plan(text, {}, ())
        return f"--plan {shlex.quote(text)}", strategies.parse(options["strategy"])[0], options["nodes"]

    _, now, nodes = changed()
    count, samples = now.made_schedule().micro_batches, -(-job.batch_size // now.plan(job, nodes).dp)
    rows, columns = grid_of("spatial", now.spatial)
    tried: dict[str, int] = {}
    for name, value in (
        *(("micro_batches", count * 2**i) for i in range(1, (samples // count).bit_length())),
        *(("shard", stage) for stage in (1, 2) if stage > (now.shard or 0)),
        *(("recompute", kind) for kind in ("selective", "full") if not now.recompute),
        *(("shard", 3) for _ in range(now.shard != 3)),
        ("tp", 2 * now.tp),
        ("spatial", f"{2 * rows}x{columns}"),
    ):
        with suppress(ValueError):  # the change does not go with the model, the minibatch or the plan
            text, change, more = changed(**{name: value})
            total = max(each.total for each in predicted(job, change, more))
            on_more = f" on {more} nodes instead of {nodes}" if more > nodes else ""
            if total <= capacity:
                return f"{said} It fits with {text}{on_more}: {bytes_text(total)}."
            tried[text + on_more] = total
    if not tried or min(tried.values()) >= worst.total:
        return f"{said} More nodes along pp, tp or spatial would help."
    best = min(tried, key=lambda each: tried[each])
    return f"{said} {best} helps most, but still takes {bytes_text(tried[best])}."


def _check_room(ranks: list[NodeMemory]) -> None:
    """Raise ValueError if the ranks together need more than this machine has."""
    import os

    from minidl.plots.style import bytes_text

    need, there = sum(each.total for each in ranks), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > there:
        raise ValueError(
            f"--measure runs {len(ranks)} node{'s' * (len(ranks) > 1)} on this machine, which has {bytes_text(there)}; "
            f"{bytes_text(need)} are needed: leave it out, or give a smaller model or minibatch"
        )


def _table(memory: NodeMemory, title: str, real: NodeMemory | None) -> Table:
    from minidl.plots.style import bytes_text

    title = f"{title} at its peak, in {memory.moment}"
    table = results_table(title, "")
    table.min_width = len(title)
    names = ("component", "bytes", "share") if real is None else ("component", "formula", "measured", "difference")
    for name in names:
        table.add_column(name, justify="left" if name == "component" else "right", no_wrap=True)
    measured = {} if real is None else {**real.by_component, "sum": real.total}
    for component, nbytes in (*memory.by_component.items(), ("sum", memory.total)):
        if real is None:
            table.add_row(component, bytes_text(nbytes), f"{nbytes / memory.total:.1%}")
        else:
            difference = f"{(nbytes - measured[component]) / real.total:+.2%}"
            table.add_row(component, bytes_text(nbytes), bytes_text(measured[component]), difference)
    return table


def _difference(ranks: list[NodeMemory], real: list[NodeMemory], worst: int) -> str:
    """How far formula and arrays differ on any rank, and what a tracer of the process has seen in addition."""
    from minidl.plots.style import bytes_text

    most = max(abs(each.total / measured.total - 1) for each, measured in zip(ranks, real, strict=True))
    memory, traced = real[worst], real[worst].traced or 0
    return (
        f"Differences are shares of the measured sum; its peak was in {memory.moment!r}. No rank's sum differs by more "
        f"than {most:.2%}. A tracer of the process saw {bytes_text(traced)}, {traced / memory.total - 1:.1%} more than "
        "the arrays: what operations need while they compute, and Python's objects.\n"
    )


def _all(ranks: list[NodeMemory]) -> Table:
    """A line for the ranks that have the same memory."""
    from minidl.plots.style import bytes_text

    table = results_table("All ranks, each at its own peak", "")
    for name in ("ranks", "bytes", "peak in", "largest"):
        table.add_column(name, justify="right" if name == "bytes" else "left", overflow="fold")
    runs: dict[NodeMemory, list[str]] = {}
    for memory, group in groupby(range(len(ranks)), key=ranks.__getitem__):
        first, *more = group
        runs.setdefault(memory, []).append(f"{first} to {more[-1]}" if more else str(first))
    for memory, numbers in runs.items():
        component, nbytes = max(memory.by_component.items(), key=lambda each: each[1])
        largest = f"{component}, {bytes_text(nbytes)}"
        table.add_row(", ".join(numbers), bytes_text(memory.total), memory.moment, largest)
    return table


def _as_json(
    ranks: list[NodeMemory], worst: int, capacity: int | None, advice: str, all_ranks: bool, folder: Path,
    real: list[NodeMemory] | None,
) -> dict[str, Any]:  # fmt: skip
    fullest = ranks[worst]
    said: dict[str, Any] = {"nodes": len(ranks), "rank": worst, "moment": fullest.moment, "bytes": fullest.total}
    said |= {"by_component": fullest.by_component, "by_layer": fullest.by_layer}
    if all_ranks:
        said["bytes_by_rank"] = [each.total for each in ranks]
    if capacity is not None:
        said |= {"device_memory": capacity, "fits": fullest.total <= capacity, "advice": advice}
    if real is not None:
        node = real[worst]
        measured = {"moment": node.moment, "bytes": node.total, "by_component": node.by_component}
        said["measured"] = measured | {"traced": node.traced, "bytes_by_rank": [each.total for each in real]}
    return said | {"folder": str(folder)}
