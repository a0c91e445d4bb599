"""The options that several commands have, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from minidl.cli import completion

Model = Annotated[
    str,
    Option(
        help="mlp, lenet, resnet or gpt; alexnet or vgg16 for images of 224x224; or one of --import.",
        autocompletion=completion.MODELS,
    ),
]
Data = Annotated[
    str,
    Option(
        help="digits, glyphs, spirals, stdlib_text, mnist, fashion_mnist or cifar10, or one of --import.",
        autocompletion=completion.DATA,
    ),
]
LearningRate = Annotated[float | None, Option(help="Learning rate; by default the model's (0.2 for mlp).")]
LearningRateDecay = Annotated[
    float | None, Option(help="Factor on the learning rate after every epoch; by default the model's.")
]
Seed = Annotated[int, Option(help="Seed of weights, shuffles, dropout, jitter and random choices.")]
Kernels = Annotated[
    str | None,
    Option(help="numpy, numba or cupy; by default $MINIDL_KERNELS, or numba.", autocompletion=completion.KERNELS),
]
Import = Annotated[
    list[Path] | None,
    Option(
        "--import",
        metavar="FILE.py",
        help="A file with subclasses of parallel.Strategy, compress.Compressor or nn.Module, or functions -> "
        "data.Splits; class MyTopK is then named my_top_k. minidl compare --import FILE.py --list shows them. May be "
        "given several times.",
    ),
]
On = Annotated[
    str,
    Option(
        help="processes: each node is a process of this machine; simulation: on a virtual clock; mpi: each node is a "
        "rank of MPI, those that mpiexec or srun has started, or new ones on this machine.",
        autocompletion=completion.ENGINES,
    ),
]
Deadline = Annotated[
    float | None,
    Option(help="Real seconds after which a run ends with an error, also where a layer loops; by default no limit."),
]
Networks = Annotated[
    list[str] | None,
    Option(
        "--network",
        "--networks",
        help="1gbe, 10gbe (the default), 100gbe, infiniband, nvlink, or a file like net.json; repeatable.",
        autocompletion=completion.NETWORKS,
    ),
]
Out = Annotated[Path | None, Option(help="Folder for all files that are written; by default a new one in runs/.")]
