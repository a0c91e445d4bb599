"""The right values of chapter 08's checks agree with the library, with enumeration and with the simulation."""

from __future__ import annotations

import numpy as np
import pytest

from course.checks.large_minibatches import (
    best_times,
    corrected_paths,
    lars_rules,
    measured_steps,
    noise_estimates,
    rank_noise,
    rate_schedules,
)
from course.probes.large_minibatches import Cluster
from minidl import Tensor, cluster, optim
from minidl.parallel import noise_scale
from tests.tiers import exhaustively

SEEDS = [0, 25, 26, *exhaustively(*range(1, 25))]


@pytest.mark.parametrize(
    "case", [(0.1, 32, 160, 1000, 2, (4, 6)), (0.2, 16, 40, 500, 1, (3,)), (0.3, 8, 8, 64, 0, (2,))]
)
def test_the_rates_are_those_of_the_library_s_schedules(case):
    schedule = rate_schedules.Schedule(*case)
    steps = schedule.steps_an_epoch
    k = schedule.batch / schedule.base_batch
    optimizer = optim.SGD([Tensor([0.0], requires_grad=True)], lr=k * schedule.base_lr)
    schedules = [optim.schedules.MultiStepLR(optimizer, [epoch * steps for epoch in schedule.drops])]
    if schedule.warm_up:
        schedules.append(optim.schedules.LinearLR(optimizer, 1 / k, total_iters=schedule.warm_up * steps))
    for step in range(10 * steps):
        assert schedule.rate(step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        for each in schedules:
            each.step()


def test_every_known_mistake_of_a_schedule_gives_another_rate_somewhere():
    ragged = rate_schedules.Schedule(0.1, 16, 40, 1010, 3, (5, 8))
    whole = rate_schedules.Schedule(0.1, 16, 40, 1000, 3, (5, 8))
    seen = {
        sentence
        for right in (ragged, whole)
        for sentence, wrong in rate_schedules.mistakes(right).items()
        if any(wrong.rate(step) != pytest.approx(right.rate(step)) for step in right.looked_at())
    }
    assert seen == set(rate_schedules.mistakes(ragged))


@pytest.mark.parametrize("kind", ["constant", "rising", "falling"])
def test_the_corrected_velocity_follows_the_form_with_the_rate_outside(kind):
    one = corrected_paths.run(Silent(), (3, 9, 0.9), kind, 4)
    np.testing.assert_allclose(one.path(), one.right_path(), rtol=0, atol=1e-13)
    rates = np.diff(one.rates)
    assert {"constant": not rates.any(), "rising": (rates >= 0).all(), "falling": (rates <= 0).all()}[kind]


class Silent:
    """An answer that does nothing."""

    def __call__(self, *arguments: object) -> None:
        return None

    def offered(self, function: object, name: str) -> object:
        return function


@pytest.mark.parametrize("case", [(3, 2, 1, 2), (4, 3, 2, 4), (3, 5, 2, 3)])
def test_all_minibatches_of_a_population_give_its_exact_noise_scale(case):
    small, large, exact = noise_estimates.enumerated(case, 3)
    assert noise_estimates.scale(small, large, *case[2:]) == pytest.approx(exact, rel=1e-10)


def test_the_noise_scale_is_that_of_the_library():
    small, large, b_small, b_large = noise_estimates.drawn((6, 4, 3, 2, 8), 5)
    squares = [float(noise_estimates.squares(each).mean()) for each in (small, large)]
    noise = noise_scale.from_two_sizes(b_small, squares[0], b_large, squares[1])
    assert noise_estimates.scale(small, large, b_small, b_large) == pytest.approx(noise.scale, rel=1e-12)


@pytest.mark.parametrize("p", [2, 3, 6])
def test_gradients_without_a_mean_have_a_negative_estimate_of_the_squared_norm(p):
    gradients = rank_noise.without_mean(list(np.random.default_rng(p).normal(1.0, 2.0, (p, 5))))
    small, large = np.mean([gradient @ gradient for gradient in gradients]), np.mean(gradients, axis=0)
    squared_norm, trace = noise_estimates.estimates(small, large @ large, 4, 4 * p)
    assert squared_norm < -0.1 < trace


def test_lars_is_that_of_the_library_with_ratio_1_for_biases():
    rng = np.random.default_rng(2)
    shapes, rates, settings = ((4, 3), (4,), (2, 4)), (0.5, 0.25, 0.25), (0.8, 0.1, 0.02)
    weights = [rng.normal(size=shape) for shape in shapes]
    velocities = [np.zeros(shape) for shape in shapes]
    tensors = [Tensor(w.astype(np.float32), requires_grad=True) for w in weights]
    optimizer = optim.LARS(tensors, 0.5, *settings, exclude_1d=True)
    for lr in rates:
        gradients = [rng.normal(size=shape) for shape in shapes]
        after = lars_rules.Step(weights, gradients, velocities, lr, settings).after()
        weights, velocities = [w for w, _ in after], [v for _, v in after]
        optimizer.param_groups[0]["lr"] = lr
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = gradient.astype(np.float32)
        optimizer.step()
        for tensor, w in zip(tensors, weights, strict=True):
            np.testing.assert_allclose(tensor.data, w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("nodes", [2, 4, 7])
def test_a_step_s_seconds_are_those_of_the_simulation(nodes):
    one = Cluster(nodes, 2e-3, 8 * 700 * nodes, 5e-5, 1e-9, 1000, 200.0, 500)
    batch = 30 * nodes

    def step(comm):
        comm.compute(seconds=one.seconds_per_sample * batch / nodes)
        comm.all_reduce(cluster.Phantom(one.nbytes), algorithm="ring")

    network = cluster.Network(one.alpha, one.beta)
    seconds = cluster.launch(step, nodes=nodes, on=cluster.Simulation(network)).seconds
    steps = one.s_min * (1 + one.b_c / batch)
    assert best_times.seconds_to_target(one, batch) == pytest.approx(steps * seconds, rel=0.02)


@pytest.mark.parametrize("seed", SEEDS)
def test_hidden_clusters_catch_every_known_mistake(seed):
    between, limits = best_times.clusters(seed), best_times.corners(seed)
    for group, mistakes in ((between, best_times.MISTAKES), (limits, best_times.ROUNDED)):
        for sentence, choose in mistakes.items():
            assert any(
                not best_times.is_allowed(each, batch := choose(each))
                or best_times.regret(each, int(batch)) > best_times.REGRET
                for each in group
            ), sentence
    assert all(each.nodes < best_times.best(each) < each.nodes * each.most_per_node for each in between)


@pytest.mark.parametrize("seed", SEEDS)
def test_measured_times_fall_and_then_rise(seed):
    for one in measured_steps.draw(seed):
        falls, rises = np.split(np.diff(one.times), [int(np.argmin(one.times))])
        assert (falls < 0).all(), one.kind
        assert (rises > 0).all(), one.kind
