"""What a trained model is good for: `minidl predict`, `minidl sample` and `minidl export` of a run's folder."""

from __future__ import annotations

import csv
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from minidl.cli.ending import ending
from minidl.cli.shared_options import Import

if TYPE_CHECKING:  # each function imports what it calls, so that --help starts at once
    from minidl import data, nn
    from minidl.parallel import Checkpoint

Run = Annotated[Path, Argument(help="Folder of a run, or its checkpoint.")]
BATCH = 256  # samples at a time

ENDINGS = (".npz", ".safetensors")
"""Formats of `export`."""


def predict(
    run: Run,
    samples: Annotated[Path, Argument(help="NAME.csv, NAME.npz, NAME.npy, an image, or a folder of images.")],
    out: Annotated[Path | None, Option("--out", "-o", help="CSV file; by default the rows are printed.")] = None,
    imported: Import = None,
) -> None:
    """Predict the classes of samples with the model of a run.

    A row for each sample: its number from 0, or the file of an image; the likeliest class; and the probability of it.
    The samples are prepared as those that the model was trained on, which need not be there any more. If the file has
    labels, the last line on stderr says how many are right.
    """
    with ending("minidl predict"):
        import numpy as np
        from rich.console import Console

        from minidl import functional as F
        from minidl.cli.display import LiveBar
        from minidl.data.own_files import read_samples
        from minidl.grad_mode import no_grad

        name, splits, model = _trained(run, imported)
        if not splits.train.x.dtype.kind == "f":
            raise ValueError(f"{name} continues texts: minidl sample {run}")
        if out is not None and out.exists() and out.samefile(samples):
            raise ValueError(f"--out {out} has the samples themselves: choose another file")
        x, labels, files = read_samples(samples, splits)
        x = splits.prepared(x)
        parts, done = [], 0
        with no_grad(), LiveBar(Console(stderr=True), "predicting") as bar:
            while done < len(x):
                parts.append(F.softmax(model(x[done : done + BATCH]), axis=1).numpy())
                done += len(parts[-1])
                bar.show(done, len(x), "predicting", f"sample {done:,} of {len(x):,}")
        probabilities = np.concatenate(parts)
        if np.isnan(probabilities).any():
            raise ValueError(
                f"{name} predicts nan: its weights are, or it computes with the samples of `splits`, which a run does "
                "not keep: keep what it needs of them in a buffer"
            )
        names = splits.classes or tuple(map(str, range(probabilities.shape[1])))
        best = probabilities.argmax(axis=1)
        rows = [(files[i] if files else i, names[k], f"{probabilities[i, k]:.4f}") for i, k in enumerate(best)]
        with open(out, "w", newline="", encoding="utf-8") if out else nullcontext(sys.stdout) as file:
            csv.writer(file, lineterminator="\n").writerows([("sample", "class", "probability"), *rows])
        if labels is not None:
            right = sum(row[1] == label for row, label in zip(rows, labels, strict=True))
            unknown = sorted(set(labels.tolist()) - set(names))
            note = f" (the model does not know the class {unknown[0]})" if unknown else ""
            print(f"{right} of {len(rows)} right: {right / len(rows):.2%}{note}", file=sys.stderr)


def sample(
    run: Run,
    prompt: Annotated[str, Option(help="The beginning of the text.")] = "\n",
    length: Annotated[int, Option(help="Characters to add.")] = 500,
    temperature: Annotated[
        float, Option(help="Below 1, likely characters become likelier; 0 always takes the likeliest.")
    ] = 0.8,
    seed: Annotated[int, Option(help="Seed of the random choices.")] = 0,
    imported: Import = None,
) -> None:
    """Continue a text with the model of a run that was trained on texts."""
    with ending("minidl sample"):
        import numpy as np

        from minidl import random
        from minidl.arguments import real_number, whole_number
        from minidl.grad_mode import no_grad

        whole_number("--length", length, at_least=1)
        real_number("--temperature", temperature, at_least=0)
        name, splits, model = _trained(run, imported)
        if not hasattr(model, "generate"):
            raise ValueError(f"{name} predicts classes and continues no text: minidl predict {run} FILE")
        token_of = {symbol: token for token, symbol in enumerate(splits.classes)}
        if unknown := [symbol for symbol in prompt if symbol not in token_of]:
            raise ValueError(f"--prompt has {unknown[0]!r}, which the text that {run} was trained on has not")
        if not prompt:
            raise ValueError("--prompt needs at least one character")
        random.manual_seed(whole_number("--seed", seed, at_least=0))
        with no_grad():
            tokens = model.generate(np.array([[token_of[symbol] for symbol in prompt]]), length, temperature)
        print("".join(splits.classes[token] for token in tokens[0]))


def export(run: Run, file: Annotated[Path, Argument(help="NAME.npz or NAME.safetensors.")]) -> None:
    """Write the weights of a run's model by their names, which are torchvision's and nanoGPT's.

    model.load_state_dict reads them: in minidl numpy.load("NAME.npz"), in PyTorch what safetensors.torch.load_file
    returns.
    """
    with ending("minidl export"):
        import numpy as np

        from minidl.atomic_files import written_whole

        if file.suffix not in ENDINGS:
            raise ValueError(f"{file}: the weights go to NAME{ENDINGS[0]} or NAME{ENDINGS[1]}")
        weights = _checkpoint(run).model
        if file.suffix == ".safetensors":
            try:
                from safetensors.numpy import save
            except ModuleNotFoundError:
                raise ModuleNotFoundError(
                    "files of this kind are written by safetensors: pip install 'minidl[safetensors]', or choose .npz"
                ) from None
        with written_whole(file) as whole:
            if file.suffix == ".safetensors":
                whole.write(save({name: np.array(array, order="C") for name, array in weights.items()}))
            else:
                np.savez(whole, **weights)
        print(f"{file}: {len(weights)} arrays, {sum(array.size for array in weights.values()):,} numbers")


def _checkpoint(run: Path) -> Checkpoint:
    """The checkpoint of a run's folder, or the one in a file. Raises CheckpointError."""
    from minidl.parallel import Checkpoint, CheckpointError

    checkpoint = Checkpoint.load(run)
    if "model" not in checkpoint.config or not checkpoint.data:
        raise CheckpointError(
            f"{run} was not written by this version of `minidl train`: train anew, or take its weights, which "
            "parallel.Checkpoint.load reads"
        )
    return checkpoint


def _trained(run: Path, imported: list[Path] | None) -> tuple[str, data.Splits, nn.Module]:
    """The name of a run's model, its data without the samples, and the model in the mode for evaluation."""
    from minidl import data
    from minidl.cli import models
    from minidl.cli.imported import register_all

    checkpoint = _checkpoint(run)
    register_all(imported, "processes")
    name, splits = checkpoint.config["model"], data.Splits.from_outline(checkpoint.data)
    if models.name_of(name) not in models.MODELS:
        raise ValueError(f"{run} is of the model {name}: --import the file that defines it")
    model = models.recipe(name).fit(splits)()
    model.load_state_dict(checkpoint.model)
    return name, splits, model.eval()
