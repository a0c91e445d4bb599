"""Compare minidl with other libraries on this machine: `python -m benchmarks step memory`; see `--help`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Context, Option, Typer

from minidl.cli.ending import ending
from minidl.cli.shared_options import Out

app = Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def bench(
    context: Context,
    benchmarks: Annotated[
        list[str] | None,
        Argument(
            help="step: whole training steps; compiler: a compiled chain of operations; memory: the bytes of a step; "
            "scaling: training on several nodes, a core each, and on one; collectives: all-reduce on processes; "
            "simulation: messages of a simulated all-reduce; launch: nodes that do nothing; compressors: encoding and "
            "decoding; start: the first start; gpu: training steps on a GPU. By default all of them.",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        Option(
            help="Train mlp-small, mlp-large, lenet, resnet-8 or gpt in step, memory and scaling; repeatable. "
            "By default all.",
        ),
    ] = None,
    threads: Annotated[
        list[str] | None, Option(help="Threads of each side of a training step; by default 1,2, or 1 on one core.")
    ] = None,
    nodes: Annotated[
        list[str] | None, Option(help="Processes of scaling, collectives and launch; by default 2, 2,4 and 4.")
    ] = None,
    nbytes: Annotated[
        list[str] | None, Option("--bytes", help="Sizes of the collectives; by default 4KB,64KB,1MB,16MB,100MB.")
    ] = None,
    ranks: Annotated[list[str] | None, Option(help="Simulated ranks; by default 64,256.")] = None,
    rounds: Annotated[int, Option(help="Blocks of each side, which take turns.")] = 9,
    against: Annotated[
        list[str] | None,
        Option(
            help="Compare with torch, torch.compile, jax, mpich or simgrid alone, or with none; repeatable. By default "
            "with all that are installed: pip install 'minidl[bench]' brings torch and jax.",
        ),
    ] = None,
    write: Annotated[
        bool, Option("--write", help="Replace the results of these benchmarks in README.md and benchmarks/README.md.")
    ] = False,
    profile: Annotated[bool, Option("--profile", help="Show where each training step of minidl goes.")] = False,
    simgrid_python: Annotated[
        str, Option(help="An interpreter that can import simgrid (python3-simgrid of Debian and Ubuntu).")
    ] = "/usr/bin/python3",
    out: Out = None,
) -> None:
    """Compare minidl with other libraries on this machine, measured in turns in one run.

    A ratio is minidl's time divided by the other's: below 1 minidl is faster. In memory it is minidl's bytes divided by
    the other's; in compressors it is passes over memory. In scaling, both are minidl's times for a sample, on several
    nodes and on one: n nodes that lose nothing have the ratio 1 / n. A goal is for the comparison with the fastest of
    the others. The folder gets the numbers of each round. Libraries that are not installed are left out.
    """
    with ending("python -m benchmarks"):
        from benchmarks.peers.run import run  # here, so that --help comes at once

        run({name: None if value == () else value for name, value in context.params.items()})


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
