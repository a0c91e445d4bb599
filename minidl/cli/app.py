"""The commands of `minidl`, by name, and the examples below the options of each --help, which a test runs."""

from __future__ import annotations

from typing import Annotated

import typer

from minidl import __version__
from minidl.cli.calibrate import calibrate
from minidl.cli.compare import compare
from minidl.cli.info import info, networks
from minidl.cli.memory import memory
from minidl.cli.plan import plan
from minidl.cli.report_card import report_card
from minidl.cli.schedule import schedule
from minidl.cli.shared_options import Command, SeveralWords
from minidl.cli.simulate import simulate
from minidl.cli.train import train
from minidl.cli.trained import export, predict, sample

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(asked: bool) -> None:
    """Print the version of minidl, and end."""
    if asked:
        typer.echo(f"minidl {__version__}")
        raise typer.Exit


@app.callback()
def minidl(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=show_version, is_eager=True)
    ] = False,
) -> None:
    """Parallel deep learning from scratch."""


EXAMPLES = {
    "train": r"""
minidl train --nodes 4
minidl train --model gpt --data stdlib_text --epochs 1
minidl train --nodes 8 --strategy local_sgd:period=8 \
    --on simulation --network 10gbe
minidl train --plan dp=2,pp=2
minidl train --model mlp --optimizer adam:lr=0.003 --epochs 2 --json
""",
    "predict": r"""
minidl predict runs/FOLDER digits.png
minidl predict runs/FOLDER my.csv --out predicted.csv
""",
    "sample": r"""
minidl sample runs/FOLDER --prompt "def " --length 200
""",
    "export": r"""
minidl export runs/FOLDER model.npz
minidl export runs/FOLDER model.safetensors
""",
    "compare": r"""
minidl compare --strategies synchronous local_sgd:period=8 --networks 1gbe
minidl compare --seeds 3 --strategies synchronous \
    'synchronous:compressor=ef(top_k(0.01))'
minidl compare --strategies synchronous gossip --seeds 5 --format pdf \
    --title "Two ways to train the digits"
minidl compare --list
""",
    "report-card": r"""
minidl report-card results.csv --name method --seeds 5
""",
    "simulate": r"""
minidl simulate --nodes 2,8,64 --bytes 100MB --network 10gbe
minidl simulate --network racks:8x8@1us/1200Gbit@5us/100Gbit
minidl simulate --networks torus:8x8 fat_tree:8x8 dragonfly:4x2x4x2
minidl simulate --measured --nodes 2
""",
    "calibrate": r"""
minidl calibrate -o net.json --picture fit.png
mpiexec -f hosts -n 2 minidl calibrate --on mpi -o net.json
""",
    "memory": r"""
minidl memory --model gpt:layers=96,heads=96,width=12288,context=2048 \
    --plan dp=8,tp=2 --shard 3 --recompute selective --device-memory 80GB
minidl memory --model lenet --optimizer adam --batch-size 256 --measure
minidl memory --plan dp=2,shard=3 --measure
""",
    "plan": r"""
minidl plan --model gpt:layers=40,heads=40,width=5120,context=2048 \
    --cluster h100x8 --batch-size 256
minidl plan --model resnet:depth=20 --nodes 1 --batch-size 64
minidl plan --published
""",
    "schedule": r"""
minidl schedule gpipe 1f1b --stages 4 --format pdf
minidl schedule zb-h1 --message 0.1
""",
}


def epilog(command: str) -> str:
    """The examples, indented, after the character by which click knows lines that it must not join."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in EXAMPLES[command].strip().splitlines())])


app.command(cls=Command, epilog=epilog("train"))(train)
app.command(epilog=epilog("predict"))(predict)
app.command(epilog=epilog("sample"))(sample)
app.command(epilog=epilog("export"))(export)
app.command(cls=SeveralWords, epilog=epilog("compare"))(compare)
app.command(epilog=epilog("report-card"))(report_card)
app.command(cls=SeveralWords, epilog=epilog("simulate"))(simulate)
app.command(epilog=epilog("calibrate"))(calibrate)
app.command()(networks)
app.command(epilog=epilog("schedule"))(schedule)
app.command(epilog=epilog("memory"))(memory)
app.command(epilog=epilog("plan"))(plan)
app.command()(info)
