"""Deep gradient compression: momentum of what waits, masking, clipping, the warm-up."""

import numpy as np
import pytest

from minidl import Tensor, cluster, optim
from minidl.compress import DGC, ErrorFeedback, TopK
from minidl.compress.exchange import GradientNorm

MOMENTUM, STEPS = 0.9, 10
DENSE = STEPS / (1 - MOMENTUM) - MOMENTUM * (1 - MOMENTUM**STEPS) / (1 - MOMENTUM) ** 2  # 41.381


def displacement_of_late_entry(compressor, optimizer_momentum):
    """How far an entry moves under a gradient of 1 if another one, of 1e6 until then, lets it through in step 10."""
    w = Tensor(np.zeros(2), requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0, momentum=optimizer_momentum)
    for step in range(1, STEPS + 1):
        assert w.data[1] == 0
        gradient = np.array([1e6 if step < STEPS else 0.0, 1.0])
        w.grad = compressor.decode(compressor.encode(gradient))
        optimizer.step()
    return -w.data[1]


def test_an_entry_that_waits_moves_as_far_as_with_dense_momentum():
    """41.381 with momentum correction; 10 where the optimizer's momentum sees the sum when it arrives."""
    assert pytest.approx(41.381, abs=5e-4) == DENSE
    corrected = DGC(0.5, momentum=MOMENTUM, warmup=())
    assert displacement_of_late_entry(corrected, 0.0) == pytest.approx(DENSE, rel=1e-12)
    naive = DGC(0.5, momentum_correction=False, warmup=())
    assert displacement_of_late_entry(naive, MOMENTUM) == pytest.approx(10, rel=1e-12)


