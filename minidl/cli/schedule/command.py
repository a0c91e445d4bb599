"""`minidl schedule`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from minidl.cli import completion
from minidl.cli.ending import ending
from minidl.cli.shared_options import Out


def schedule(
    context: Context,
    kind: Annotated[
        str | None,
        Option(
            help="naive, gpipe, 1f1b (the default), pipedream, interleaved, zb-h1, zb-h2 or zb-v.",
            autocompletion=completion.SCHEDULES,
        ),
    ] = None,
    stages: Annotated[int | None, Option(help="Stages of the pipeline; by default 4.")] = None,
    micro_batches: Annotated[int | None, Option(help="Micro-batches of a minibatch; by default 8.")] = None,
    chunks_per_stage: Annotated[
        int | None, Option(help="Chunks of the model on each stage; by default as the kind needs.")
    ] = None,
    file: Annotated[
        Path | None, Option(help="CSV file of a schedule, a row for each stage, instead of the options above.")
    ] = None,
    forward: Annotated[float, Option(help="Time of a stage's forward, in any unit.")] = 1.0,
    input: Annotated[float, Option(help="Time of its backward for the inputs.")] = 1.0,
    weight: Annotated[float, Option(help="Time of its backward for the weights.")] = 1.0,
    message: Annotated[float, Option(help="Time of a message to another stage.")] = 0.0,
    out: Out = None,
) -> None:
    """Show who computes what when in a pipeline: its bubble, its memory, its picture.

    A schedule from a file is checked first: the message names the first bad action and why. The times are of a whole
    stage; each of its chunks takes its share. The folder gets the picture and the schedule as CSV, which --file reads.
    """
    with ending("minidl schedule"):
        from minidl.cli.schedule.run import run  # here, so that --help comes at once

        run(context.params)
