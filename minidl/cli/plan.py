"""`minidl plan`: the fastest ways to divide the training of a model over a cluster, in closed form."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table
from typer import Option

from minidl.cli.display import results_table, say, show
from minidl.cli.ending import ending
from minidl.cli.shared_options import Formats, Model, Out, offer, picture_formats

if TYPE_CHECKING:  # each function imports what it calls, so that --help starts at once
    from minidl.parallel.planner import Machine, Planned
    from minidl.parallel.planner.costs import PlannedModel

SIZES = ("layers", "width", "heads", "context", "vocabulary", "experts", "top")
"""Settings of gpt, as they are typed."""


def plan(
    model: Model = "gpt:layers=32,width=4096,heads=32,context=2048",
    data: Annotated[str, Option(help="Data set whose samples a model other than gpt reads.")] = "digits",
    cluster: Annotated[
        str,
        Option(
            help="a100x8, h100x8, or a file like cluster.toml, whose amounts have units (minidl/for_engineers.md).",
            autocompletion=offer("minidl.parallel.planner", "MACHINES", more="*.toml"),
        ),
    ] = "a100x8",
    nodes: Annotated[int | None, Option(help="Nodes of the cluster, each with all its accelerators.")] = None,
    batch_size: Annotated[
        int, Option("--batch-size", "--batch", help="Samples, or sequences, of a minibatch, over all nodes.")
    ] = 512,
    top: Annotated[int, Option(help="Lines of the table.")] = 10,
    published: Annotated[
        bool, Option("--published", help="Print published step times next to the formula's instead.")
    ] = False,
    formats: Formats = None,
    out: Out = None,
    as_json: Annotated[bool, Option("--json", help="Print the results as one JSON document alone.")] = False,
) -> None:
    """Search the fastest ways to divide a model over a cluster: replicas, stages, shards, schedule, recomputation.

    Every number is a formula's: nothing is run or allocated. The folder gets a picture of time against memory.
    """
    with ending("minidl plan"):
        from minidl.arguments import whole_number
        from minidl.cli import run_folder
        from minidl.cli.cluster_file import machine as machine_of
        from minidl.cli.models import name_of
        from minidl.parallel.planner import search, why
        from minidl.parallel.planner.published import spread
        from minidl.plots import plans as picture

        endings, console = picture_formats(formats), Console()
        whole_number("--top", top, at_least=1)
        if published:
            _published(console, as_json)
            return
        machine = machine_of(cluster)
        if nodes is not None:
            machine = replace(machine, nodes=whole_number("--nodes", nodes, at_least=1))
        planned = _model(model, data)
        found = search(planned, machine, whole_number("--batch-size", batch_size, at_least=1))
        sentences = why(planned, machine, found)
        best = [each for each in found if each.fits][:top]
        folder = run_folder.prepare(out, f"plan-{name_of(model)}-{machine.world}")
        points = [(each.memory.total, each.seconds) for each in found]
        page = picture.draw(points, capacity=machine.memory, limit=sentences[1])
        for each in endings:
            page.savefig(folder / f"plans.{each}")
        if as_json:
            rows = [_as_json(planned, machine, each) for each in best]
            print(json.dumps({"plans": rows, "why": sentences, "range": spread(), "folder": str(folder)}, indent=2))
            return
        count = f"{planned.parameters / 1e9:.1f} billion" if planned.parameters >= 1e9 else f"{planned.parameters:,}"
        say(console, f"{model}, {count} parameters, on {machine.nodes} x {machine.accelerators} accelerators")
        show(console, _table(planned, machine, best))
        say(console, _of_first(planned, best[0]))
        for sentence in sentences:
            say(console, sentence)
        low, high = spread()
        say(console, f"Published steps of language models took {low:.2f} to {high:.2f} of the formula's time.\n")
        say(console, run_folder.contents(folder))


def _model(text: str, data: str) -> PlannedModel:
    """The model of that line: a gpt from its sizes, another one counted."""
    from minidl.arguments import one_of
    from minidl.cli import components, imported
    from minidl.cli.models import recipe
    from minidl.parallel.planner import CountedModel, Transformer

    typed = components.parse("model", text)
    if typed.name == "gpt":
        if typed.values:
            raise ValueError(f"gpt: {typed.values[0]} has no name: write gpt:layers={typed.values[0]}, for instance")
        sizes: dict[str, Any] = {"layers": 12, "width": 768, "heads": 12, "context": 1024}
        for name, value in typed.named.items():
            one_of("a setting of gpt, for a plan,", name, SIZES)
            if not value.isdecimal():
                raise ValueError(f"gpt: {name} must be a whole number, got {value}")
            sizes[name] = int(value)
        return Transformer(**sizes)
    splits = imported.loader(data)()
    return CountedModel.of(recipe(text).fit(splits)(), splits.train.x[:1])


def _as_json(model: PlannedModel, machine: Machine, planned: Planned) -> dict[str, Any]:
    from minidl.parallel.planner import traffic, utilisation

    arrangement, seconds = planned.arrangement, planned.seconds
    return {
        "plan": str(arrangement),
        **asdict(arrangement),
        "micro_batches": arrangement.micro_batches,
        "seconds": seconds,
        "utilisation": utilisation(model, arrangement, machine, seconds),
        "seconds_by_cause": {each.name: getattr(planned.time, each.name) for each in fields(planned.time)},
        "bytes": planned.memory.total,
        "bytes_by_component": planned.memory.by_component,
        "sent_by_axis": traffic(model, arrangement),
    }


def _table(model: PlannedModel, machine: Machine, best: list[Planned]) -> Table:
    from minidl.parallel.planner import utilisation
    from minidl.parallel.planner.search import TIE
    from minidl.plots.style import bytes_text, seconds_text

    result = results_table(
        "Fastest plans: formula",
        f"=: within {TIE:.0%} of the first, a tie; tp 4s: with sequence=True; size: samples of a micro-batch; "
        "1f1b x 3: interleaved, 3 chunks a stage; again: recompute=; MFU: the model's own operations, of the peak; "
        "idle: in the bubble, waiting for other stages",
    )
    rows = []
    for number, each in enumerate(best, 1):
        arrangement = each.arrangement
        schedule = f"1f1b x {arrangement.chunks}" if arrangement.chunks > 1 else arrangement.schedule
        rows.append({
            "": f"{number}{'=' if number > 1 and each.seconds < (1 + TIE) * best[0].seconds else ' '}",
            "dp": str(arrangement.dp // arrangement.ep),
            "pp": str(arrangement.pp),
            "tp": f"{arrangement.tp}{'s' * arrangement.sequence}",
            "ep": str(arrangement.ep) if model.experts > 1 else "",
            "shard": str(arrangement.shard),
            "size": str(arrangement.micro_batch),
            "schedule": schedule if arrangement.pp > 1 else "",
            "again": {"none": "", "selective": "select", "full": "full"}[arrangement.recompute],
            "step": seconds_text(each.seconds),
            "MFU": f"{utilisation(model, arrangement, machine, each.seconds):.0%}",
            "idle": f"{each.time.bubble / each.seconds:.1%}",
            "memory": bytes_text(each.memory.total),
        })  # fmt: skip
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    for name in names:
        result.add_column(name, justify="left" if name in ("schedule", "again") else "right", overflow="fold")
    for row in rows:
        result.add_row(*(row[name] for name in names))
    return result


def _of_first(model: PlannedModel, first: Planned) -> str:
    """What the first plan holds by component, and sends by axis; and whether minidl train refuses it."""
    from minidl.parallel.planner import traffic
    from minidl.plots.style import bytes_text

    held = {name: nbytes for name, nbytes in first.memory.by_component.items() if nbytes}
    sent = traffic(model, first.arrangement) or {"nothing": 0.0}
    held_text, sent_text = (
        ", ".join(f"{name} {bytes_text(nbytes)}" for name, nbytes in each.items()) for each in (held, sent)
    )
    try:
        first.arrangement.strategy()
    except ValueError as refusal:
        sent_text += f". minidl train does not combine these ways ({refusal})"
    return f"The first holds {held_text}; in a step an accelerator sends {sent_text}.\n"


def _published(console: Console, as_json: bool) -> None:
    """Published steps, the formula's, and those of a constant utilisation."""
    from minidl.parallel.planner.published import FITTED, ROWS, anchored, constant, error, predicted
    from minidl.plots.style import seconds_text

    if as_json:
        rows = [
            {
                "row": row.label, "seconds": row.seconds, "formula": predicted(row), "error": error(row),
                "error_anchored": anchored(row), "error_constant": constant(row) / row.seconds - 1,
                "fitted": row in FITTED, "assumed": row.assumed,
            }
            for row in ROWS
        ]  # fmt: skip
        print(json.dumps(rows, indent=2))
        return
    notes = list(dict.fromkeys(each for row in ROWS for each in row.assumed))
    caption = [
        "anchored: error if one row of the source sets its scale;",
        "constant: error of the mean utilisation of the fitted rows",
        *(f"{number}: assumed: {note}" for number, note in enumerate(notes, 1)),
    ]
    table = results_table("Published steps, and the formula", "\n".join(caption))
    for name in ("row", "published", "formula", "error", "anchored", "constant", "notes"):
        table.add_column(name, justify="left" if name == "row" else "right", overflow="fold")
    for row in ROWS:
        scaled = anchored(row)
        table.add_row(
            row.label,
            seconds_text(row.seconds),
            seconds_text(predicted(row)),
            f"{error(row):+.1%}",
            "fitted" if row in FITTED else "anchor" if scaled is None else f"{scaled:+.1%}",
            f"{constant(row) / row.seconds - 1:+.1%}",
            ",".join(str(notes.index(each) + 1) for each in row.assumed),
        )
    show(console, table)
