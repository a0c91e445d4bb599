"""Error feedback over many steps on nodes whose gradients differ: nothing piles up, neither residual nor error.

Conservation alone cannot see this: a residual that grows with every step is conserved as well.
"""

import copy
from functools import partial

import numpy as np
import pytest

from minidl import cluster, data, nn, optim, parallel
from minidl.compress import (
    QSGD,
    ErrorFeedback,
    Half,
    Lossless,
    OneBit,
    PowerSGD,
    QuantizedAllReduce,
    RandomK,
    Sign,
    Threshold,
    TopK,
)
from tests.tiers import exhaustively

SHAPE = (8, 6)


def residuals_and_errors(comm, compressor, steps):
    """By step: this node's residual and what the sums so far lack of all nodes' gradients, as norms.

    Every node has a constant gradient of its own, plus noise.
    """
    own = copy.deepcopy(compressor)
    own.begin_run(0, "weight", comm.rank)
    constants = np.random.default_rng(1).normal(size=(comm.size, *SHAPE))
    noise = [np.random.default_rng((2, rank)) for rank in range(comm.size)]
    missing = np.zeros(SHAPE)
    norms = []
    for _ in range(steps):
        gradients = [constant + rng.normal(size=SHAPE) for constant, rng in zip(constants, noise, strict=True)]
        missing += sum(gradients) - own.begin_all_reduce(gradients[comm.rank], comm)()
        norms.append((np.linalg.norm(own.residual), np.linalg.norm(missing)))
    residual_sum = comm.all_reduce(own.residual.copy())
    return norms, np.abs(residual_sum - missing).max()


def cancelling_residuals(comm, steps):
    """This node's residual and what the sums so far lack, where the nodes differ in a direction the sum never has."""
    u, v, a, b = np.eye(4, 8)
    gradient = np.outer(u, v) + (comm.rank - 0.5) * np.outer(a, b)
    own, missing = ErrorFeedback(PowerSGD(1)), np.zeros((8, 8))
    for _ in range(steps):
        missing += 2 * np.outer(u, v) - own.begin_all_reduce(gradient, comm)()
    return np.linalg.norm(own.residual), np.abs(missing).max(), np.abs(comm.all_reduce(own.residual.copy())).max()


def test_what_always_cancels_between_nodes_stays_in_the_residuals_of_powersgd_and_not_in_the_sum():
    for residual, missing, residuals in cluster.launch(cancelling_residuals, (200,), nodes=2, on="simulation").results:
        assert residual == pytest.approx(200 * 0.5)
        assert missing < 1e-9
        assert residuals < 1e-9


def persistent_residuals(comm, compressor, early, late):
    """Where each node has the same gradient of its own in every step: two residuals in units of the gradient."""
    own = copy.deepcopy(compressor)
    own.begin_run(0, "weight", comm.rank)
    common, mine = (np.random.default_rng(seed).normal(size=(24, 32)) for seed in (1, (comm.rank, 5)))
    norms = []
    for _ in range(late):
        own.begin_all_reduce(common + mine, comm)()
        norms.append(np.linalg.norm(own.residual) / np.linalg.norm(common + mine))
    return norms[early - 1], norms[late - 1]


@pytest.mark.parametrize(("warm_start"), [True, False])
def test_differences_that_persist_settle_at_the_residual_that_powersgd_states(warm_start):
    compressor = ErrorFeedback(PowerSGD(1, warm_start))
    residuals = cluster.launch(persistent_residuals, (compressor, 200, 400), nodes=4, on="simulation").results
    assert all(15 <= residual <= 25 for both in residuals for residual in both)


def test_the_residual_of_sign_passes_many_times_a_gradient_that_stays_the_same():
    residuals = cluster.launch(persistent_residuals, (ErrorFeedback(Sign()), 60, 800), nodes=2, on="simulation").results
    assert all(2 * early < late < 2 * 24 * 32 for early, late in residuals)


def check_bounded(compressor, nodes, steps):
    run = cluster.launch(
        residuals_and_errors, (ErrorFeedback(compressor), steps), nodes=nodes, on=cluster.Simulation(trace="ledger")
    )
    for norms, difference in run.results:
        third = steps // 3
        early, late = np.max(norms[:third], axis=0), np.max(norms[-third:], axis=0)
        assert (late < 1.5 * early).all()  # what grows with the steps grows threefold
        assert difference < 1e-9  # the residuals of all nodes are what the sums lack


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("compressor", "nodes", "steps"),
    [
        *((each, 3, 150) for each in (Sign(), TopK(0.1), PowerSGD(1), QuantizedAllReduce(OneBit()))),
        *exhaustively(
            (PowerSGD(1, warm_start=False), 8, 300),
            (QuantizedAllReduce(Sign()), 8, 1500),
            (QuantizedAllReduce(Half("bf16")), 8, 300),
            (QuantizedAllReduce(QSGD(4, None)), 8, 300),  # 48 numbers: of the least number of levels that is accepted
            (RandomK(0.6, unbiased=True), 8, 300),
            (Threshold(1.0), 8, 300),
            (Lossless(QSGD(4, None)), 8, 300),
        ),
    ],
    ids=repr,
)
def test_residual_and_error_stay_bounded_for_every_contraction(compressor, nodes, steps):
    check_bounded(compressor, nodes, steps)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("inner", "nodes", "samples", "epochs"), [(Sign(), 4, 320, 4), *exhaustively((OneBit(), 8, 1437, 20))], ids=repr
)
def test_nodes_with_a_label_or_two_each_learn_all_digits(inner, nodes, samples, epochs):
    """Each node's gradient differs from the mean in every step; without error feedback in the ring this diverges."""
    train, test = data.digits()
    job = parallel.Job(
        model=partial(nn.models.MLP, 64, 32, 10),
        data=data.Splits(data.Dataset(*train[:samples]), test),
        optimizer=partial(optim.SGD, lr=0.1),
        epochs=epochs,
        shards="by_label",
    )
    engine = cluster.Simulation(trace="ledger")
    dense = parallel.train(job, parallel.Synchronous(), nodes, engine)
    strategy = parallel.Synchronous(compressor=ErrorFeedback(QuantizedAllReduce(inner)))
    report = parallel.train(job, strategy, nodes, engine)
    assert report.history[-1]["loss"] < 1.1 * dense.history[-1]["loss"]
    assert report.accuracy > dense.accuracy - 0.02
