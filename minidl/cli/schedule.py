"""`minidl schedule`: schedules of a pipeline as text, table and picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.table import Table
from typer import Argument, Context, Option

from minidl.arguments import one_of, real_number, whole_number
from minidl.cli.display import results_table, say, show
from minidl.cli.ending import ending
from minidl.cli.shared_options import Formats, Out, offer, picture_formats

if TYPE_CHECKING:  # each function imports what it calls, so that --help starts at once
    from minidl.parallel.pipeline import Schedule, Timeline, Times

MOST_MICRO_BATCHES = 200_000
"""Micro-batches times chunks: more take minutes to play, and a picture cannot show them."""

MOST_STAGES = 1_000
"""Rows of the picture and of the table."""

MOST_TIME = 10**12
"""Of an action or a message: beyond it, sums of times are no longer exact."""


def schedule(
    context: Context,
    kinds: Annotated[
        list[str] | None,
        Argument(
            help="naive, gpipe, 1f1b (the default), pipedream, interleaved, zb-h1, zb-h2 or zb-v; several are drawn on "
            "one page.",
            autocompletion=offer("minidl.parallel.pipeline", "SCHEDULES"),
        ),
    ] = None,
    stages: Annotated[int | None, Option(help="Stages of the pipeline; by default 4.")] = None,
    micro_batches: Annotated[int | None, Option(help="Micro-batches of a minibatch; by default 8.")] = None,
    chunks_per_stage: Annotated[
        int | None, Option(help="Chunks of the model on each stage; by default as the kind needs.")
    ] = None,
    file: Annotated[
        Path | None,
        Option(
            help="CSV file of a schedule, a row for each stage, also as PyTorch writes it, instead of kinds and the "
            "options above."
        ),
    ] = None,
    forward: Annotated[float, Option(help="Time of a stage's forward, in any unit.")] = 1.0,
    input: Annotated[float, Option(help="Time of its backward for the inputs.")] = 1.0,
    weight: Annotated[float, Option(help="Time of its backward for the weights.")] = 1.0,
    message: Annotated[float, Option(help="Time of a message to another stage.")] = 0.0,
    formats: Formats = None,
    out: Out = None,
) -> None:
    """Show who computes what when in pipelines: bubble and memory of each, and one picture of all.

    A schedule from a file is checked first: the message names the first bad action and why. The times are of a whole
    stage; each of its chunks takes its share. The folder gets the picture, the same as a page to be played in a browser
    (schedule.html), and each schedule as CSV for --file.
    """
    with ending("minidl schedule"):
        from minidl.cli import run_folder
        from minidl.parallel.pipeline import play_timelines, plot_timelines, simulate, write_csv

        schedules, endings = _schedules(context.params), picture_formats(formats)
        timelines = [simulate(each, _times(context.params, each.chunks_per_stage)) for each in schedules]
        whole = _times(context.params, 1)
        folder = run_folder.prepare(out, "-".join(["schedule", *(each.name for each in schedules)]))
        console = Console()
        for timeline in timelines:
            if len(timelines) > 1:
                say(console, f"{timeline.schedule.name}:")
            say(console, _text(timeline, console))
            say(console, "")
            show(console, _table(timeline))
            say(console, "")
            say(console, _bubble(timeline, whole))
            if len(timelines) > 1:
                say(console, "")
            write_csv(timeline.schedule, folder / f"{timeline.schedule.name}.csv")
        page = plot_timelines(timelines, memory=True)
        for each in endings:
            page.savefig(folder / f"schedule.{each}")
        play_timelines(timelines, title="Pipeline schedules").save(folder / "schedule.html")
        say(console, run_folder.contents(folder))


def _schedules(options: dict[str, Any]) -> list[Schedule]:
    """The schedules that were asked for, made or read from the file."""
    from minidl.parallel import pipeline

    numbers = {name: options[name] for name in ("stages", "micro_batches", "chunks_per_stage")}
    kinds = list(dict.fromkeys(options["kinds"] or ()))
    given = kinds + [f"--{name.replace('_', '-')}" for name, value in numbers.items() if value is not None]
    if options["file"] is not None:
        if given:
            raise ValueError(f"--file has the whole schedule: leave out {given[0]}")
        schedules: list[Schedule] = [pipeline.read_csv(options["file"])]
    else:
        for name, value in numbers.items():
            if value is not None:
                most = MOST_STAGES if name == "stages" else None
                whole_number(f"--{name.replace('_', '-')}", value, at_least=1, at_most=most)
        for kind in kinds:
            one_of("a schedule", kind, pipeline.SCHEDULES)
        stages, micro_batches = numbers["stages"] or 4, numbers["micro_batches"] or 8
        chunks = numbers["chunks_per_stage"]
        schedules = [pipeline.schedule(kind, stages, micro_batches, chunks) for kind in kinds or ["1f1b"]]
    if (count := sum(each.chunks * each.micro_batches for each in schedules)) > MOST_MICRO_BATCHES:
        raise ValueError(
            f"{count:,} micro-batches, each counted on each chunk, are more than a picture can show: ask for at most "
            f"{MOST_MICRO_BATCHES:,}"
        )
    return schedules


def _times(options: dict[str, Any], share: int) -> Times:
    from minidl.parallel.pipeline import Times

    forward, inputs, weights, message = (
        real_number(f"--{name}", options[name], at_least=0, at_most=MOST_TIME)
        for name in ("forward", "input", "weight", "message")
    )
    if forward == inputs == weights == 0:
        raise ValueError("nothing takes any time: give --forward, --input or --weight above 0")
    return Times(forward / share, inputs / share, weights / share, message=message)


def _text(timeline: Timeline, console: Console) -> str:
    """The timeline in columns; the actions alone if a terminal is too narrow for it, or the columns too many."""
    from minidl.parallel.pipeline.timeline import MOST_COLUMNS

    if 3 * timeline.schedule.micro_batches * timeline.schedule.chunks_per_stage > MOST_COLUMNS:
        return str(timeline.schedule)
    text = str(timeline)
    is_narrow = console.is_terminal and max(map(len, text.splitlines())) > console.width
    return str(timeline.schedule) if is_narrow else text


def _table(timeline: Timeline) -> Table:
    from minidl.parallel.pipeline import peak_memory

    caption = "waits: between the first and the last action of the stage"
    kept = {"keeps at most (micro-batches)": peak_memory(timeline.schedule)}
    if any(bar.action.kind == "I" for bar in timeline.bars):
        caption += (
            "; an update that needs the gradients of all stages, as with clip_norm, adds the time before and after\n"
            "keeps at most, in micro-batches: from F to I, activations for the input gradient; from F to W, what the "
            "weight gradient still needs"
        )
        kept = {"keeps, F to I": peak_memory(timeline.schedule), "keeps, F to W": peak_memory(timeline.schedule, 1, 1)}
    result = results_table("Each stage: simulated", caption)
    for name in ("stage", "computes (units)", "waits (units)", *kept):
        result.add_column(name, justify="right", no_wrap=True)
    for stage, counts in enumerate(zip(*kept.values(), strict=True)):
        seconds = timeline.busy(stage), timeline.idle(stage)
        result.add_row(str(stage), *(f"{each:.6g}" for each in seconds), *(f"{count:g}" for count in counts))
    return result


def _bubble(timeline: Timeline, times: Times) -> str:
    """The bubble in both conventions, and by the closed form if there is one."""
    from minidl.parallel.pipeline import formulas

    try:
        formula = f"the closed form says {formulas.idle_seconds(timeline.schedule, times):.6g}"
    except ValueError as error:
        reason, _, _ = str(error).partition(": use ")  # the library's advice, `simulate`: what this command has done
        formula = f"no closed form ({reason})"
    percent = 100 * timeline.bubble_of_ideal
    ideal = f"{percent:.4g}" if percent < 9999.5 else f"{percent:.0f}"  # never 1.26e+04
    slowest = max(range(timeline.schedule.stages), key=timeline.span)
    return (
        f"Bubble: {timeline.idle(slowest):.6g} units idle of {timeline.seconds:.6g}, which is "
        f"{100 * timeline.bubble_of_total:.4g} % of the total time and {ideal} % of the ideal "
        f"time; {formula}."
    )
