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
    from minidl.cli.job import Options
    from minidl.parallel import Checkpoint

Run = Annotated[Path, Argument(help="Folder of a run, or its checkpoint.")]
BATCH = 256  # samples at a time

ENDINGS = (".npz", ".safetensors")
"""Formats of `export`."""


def predict(
    run: Run,
    samples: Annotated[Path, Argument(help="NAME.npz, NAME.csv, an image, or a folder of images, as for --data.")],
    out: Annotated[Path | None, Option("--out", "-o", help="CSV file; by default the rows are printed.")] = None,
    imported: Import = None,
) -> None:
    """Predict the classes of samples with the model of a run.

    A row for each sample: its number from 0, the likeliest class, and the probability of it. The samples are prepared
    as those that the model was trained on. If the file has labels, the last line on stderr says how many are right.
    """
    with ending("minidl predict"):
        import numpy as np
        from rich.console import Console

        from minidl import functional as F
        from minidl.cli.display import LiveBar
        from minidl.data.own_files import read_samples
        from minidl.grad_mode import no_grad

        options, splits, model = _trained(run, imported)
        if not splits.train.x.dtype.kind == "f":
            raise ValueError(f"{options['model']} continues texts: minidl sample {run}")
        if out is not None and out.exists() and out.samefile(samples):
            raise ValueError(f"--out {out} has the samples themselves: choose another file")
        x, labels = read_samples(samples, splits)
        x = splits.prepared(x)
        parts, done = [], 0
        with no_grad(), LiveBar(Console(stderr=True), "predicting") as bar:
            while done < len(x):
                parts.append(F.softmax(model(x[done : done + BATCH]), axis=1).numpy())
                done += len(parts[-1])
                bar.show(done, len(x), "predicting", f"sample {done:,} of {len(x):,}")
        probabilities = np.concatenate(parts)
        names = splits.classes or tuple(map(str, range(probabilities.shape[1])))
        rows = [(i, names[k], f"{probabilities[i, k]:.4f}") for i, k in enumerate(probabilities.argmax(axis=1))]
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
        options, splits, model = _trained(run, imported)
        if not hasattr(model, "generate"):
            raise ValueError(f"{options['model']} predicts classes and continues no text: minidl predict {run} FILE")
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

    path = run / "checkpoint.npz" if run.is_dir() else run
    checkpoint = Checkpoint.load(path)
    if not {"model", "data"} <= checkpoint.config.keys():
        raise CheckpointError(f"{path} was not written by `minidl train`: it does not hold the options of a run")
    return checkpoint


def _trained(run: Path, imported: list[Path] | None) -> tuple[Options, data.Splits, nn.Module]:
    """The options of a run, its data, and its model in the mode for evaluation."""
    from minidl.cli import job
    from minidl.cli.imported import register_all
    from minidl.data import DataError

    checkpoint = _checkpoint(run)
    register_all(imported, "processes")
    options = job.completed(checkpoint.config)
    try:
        the_job = job.build(options)
    except DataError as error:
        raise DataError(f"{error}: a model needs the data of its training, where it was then") from None
    job.check_unchanged(options)
    model = the_job.build_model()
    model.load_state_dict(checkpoint.model)
    return options, the_job.build_data(), model.eval()
