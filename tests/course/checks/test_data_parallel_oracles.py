"""The right values of chapter 05's checks agree with closed forms, brute force, the library and the simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from course.checks.synchronous_data_parallelism import (
    gradient_buckets,
    last_of_p,
    serial_steps,
    sharded_minibatches,
    simulated_clusters,
)
from course.judging import Answer, Wrong
from course.judging.ranks.rank_run import RankRun
from course.sandbox.exchange.plain_data import Foreign
from minidl import Tensor, data, optim

SLOW_NETWORK = (4e-5, 2e-9)
FAST_NETWORK = (5e-6, 0.05e-9)
ODD = [
    None, "text", math.nan, -math.inf, 10**5000, 1j, Foreign("Work"), [1.0, "text"], [[1, 2], [3]],
    [np.array(["text"] * 3), np.array(["text"] * 3)], (np.ones(3), None), np.array(["text"]),
]  # fmt: skip


class Always:
    """An answer that returns one value, whatever it is given."""

    def __init__(self, value: Any) -> None:
        self.name = "answer"
        self.value = value

    def __call__(self, *arguments: Any) -> Any:
        return self.value


@pytest.mark.parametrize(("n", "p"), [(1, 4), (5, 1), (6, 3), (3, 7)])
def test_the_expected_last_of_p_is_the_mean_over_all_cases(n, p):
    times = last_of_p.drawn_times(n, p, seed=3)
    cases = [max(case) for case in itertools.product(times.tolist(), repeat=p)]
    assert last_of_p.expected_last(times, p) == pytest.approx(np.mean(cases), rel=1e-12)


@pytest.mark.parametrize("p", [1, 2, 8, 100])
def test_the_expected_last_of_p_tends_to_the_closed_forms(p):
    even = (np.arange(20_000) + 0.5) / 20_000
    assert last_of_p.expected_last(even, p) == pytest.approx(p / (p + 1), rel=1e-5)
    assert last_of_p.expected_last(-np.log1p(-even), p) == pytest.approx(last_of_p.harmonic(p), rel=1e-2)


def test_the_expected_last_of_p_agrees_with_random_draws():
    times = last_of_p.drawn_times(12, 5, seed=1)
    draws = np.random.default_rng(0).choice(times, (100_000, 5)).max(axis=1)
    assert last_of_p.expected_last(times, 5) == pytest.approx(draws.mean(), abs=5 * draws.std() / 300)


@pytest.mark.parametrize("network", [SLOW_NETWORK, FAST_NETWORK], ids=["slow", "fast"])
@pytest.mark.parametrize(("p", "buckets"), [(2, 1), (5, 3), (8, 6)])
def test_a_simulated_step_takes_what_the_formula_says(p, buckets, network):
    one = simulated_clusters.Cluster(p, 16, 3e9, 6e12, 24_000_000, *network, buckets)
    backward = 16 * 3e9 / 6e12 * 2 / 3
    reducing = 2 * (p - 1) * (network[0] + 24_000_000 / buckets / p * network[1])
    step = backward / 2 + max(backward + reducing, backward / buckets + buckets * reducing)
    assert simulated_clusters.step_seconds(one, p) == pytest.approx(step, rel=1e-3)


def test_no_known_mistake_of_the_scaling_has_the_right_value():
    one = simulated_clusters.Cluster(4, 30, 3e9, 6e12, 24_000_000, *SLOW_NETWORK, 3, strong=True)
    want = simulated_clusters.simulated(one)
    assert 0 < want < 1
    assert not np.any(np.isclose(list(simulated_clusters.mistakes(one).values()), want, rtol=1e-3))


def test_the_serial_steps_are_those_of_the_librarys_sgd():
    w = None
    for step in serial_steps.steps_of((3, 8, 4), seed=5):
        if w is None:
            w = Tensor(step.w.copy(), requires_grad=True)
            sgd = optim.SGD([w], step.lr, momentum=step.momentum)
        sgd.param_groups[0] |= {"lr": step.lr, "momentum": step.momentum, "weight_decay": step.decay}
        w.grad = step.gradient
        sgd.step()
        np.testing.assert_allclose(w.data, step.after()[0], rtol=1e-12)


def test_the_minibatches_are_those_of_the_librarys_loader():
    order = sharded_minibatches.order_of(11, seed=2, epoch=1)
    samples = data.Dataset(np.arange(11.0)[:, None], np.arange(11))
    loader = data.DataLoader(samples, 4, order=lambda _: order)
    read = [np.asarray(y) for _, y in loader]
    for got, want in zip(read, sharded_minibatches.minibatches_of(11, 4, seed=2, epoch=1), strict=True):
        np.testing.assert_array_equal(got, want)


def test_buckets_are_full_at_bucket_bytes_and_the_last_one_takes_the_rest():
    gradients = [[np.zeros(length) for length in (1, 2, 3, 4)]] * 2
    backward = gradient_buckets.Backward(gradients, [0.1, 0.2, 0.3, 0.4], bucket_bytes=50, beta=0.01)
    assert backward.buckets() == [[3, 2], [1, 0]]
    assert backward.bucket_sizes() == [56, 24]
    assert backward.ready() == pytest.approx([0.7, 1.0])
    assert backward.end() == pytest.approx(0.7 + 0.56 + 0.24)


def test_a_missing_last_bucket_and_a_late_full_one_have_causes_of_their_own():
    gradients = [[np.zeros(length) for length in (1, 2, 1)]] * 2
    backward = gradient_buckets.Backward(gradients, [0.1, 0.2, 0.3], bucket_bytes=8)
    assert backward.bucket_sizes() == [8, 16, 8]
    assert backward.bucket_sizes(exactly_is_full=False) == [24, 8]
    assert "exactly bucket_bytes" in gradient_buckets.cause_of_count([24, 8], backward)
    assert "The last bucket need not be full" in gradient_buckets.cause_of_count([8, 16], backward)
    assert "holds bucket_bytes or more" in gradient_buckets.cause_of_count([16, 16], backward)


def test_a_full_bucket_that_starts_late_has_a_cause_where_the_number_of_buckets_is_right():
    gradients = [[np.zeros(length) for length in (2, 1, 1, 1)]] * 2
    backward = gradient_buckets.Backward(gradients, [0.1] * 4, bucket_bytes=16)
    assert backward.bucket_sizes() == [16, 24]
    assert backward.bucket_sizes(exactly_is_full=False) == [24, 16]
    assert "exactly bucket_bytes" in gradient_buckets.cause_of_sizes([24, 16], backward)


def test_shards_without_the_last_minibatch_are_not_taken_for_shards_of_batch_size_samples_each():
    def sampler(n: int, batch_size: int, p: int, rank: int, seed: int, epoch: int) -> list[np.ndarray]:
        minibatches = sharded_minibatches.minibatches_of(n, batch_size, seed, epoch)
        return [minibatch[rank::p] for minibatch in minibatches[: n // batch_size]]

    def own_minibatches(n: int, batch_size: int, p: int, rank: int, seed: int, epoch: int) -> list[np.ndarray]:
        own = sharded_minibatches.order_of(n, seed, epoch)[rank::p]
        return [own[first : first + batch_size] for first in range(0, len(own), batch_size)]

    for answer, cause in ((sampler, "The last minibatch is missing"), (own_minibatches, "not those of one rank")):
        for case in ((23, 6, 4), (11, 3, 2), (10, 6, 5)):
            epoch = sharded_minibatches.Epoch(answer, case, 0, 0)
            with pytest.raises(Wrong) as wrong:
                sharded_minibatches.even_shards(epoch)
            assert cause in wrong.value.cause


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_odd_values_are_wrong_and_no_defect_of_the_check(odd):
    answer: Any = Always(odd)
    step = next(serial_steps.steps_of((2, 4, 3), seed=0))
    backward = next(gradient_buckets.passes([([3, 3], 24)], [2], seed=0))
    run = RankRun([odd] * 2, [([], 24)] * 2, [{}] * 2, 0.0, [], [], [frozenset({0, 1})] * 2, [99, 99])
    one = simulated_clusters.Cluster(2, 16, 3e9, 6e12, 24_000_000, *SLOW_NETWORK)
    for judge in (
        lambda: sharded_minibatches.each_sample_once(sharded_minibatches.Epoch(answer, (6, 2, 2), 0, 0)),
        lambda: serial_steps.compare(run, step),
        lambda: serial_steps.same_bits(run, step),
        lambda: serial_steps.depends_on_all(run, run, step),
        lambda: gradient_buckets.sums(run, backward),
        lambda: simulated_clusters.judge(answer, one),
        lambda: simulated_clusters.judge_one_node(answer, one),
        lambda: last_of_p.judge_exponential(answer, 1.0, 3),
        lambda: last_of_p.judge_times(answer, np.array([1.0, 2.0]), 2),
    ):
        with pytest.raises(Wrong):
            judge()


def test_an_answer_that_reads_all_samples_on_one_rank_has_uneven_shards():
    def greedy(n: int, batch_size: int, p: int, rank: int, seed: int, epoch: int) -> list[np.ndarray]:
        minibatches = sharded_minibatches.minibatches_of(n, batch_size, seed, epoch)
        return [minibatch if rank == 0 else minibatch[:0] for minibatch in minibatches]

    answer: Any | Answer = greedy
    epoch = sharded_minibatches.Epoch(answer, (10, 4, 3), 0, 0)
    sharded_minibatches.each_sample_once(epoch)
    sharded_minibatches.serial_minibatches(epoch)
    with pytest.raises(Wrong, match="may differ by 1"):
        sharded_minibatches.even_shards(epoch)
