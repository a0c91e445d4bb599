"""The options that several commands have, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

Model = Annotated[str, Option(help="mlp, lenet, resnet or gpt.")]
Data = Annotated[str, Option(help="digits, glyphs, spirals, stdlib_text, mnist, fashion_mnist or cifar10.")]
LearningRate = Annotated[float | None, Option(help="Learning rate; by default the model's (0.2 for mlp).")]
LearningRateDecay = Annotated[
    float | None, Option(help="Factor on the learning rate after every epoch; by default the model's.")
]
Seed = Annotated[int, Option(help="Seed of weights, shuffles, dropout, jitter and random choices.")]
Kernels = Annotated[str | None, Option(help="numpy, numba or cupy; by default $MINIDL_KERNELS, or numba.")]
Out = Annotated[Path | None, Option(help="Folder for all files that are written; by default a new one in runs/.")]
