"""Checkpoints of format 1, with the optimizer's parameters by number, are read to the same bits.

For each job, `format_1/` holds two checkpoints that the last version with that format wrote: after one epoch
(`NAME.npz`), and after the third epoch of the run that went on from there (`NAME_end.npz`).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from minidl import nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import Checkpoint, CheckpointError, Job
from tests.parallel.jobs import blobs, decay, momentum_sgd, two_groups, two_layers

FILES = Path(__file__).parent / "format_1"


def texts() -> Splits:
    tokens = np.random.default_rng(3).integers(7, size=(40, 5))
    x, y = tokens[:, :-1], (tokens[:, :-1] * 3 + 1) % 7
    return Splits(Dataset(x[:24], y[:24]), Dataset(x[24:], y[24:]))


def tied_gpt() -> nn.Module:
    return nn.models.GPT(vocab_size=7, block_size=4, n_layer=1, n_head=2, n_embd=4, dropout=0.2).double()


def batch_norm() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3)).double()


def cosine(optimizer, steps_per_epoch) -> optim.CosineAnnealingLR:
    return optim.CosineAnnealingLR(optimizer, T_max=10 * steps_per_epoch)


JOBS = {
    "momentum": Job(two_layers, blobs, momentum_sgd, batch_size=16, epochs=3, seed=1),
    "two_groups": Job(two_layers, blobs, two_groups, cosine, batch_size=16, epochs=3, seed=1),
    "tied_gpt": Job(tied_gpt, texts, two_groups, decay, batch_size=8, epochs=3, seed=1),
    "batch_norm": Job(batch_norm, blobs, momentum_sgd, decay, batch_size=16, epochs=3, seed=1),
}


def named(job: Job, optimizer: dict) -> dict:
    """The state of format 1 with names, by the order in which the job's optimizer has the parameters."""
    model = job.build_model()
    name_of = {id(parameter): name for name, parameter in model.named_parameters()}
    names = [name_of[id(p)] for group in job.build_optimizer(model).param_groups for p in group["params"]]
    return {names[number]: values for number, values in optimizer["state"].items()}


def restored(job: Job, checkpoint: Checkpoint):
    model = job.build_model()
    optimizer = job.build_optimizer(model)
    schedule = job.build_schedule(optimizer, len(job.build_data().train))
    checkpoint.restore(model, optimizer, schedule)
    return model, optimizer, schedule


@pytest.mark.parametrize("name", JOBS)
def test_a_run_goes_on_as_it_did_with_format_1(name, tmp_path):
    job, path = JOBS[name], FILES / f"{name}.npz"
    resumed = parallel.train(job, resume=path, on="simulation", folder=tmp_path)
    end, mine = Checkpoint.load(FILES / f"{name}_end.npz"), Checkpoint.load(tmp_path / "checkpoint.npz")
    assert mine.format == 2
    for key, array in end.model.items():
        np.testing.assert_allclose(mine.model[key], array, rtol=1e-8, atol=1e-10)  # BLAS rounds by machine
    for key, values in named(job, end.optimizer).items():
        for what, array in values.items():
            np.testing.assert_allclose(mine.optimizer["state"][key][what], array, rtol=1e-8, atol=1e-10)
    assert mine.schedule == end.schedule
    assert [row["epoch"] for row in resumed.history] == [1, 2, 3]
    assert resumed.history[0] == Checkpoint.load(path).history[0]


def test_an_old_checkpoint_of_another_optimizer_is_refused():
    with pytest.raises(CheckpointError, match=r"another optimizer: .* groups of \[2, 2\] parameters.* groups of \[4\]"):
        restored(replace(JOBS["momentum"], schedule=cosine), Checkpoint.load(FILES / "two_groups.npz"))
