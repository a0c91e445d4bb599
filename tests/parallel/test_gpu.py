"""Training on a GPU by processes and by the simulation, and from the command line; with `pytest --gpu`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import data, kernels, nn, optim, parallel
from tests.kernels import stand_in
from tests.parallel.test_array_module import few_digits


@pytest.fixture(autouse=True)
def gpu() -> None:
    if not stand_in.real:
        pytest.skip("tests on a GPU need the option --gpu")


def texts() -> data.Splits:
    return data.stdlib_text(block_size=8, n_chars=3000)


def job(model: Callable[[], nn.Module], samples: Callable[[], data.Splits], optimizer: Any) -> parallel.Job:
    return parallel.Job(model=model, data=samples, optimizer=optimizer, batch_size=16, epochs=2)


JOBS = {
    "GPT": job(lambda: nn.models.GPT(96, 8, n_layer=2, n_head=2, n_embd=32), texts, partial(optim.AdamW, lr=1e-2)),
    "LeNet": job(partial(nn.models.LeNet, size=8), few_digits, partial(optim.SGD, lr=0.1)),
    "ResNet": job(partial(nn.models.ResNet, 8, num_classes=10, in_channels=1), few_digits, partial(optim.SGD, lr=0.1)),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("one", JOBS.values(), ids=JOBS)
def test_processes_that_share_a_gpu_have_the_bits_of_the_simulation(one: parallel.Job) -> None:
    with kernels.use("cupy"):
        runs = [
            parallel.train(one, parallel.Synchronous(), 2, on=on) for on in ("processes", "processes", "simulation")
        ]
    assert len({digest for run in runs for digest in run.digests}) == 1


STRATEGIES: dict[str, tuple[parallel.Strategy, int]] = {
    "backup workers": (parallel.BackupWorkers(), 3),
    "eager SGD": (parallel.EagerSGD(), 2),
    "elastic averaging": (parallel.ElasticAveraging(), 3),
    "ensemble": (parallel.Ensemble(), 2),
    "gossip": (parallel.Gossip(), 4),
    "Hogwild": (parallel.Hogwild(), 2),
    "local SGD": (parallel.LocalSGD(period=2), 2),
    "one-shot averaging": (parallel.OneShotAveraging(), 2),
    "parameter server": (parallel.ParameterServer(), 2),
    "pipeline": (parallel.Pipeline(), 2),
    "sufficient factors": (parallel.SufficientFactors(), 2),
    "tensor parallel": (parallel.Hybrid(tp=2), 2),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_trains_to_numpys_loss(strategy: str) -> None:
    rule, nodes = STRATEGIES[strategy]
    one = job(partial(nn.models.MLP, 64, 16, 10), few_digits, partial(optim.SGD, lr=0.1))
    losses = []
    for name in ("cupy", "numpy"):
        with kernels.use(name):
            losses.append(parallel.train(one, rule, nodes, on="simulation").history[-1]["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


@pytest.mark.timeout(300)
def test_the_command_line_trains_on_the_gpu(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "minidl", "train", "--kernels", "cupy", "--nodes", "2", "--epochs", "3"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], capture_output=True, text=True, timeout=100, env=environment
    )
    assert run.returncode == 0, run.stderr
    assert "2 nodes, kernels cupy" in run.stdout
    last = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    assert float(last[-1].split(",")[last[0].split(",").index("accuracy")]) > 0.95