def trained(compressor, momentum, steps=30):
    """The weights of a linear regression after some steps of SGD on compressed gradients."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(40, 6)), Tensor(np.zeros(6), requires_grad=True)
    y = x @ np.arange(6.0)
    optimizer = optim.SGD([w], lr=0.02, momentum=momentum)
    for _ in range(steps):
        gradient = x.T @ (x @ w.data - y) / 40
        w.grad = gradient if compressor is None else compressor.decode(compressor.encode(gradient))
        optimizer.step()
    return w.data.copy()


def test_dense_and_without_masking_it_is_momentum_sgd():
    dense = trained(None, MOMENTUM)
    np.testing.assert_allclose(trained(DGC(1.0, MOMENTUM, warmup=(), masking=False), 0.0), dense, rtol=1e-12)


def test_dense_and_with_masking_it_is_plain_sgd():
    np.testing.assert_array_equal(trained(DGC(1.0, MOMENTUM, warmup=()), 0.0), trained(None, 0.0))


def test_without_correction_it_is_error_feedback_around_top_k():
    dgc = DGC(0.3, momentum_correction=False, warmup=())
    np.testing.assert_array_equal(trained(dgc, MOMENTUM), trained(ErrorFeedback(TopK(0.3)), MOMENTUM))


def test_without_momentum_masking_and_correction_change_nothing():
    plain = trained(ErrorFeedback(TopK(0.3)), 0.0)
    for masking in (False, True):
        np.testing.assert_array_equal(trained(DGC(0.3, 0.0, warmup=(), masking=masking), 0.0), plain)


def test_masking_forgets_the_velocity_of_what_is_sent_and_of_nothing_else():
    gradient = np.array([3.0, 2.0])
    masked, unmasked = DGC(0.5, 0.5, warmup=()), DGC(0.5, 0.5, warmup=(), masking=False)
    masked.encode(gradient)
    unmasked.encode(gradient)
    np.testing.assert_array_equal(masked.velocity, [0, 2])
    np.testing.assert_array_equal(unmasked.velocity, [3, 2])
    for compressor in (masked, unmasked):
        np.testing.assert_array_equal(compressor.accumulated, [0, 2])


def test_what_is_sent_and_what_is_kept_are_the_sum_of_all_velocities():
    rng, compressor = np.random.default_rng(0), DGC(0.1, MOMENTUM, warmup=(), masking=False)
    velocity, velocities, sent = np.zeros(50), np.zeros(50), np.zeros(50)
    for _ in range(60):
        gradient = rng.normal(size=50)
        velocity = MOMENTUM * velocity + gradient
        velocities += velocity
        sent += compressor.decode(compressor.encode(gradient))
    np.testing.assert_allclose(sent + compressor.accumulated, velocities, rtol=0, atol=1e-11)


def test_the_warm_up_has_the_papers_densities_and_ends_at_the_density_asked_for():
    compressor = DGC(0.001)
    sparsity = []
    for epoch in range(6):
        compressor.begin_epoch(epoch)
        sparsity.append(100 * (1 - compressor.present_density))
        assert compressor.encode(np.ones(64_000, "float32")).nbytes == 8 * 64_000 * compressor.present_density
    assert sparsity == pytest.approx([75, 93.75, 98.4375, 99.6, 99.9, 99.9])
    compressor = DGC(0.01)  # never less than is asked for
    densities = [(compressor.begin_epoch(epoch), compressor.present_density)[1] for epoch in range(5)]
    assert densities == [0.25, 0.0625, 0.015625, 0.01, 0.01]


def test_clipping_scales_the_whole_gradient_to_the_nodes_share_of_the_threshold():
    gradients = [np.array([3.0, 0.0]), np.array([[0.0], [4.0]])]  # together of norm 5
    compressors = [DGC(1.0, 0.0, clip=2.0, warmup=()) for _ in gradients]
    for nodes, limit in ((1, 2.0), (4, 1.0), (16, 0.5)):
        for compressor, gradient in zip(compressors, gradients, strict=True):
            compressor.begin_step(5.0, nodes)
            np.testing.assert_allclose(compressor.decode(compressor.encode(gradient)), gradient * limit / 5, rtol=1e-15)
    small = DGC(1.0, 0.0, clip=2.0, warmup=())
    small.begin_step(0.5, 4)
    np.testing.assert_array_equal(small.decode(small.encode(np.array([0.3, 0.4]))), [0.3, 0.4])


def test_clipping_without_the_norm_of_this_step_is_an_error():
    compressor = DGC(0.5, clip=1.0)
    compressor.begin_step(1.0, 2)
    compressor.encode(np.ones(2))
    with pytest.raises(RuntimeError, match="must know the norm of the whole gradient"):
        compressor.encode(np.ones(2))
    with pytest.raises(RuntimeError, match="must know the norm of the whole gradient"):
        cluster.launch(lambda comm: DGC(0.5, clip=1.0).begin_all_reduce(np.ones(2), comm)(), nodes=1, on="simulation")


def test_in_a_sum_over_the_nodes_clipping_asks_for_the_norm_only_if_begin_step_has_not_stated_it():
    compressor = DGC(1.0, 0.0, clip=2.0, warmup=())
    assert next(compressor.add_up(np.array([3.0, 4.0]), nodes=4, rank=0)) == GradientNorm()
    compressor.begin_step(5.0, 4)
    message = next(compressor.add_up(np.array([3.0, 4.0]), nodes=4, rank=0))
    np.testing.assert_allclose(message.data[8:].view(np.float64), [0.6, 0.8], rtol=1e-15)


def test_an_optimizer_with_momentum_of_its_own_is_refused():
    parameters = [Tensor(np.zeros(2), requires_grad=True)]
    for optimizer in (optim.SGD(parameters, lr=0.1, momentum=0.9), optim.Adam(parameters)):
        with pytest.raises(ValueError, match="DGC has momentum of its own, and so has the optimizer"):
            DGC(0.1).check_optimizer(optimizer)
        DGC(0.1, momentum_correction=False).check_optimizer(optimizer)
    DGC(0.1).check_optimizer(optim.SGD(parameters, lr=0.1))
