"""Training runs on an array module that is not numpy's: no call of nn, optim or parallel bypasses the array's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import compress, data, kernels, nn, optim
from minidl.cluster.comm import Communicator, world
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.trace.recorder import Recorder
from minidl.parallel import Checkpoint, Job, NonFiniteLoss, Serial, Session, SlowMo, Synchronous
from minidl.parallel.run.elastic_restart import Leg
from tests.kernels import stand_in


@pytest.fixture(autouse=True)
def cupy() -> Iterator[Any]:
    with stand_in.installed() as module:
        yield module


class Alone:
    """The endpoint of a rank that has nobody to talk to."""

    rank, size, network = 0, 1, None
    now = staticmethod(time.perf_counter)

    def native_all_reduce(self, *_: Any) -> bool:
        return False

    def play(self, _: Any, by_messages: Callable[[], Any]) -> Any:
        return by_messages()

    def post_fingerprint(self, *_: Any) -> None:
        """There is nobody to differ from."""

    def start(self, work: Any, lane: int) -> Pending:
        return Pending("helper", self.rank, lane, self.now(), done=True, payload=work())

    def wait(self, pending: Pending) -> None:
        """It is done."""

    def tell(self, _: Any) -> None:
        """There is nobody to listen."""


@pytest.fixture
def comm() -> Communicator:
    """A communicator of one rank, in this process."""
    endpoint: Any = Alone()
    return world(endpoint, Recorder(endpoint.now, max_events=1000), seed=0, faults=None)


def few_digits(n: int = 32) -> data.Splits:
    train, test = data.digits()
    return data.Splits(data.Dataset(*train[:n]), data.Dataset(*test[:20]), classes=train.classes)


def job(**changes: Any) -> Job:
    settings: dict[str, Any] = {
        "model": partial(nn.models.ResNet, 8, num_classes=10, in_channels=1),
        "data": few_digits,
        "optimizer": partial(optim.SGD, lr=0.1, momentum=0.9),
        "schedule": lambda optimizer, steps: optim.StepLR(optimizer, step_size=steps, gamma=0.5),
        "batch_size": 16,
        "epochs": 2,
    }
    return Job(**(settings | changes))


def train(
    name: str, job: Job, strategy: Any, comm: Communicator, folder: Path | None = None, resume: Checkpoint | None = None
) -> Session:
    """Train here, on the kernels `name`."""
    with kernels.use(name):
        session = Session(job, strategy, comm, comm.size, folder, leg=Leg(resume))
        strategy.run(session)
        return session


STRATEGIES = {
    "three shards": Serial(shards=3),
    "buckets": Synchronous(bucket_mb=0.1),
    "compressed": Synchronous(compressor=compress.TopK(1.0)),
    "one batch norm": Synchronous(batch_norm="synchronized"),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_a_residual_network_trains_to_numpys_numbers(strategy: Any, comm: Communicator, cupy: Any) -> None:
    mine, theirs = (train(name, job(epochs=1), strategy, comm) for name in ("cupy", "numpy"))
    for parameter, expected in zip(mine.parameters, theirs.parameters, strict=True):
        assert type(parameter.data) is cupy.ndarray
        assert type(parameter.grad) is cupy.ndarray
        np.testing.assert_allclose(parameter.numpy(), expected.numpy(), rtol=1e-3, atol=1e-4)
    for row, expected_row in zip(mine.history, theirs.history, strict=True):
        assert row["loss"] == pytest.approx(expected_row["loss"], rel=1e-4)
        assert row["test_loss"] == pytest.approx(expected_row["test_loss"], rel=1e-3)


@pytest.mark.parametrize("strategy", [Serial(), SlowMo(period=2)], ids=["serial", "outer"])
def test_clipped_gradients_and_outer_momentum_have_numpys_numbers(strategy: Any, comm: Communicator, cupy: Any) -> None:
    flat = job(model=partial(nn.models.MLP, 64, 16, 10), clip_norm=0.5)
    mine, theirs = (train(name, flat, strategy, comm) for name in ("cupy", "numpy"))
    for parameter, expected in zip(mine.parameters, theirs.parameters, strict=True):
        assert type(parameter.data) is cupy.ndarray
        np.testing.assert_allclose(parameter.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_a_text_model_trains_and_is_evaluated(comm: Communicator, cupy: Any) -> None:
    text = data.stdlib_text(block_size=8, n_chars=600)
    model = partial(nn.models.GPT, len(text.classes), 8, n_layer=1, n_head=2, n_embd=8)
    text_job = job(optimizer=partial(optim.AdamW, lr=1e-2), model=model, data=text)
    mine, theirs = (train(name, text_job, Serial(), comm) for name in ("cupy", "numpy"))
    assert type(mine.parameters[0].data) is cupy.ndarray
    assert mine.history[-1]["loss"] == pytest.approx(theirs.history[-1]["loss"], rel=1e-4)


def test_a_checkpoint_is_numpys_and_goes_on_to_the_same_bits(tmp_path: Path, comm: Communicator) -> None:
    whole = train("cupy", job(), Serial(), comm)
    train("cupy", job(epochs=1), Serial(), comm, tmp_path)
    checkpoint = Checkpoint.load(tmp_path / "checkpoint.npz")
    assert all(isinstance(array, (np.ndarray, np.generic)) for array in checkpoint.model.values())
    assert train("cupy", job(), Serial(), comm, resume=checkpoint).result().digest == whole.result().digest


def test_a_loss_that_is_not_finite_is_found(comm: Communicator) -> None:
    with np.errstate(all="ignore"), pytest.raises(NonFiniteLoss, match="is not finite is that of"):
        train("cupy", job(optimizer=partial(optim.SGD, lr=1e30)), Serial(), comm)
