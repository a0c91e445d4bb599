"""`minidl train`: its options; `options` checks them, `run` trains, `summary` says what is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_type_hints

from typer import Context, Option

from minidl.cli.ending import ending
from minidl.cli.shared_options import (
    ALGORITHMS,
    NETWORKS,
    STRATEGIES,
    Data,
    Deadline,
    Import,
    Kernels,
    LearningRate,
    LearningRateDecay,
    Model,
    On,
    Out,
    Seed,
    offer,
)

LEFT_OUT = (
    *("imported", "out", "resume", "elastic", "save_every", "deadline"),
    *("plan", "config", "tensorboard", "quiet", "as_json"),
)
"""Options that do not affect what is trained; a checkpoint and config.json do not keep them."""


def _from_file(context: Context, path: Path | None) -> Path | None:
    """Take the options in the file as defaults."""
    if path is not None:
        with ending("minidl train"):
            from minidl.cli.train.options import of_file

            hints = get_type_hints(train)
            context.default_map = of_file(path, hints, hints.keys() - {"context", "return", *LEFT_OUT})
    return path


def train(
    context: Context,
    model: Model = "resnet",
    data: Data = "digits",
    nodes: Annotated[
        int,
        Option(
            help="Nodes that train; the servers of a strategy come in addition. By default 1, or as many as mpiexec "
            "has started."
        ),
    ] = 1,
    strategy: Annotated[
        str | None,
        Option(
            help="Name of a strategy, with settings after a colon: 'local_sgd:period=8'. minidl compare --list shows "
            "all. lr= and momentum= replace --lr and --momentum. By default serial on one node, otherwise synchronous.",
            autocompletion=STRATEGIES,
        ),
    ] = None,
    plan: Annotated[
        str | None,
        Option(
            help="Split the model: dp=2,pp=2,tp=2 makes two replicas of a pipeline of two stages, whose layers are "
            "divided by two nodes each, on eight nodes; spatial=2x2 divides images into tiles, ep=4 the experts of "
            "a gpt:experts=8 and the samples. With the settings of "
            "the strategy hybrid: micro_batches=8, schedule=gpipe or schedule=FILE.csv, shard=3 (replicas share out "
            "weights, gradients and optimizer state; 2: not weights; 1: the state alone), "
            "'layout={fc1: column_linear, fc2: row_linear}' and so on. With --strategy parameter_server, or another "
            "with servers, each replica is a worker."
        ),
    ] = None,
    on: On = "processes",
    network: Annotated[
        str,
        Option(
            "--network",
            "--networks",
            help="1gbe, 10gbe, 100gbe, infiniband, nvlink, or a file like net.json: messages take as long as on it, "
            "also between processes; in a simulation also a topology like torus:4x4x2@10gbe. none: as long as they "
            "take on this machine, and no time in a simulation.",
            autocompletion=NETWORKS,
        ),
    ] = "none",
    batch_size: Annotated[
        int, Option(help="Samples of a minibatch, over all nodes; for asynchronous strategies, samples of a gradient.")
    ] = 64,
    epochs: Annotated[int | None, Option(help="Passes over the training set; by default the model's.")] = None,
    optimizer: Annotated[
        str | None,
        Option(
            help="Name of an optimizer, with settings after a colon: adamw, 'sgd:nesterov=true'. sgd, adam, adamw, "
            "adagrad, rmsprop, lars or lamb; by default the model's (sgd, for gpt adamw).",
            autocompletion=offer("minidl.cli.strategies", "OPTIMIZERS"),
        ),
    ] = None,
    lr: LearningRate = None,
    momentum: Annotated[
        float | None,
        Option(
            help="Momentum of SGD; by default the model's (0.9). DGC, Signum and EAMSGD have momentum of their own and "
            "need 0 here."
        ),
    ] = None,
    lr_decay: LearningRateDecay = None,
    precision: Annotated[
        str | None,
        Option(
            help="float32, bfloat16 or float16: the type of weights, gradients and activations. In 16 bits they take "
            "half the memory and bytes, the optimizer keeps float32 masters of the weights, and with float16 the loss "
            "is scaled. By default float32.",
            autocompletion=offer("minidl.parallel.job", "PRECISIONS"),
        ),
    ] = None,
    seed: Seed = 0,
    kernels: Kernels = None,
    algorithm: Annotated[
        str,
        Option(
            help="Algorithm of all-reduce: auto, ring, tree, ...; ordered gives the bits of one node.",
            autocompletion=ALGORITHMS,
        ),
    ] = "auto",
    bucket_mb: Annotated[float, Option(help="Size of a bucket of gradients, in megabytes.")] = 1.0,
    flops: Annotated[
        float | None,
        Option(help="Speed of a simulated node, in floating-point operations per second; by default 1e9."),
    ] = None,
    device_memory: Annotated[
        str | None,
        Option(
            help="Memory of a simulated node's device, and the link to its host: 2MB@10us/16GB. For --strategy "
            "sharded, with offload or without; none: as much as needed, the default."
        ),
    ] = None,
    imported: Import = None,
    out: Out = None,
    resume: Annotated[
        Path | None,
        Option(
            help="Run folder or checkpoint to go on from. Only --epochs, --nodes, --strategy, --algorithm, "
            "--bucket-mb, --precision and --device-memory may differ from that run."
        ),
    ] = None,
    elastic: Annotated[
        bool,
        Option(
            "--elastic",
            help="When nodes die, go on with the others from the last finished step; if the model is split, with "
            "new ones from the last checkpoint.",
        ),
    ] = False,
    save_every: Annotated[
        int | None,
        Option(help="Minibatches between two checkpoints, which are written while training goes on."),
    ] = None,
    deadline: Deadline = None,
    config: Annotated[
        Path | None,
        Option(
            help="YAML file of options by name, such as the config.json of a run. The command line goes first.",
            is_eager=True,
            callback=_from_file,
        ),
    ] = None,
    tensorboard: Annotated[
        bool, Option("--tensorboard", help="Write the metrics for TensorBoard too, into the run folder.")
    ] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the results as one JSON document alone.")] = False,
) -> None:
    """Train a model on one or more nodes.

    Without --strategy, the nodes share every minibatch and average their gradients by an all-reduce. The run folder
    gets the configuration at once; after every epoch the metrics and a checkpoint (only after the last if the strategy
    gives each node weights of its own); at the end two pictures, and the trace: as a page to be played in
    a browser (run.html), and for Perfetto.
    """
    with ending("minidl train"):
        from minidl.cli.imported import data_set, register_all
        from minidl.cli.train.options import (  # imported here, so that --help is fast
            completed,
            nodes_by_mpiexec,
            of_checkpoint,
            with_plan,
        )
        from minidl.cli.train.run import Output, run

        register_all(imported, on)
        options = {name: value for name, value in context.params.items() if name not in LEFT_OUT}
        options["data"] = data_set(data, on)
        asked = {name for name in options if _source(context, name) == "COMMANDLINE"}
        if plan is not None:
            options |= with_plan(plan, options, asked)
            asked |= {"strategy", "nodes"}
        if resume is not None:
            resume = resume / "checkpoint.npz" if resume.is_dir() else resume
            if config is not None:
                raise ValueError("--resume goes on with the options of that run: leave out --config")
            out = out or resume.parent
            hints = get_type_hints(train)
            explicit = {name: options[name] for name in asked}
            options = of_checkpoint(resume, explicit, {name: hints[name] for name in options})
        if _source(context, "nodes") == "DEFAULT" and plan is None and resume is None and on == "mpi":
            options["nodes"] = nodes_by_mpiexec(options)
        output = Output(quiet, as_json, tensorboard)
        run(*completed(options), out, resume, elastic, save_every, deadline, output)


def _source(context: Context, name: str) -> str:
    """COMMANDLINE, DEFAULT, or DEFAULT_MAP for what --config gives."""
    source = context.get_parameter_source(name)
    return "" if source is None else source.name  # by name: not every click prints it
