"""The errata of chapter 05 in course/errata.md: what is right instead."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.cluster.comm import Communicator


def job() -> parallel.Job:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((64, 8)), rng.integers(0, 4, 64)
    splits = data.Splits(data.Dataset(x, y), data.Dataset(x[:8], y[:8]))
    model = lambda: nn.models.MLP(8, 16, 16, 4).to(np.float64)  # noqa: E731
    return parallel.Job(model, splits, partial(optim.SGD, lr=0.1, momentum=0.9), batch_size=16, epochs=2)


def test_overlapped_buckets_train_to_the_bits_of_a_run_without_overlap_and_as_one_machine() -> None:
    run = partial(parallel.train, job(), nodes=4, on="simulation", network="10gbe")
    with_overlap, without = (run(parallel.Synchronous(1e-4, "ring", overlap=overlap)) for overlap in (True, False))
    assert set(with_overlap.digests) == set(without.digests)
    assert sum(with_overlap.staleness.values()) == 0
    serial = parallel.train(job(), on="simulation").checkpoint.model
    for name, value in with_overlap.checkpoint.model.items():
        np.testing.assert_allclose(value, serial[name], atol=1e-12)


def test_an_all_reduce_that_was_begun_asynchronously_has_ended_everywhere_before_anyone_updates() -> None:
    def program(comm: Communicator) -> tuple[float, float]:
        comm.compute(seconds=1.0 + comm.rank)
        work = comm.all_reduce(np.ones(4), async_op=True)
        work.wait()
        return 1.0 + comm.rank, comm.now()

    results = cluster.launch(program, nodes=3, on="simulation", network="10gbe").results
    slowest = max(ready for ready, _ in results)
    assert all(updates >= slowest for _, updates in results)


def test_gradients_become_final_from_the_last_layer_to_the_first() -> None:
    model, order = nn.models.MLP(8, 16, 16, 4), []
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name[: len("layers.0")]))
    model(np.ones((2, 8), np.float32)).sum().backward()
    assert list(dict.fromkeys(order)) == ["layers.2", "layers.1", "layers.0"]


@pytest.mark.parametrize("size", [1, 8, 64])
def test_the_gradient_of_a_sum_grows_with_the_minibatch_and_that_of_the_mean_does_not(size: int) -> None:
    x, y = np.ones((size, 3)), np.zeros(size, np.int64)  # the same sample several times
    norms = []
    for scale in (1, size):
        w = Tensor(np.zeros((2, 3)), requires_grad=True)
        (F.cross_entropy(F.linear(x, w), y) * scale).backward()
        assert w.grad is not None
        norms.append(float(np.linalg.norm(w.grad)))
    assert norms[0] == pytest.approx(np.sqrt(1.5))
    assert norms[1] == pytest.approx(size * norms[0])
