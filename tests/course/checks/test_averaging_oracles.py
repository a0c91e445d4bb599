"""The right values of chapter 07's checks are those of the library: its strategies, matrices and partial sums."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from course.checks.averaging import elastic_runs, gossip_runs, graphs, local_runs, majority_rounds, stability
from course.checks.averaging.machines import LR, Machine
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl.parallel import PartialAllReduce, mixing

NO_ANSWER: Any = None
"""Oracles are computed without an answer."""

Array = np.ndarray


class Weights(nn.Module):
    """A model whose output is its weights, once for each sample."""

    def __init__(self, x: Array) -> None:
        self.x = nn.Parameter(x.copy())

    def forward(self, samples: Array) -> Tensor:
        return Tensor(np.ones((len(samples), 1))) @ self.x.reshape(1, -1)


def parabolas(outputs: Tensor, targets: Array) -> Tensor:
    """The mean loss whose gradient is curvature (x - minimum); a target has the curvature and the minimum."""
    n = targets.shape[1] // 2
    apart = outputs - Tensor(targets[:, n:])
    return (Tensor(targets[:, :n]) * apart * apart).sum() * (0.5 / len(targets))


class Dealt(Machine):
    """A machine whose curvature, too, is that of its sample in the step."""

    def gradient(self, x: Array, step: int) -> Array:
        return np.asarray(self.curvature[step] * (x - self.minima[step]))


def dealt(p: int, n: int, steps: int, x: Array) -> tuple[parallel.Job, list[Machine]]:
    """A job with a parabola as each sample, and the machines as its shuffle deals them."""
    rng = np.random.default_rng((p, n, steps))
    rows = np.concatenate([rng.uniform(0.5, 2, (steps * p, n)), rng.normal(size=(steps * p, n))], axis=1)
    samples = data.Dataset(np.zeros((steps * p, 1)), rows)
    job = parallel.Job(
        partial(Weights, x), data.Splits(samples, data.Dataset(*samples[:1])), partial(optim.SGD, lr=LR),
        loss=parabolas, batch_size=p, epochs=1,
    )  # fmt: skip
    order = job.order(samples, p, p)(0).reshape(steps, p)
    return job, [Dealt(x, rows[own, :n], rows[own, n:]) for own in order.T]


@pytest.mark.parametrize("case", [(2, 3, 3, 8, 0), (3, 2, 2, 5, 0), (1, 2, 4, 3, 0)])
@pytest.mark.timeout(300)
def test_the_weights_of_local_sgd_are_those_of_the_library(case: local_runs.Case) -> None:
    p, n, period, steps, _ = case
    job, machines = dealt(p, n, steps, np.linspace(-1, 1, n))
    one = local_runs.Local(NO_ANSWER, machines, period, steps, first=0)
    report = parallel.train(job, parallel.LocalSGD(period), p, cluster.Simulation())
    np.testing.assert_allclose(report.model().x.numpy(), local_runs.trained(one)[0], rtol=1e-12, atol=1e-12)
    assert [step - 1 for step in report.recorded["rounds"][0]] == local_runs.ends(steps, period, 0)


@pytest.mark.parametrize("case", [(3, 4, 1, 4), (2, 3, 3, 8)])
@pytest.mark.timeout(300)
def test_the_centre_of_elastic_averaging_is_that_of_the_library(case: elastic_runs.Case) -> None:
    p, n, period, steps = case
    centre = np.linspace(-1, 1, n)
    job, machines = dealt(p, n, steps, centre)  # in the library, workers begin at the centre
    one = elastic_runs.Elastic(NO_ANSWER, machines, centre, LR, 0.3, period, steps)
    strategy = parallel.ElasticAveraging(one.alpha, period, "synchronous")
    report = parallel.train(job, strategy, p, cluster.Simulation())
    np.testing.assert_allclose(report.model().x.numpy(), elastic_runs.trained(one)[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", [(3, 4, 2, 5), (4, 2, 3, 7)])
def test_pulls_conserve_the_total_and_the_known_slips_change_it(case: elastic_runs.Case) -> None:
    one = elastic_runs.elastic(NO_ANSWER, case, seed=3, lr=0.0)
    before = one.centre + sum(each.x for each in one.machines)
    xs, centre = elastic_runs.trained(one)
    np.testing.assert_allclose(centre + sum(xs), before, atol=1e-12)
    for slip in ("new weights", "mean", "repelled centre"):
        xs, centre = elastic_runs.trained(one, slip)
        assert not np.allclose(centre + sum(xs), before)


@pytest.mark.parametrize("setting", [(1, 0.5, 1.0, 1), (8, 0.1, 1.0, 1), (3, 0.4, 2.0, 2), (8, 0.05, 2.0, 16)])
def test_rounds_shrink_distances_below_the_limit_and_increase_them_above(setting: stability.Setting) -> None:
    p, lr, curvature, period = setting
    limit = stability.limit(p, lr * curvature, period)
    for share in (0.25, 0.5, 0.999, 0.999999):
        assert stability.growth(share * limit, p, lr * curvature, period) < 1
    assert stability.growth(limit, p, lr * curvature, period) == pytest.approx(1, abs=1e-12)
    for share in (1.000001, 1.1, 2.0):
        assert stability.growth(share * limit, p, lr * curvature, period) > 1


@pytest.mark.parametrize("alpha", [0.1, 0.22, 0.25])
def test_the_growth_of_a_round_is_that_of_workers_that_are_played(alpha: float) -> None:
    p, a, period = 8, 0.1, 2
    rng = np.random.default_rng(4)
    x, centre, distances = rng.normal(size=p), 1.0, []
    for step in range(600):
        pulls = alpha * (x - centre) if step % period == 0 else np.zeros(p)
        x, centre = x - a * x - pulls, centre + pulls.sum()
        if step % period == period - 1:
            distances.append(np.hypot(x.mean(), centre))
    late = (distances[150] / distances[50]) ** 0.01
    assert late == pytest.approx(stability.growth(alpha, p, a, period), rel=1e-6)


def test_the_limits_of_the_papers_are_special_cases() -> None:
    for eta in (0.1, 0.5):
        assert stability.limit(1, eta, 1) == pytest.approx((4 - 2 * eta) / (4 - eta), rel=1e-14)
        for p in (2, 8):
            assert stability.limit(p, eta, 1) == pytest.approx((4 - 2 * eta) / (2 + 2 * p - p * eta), rel=1e-14)


@pytest.mark.parametrize("slip", ["counted from step 0", "one more at first", "no last"])
def test_the_cause_of_a_wrong_number_of_rounds_is_the_slip_that_gives_the_weights(slip: str) -> None:
    one = local_runs.local(None, (2, 3, 3, 9, 1), seed=0)  # type: ignore[arg-type]
    one.__dict__["run"] = SimpleNamespace(results=local_runs.trained(one, slip))
    assert local_runs.slip_of(one) == local_runs.SLIPS[slip]


def test_right_weights_and_odd_results_are_no_known_slip() -> None:
    one = local_runs.local(None, (2, 3, 3, 9, 1), seed=0)  # type: ignore[arg-type]
    for results in (local_runs.trained(one), [None, None], [np.zeros(3), "text"], [np.array(["a", "b", "c"])] * 2):
        one.__dict__["run"] = SimpleNamespace(results=results)
        assert local_runs.slip_of(one) == ""


def test_a_mistake_is_the_cause_only_if_it_gives_all_of_the_numbers() -> None:
    known: list[dict[str, float]] = [{"one": 4.0, "other": 4.0}, {"one": 6.0, "other": 5.0}]
    assert local_runs.cause_of_all([4, 5.0], known) == "other"
    for odd in (None, "5", 7.0, 10**400, np.nan):
        assert local_runs.cause_of_all([4, odd], known) == ""


def test_the_words_of_a_round_are_those_of_a_ring() -> None:
    for p, n in ((2, 6), (5, 10), (1, 4)):
        run = cluster.launch(
            lambda comm, n=n: comm.all_reduce(np.zeros(n), algorithm="ring"), nodes=p, on=cluster.Simulation()
        )
        sent = [sum(each.nbytes for each in row.values()) / 8 for row in run.trace.ledger()]
        assert sent == [pytest.approx(2 * (p - 1) / p * n)] * p


@pytest.mark.parametrize("kind", ["ring", "path", "star", "full", "two stars", "random"])
def test_the_library_s_weights_agree_at_least_as_fast_as_equal_ones(kind: str) -> None:
    for p in (1, 2, 3, 5, 9, 12) if kind in ("path", "full") else (2, 3, 5, 9, 12):
        near = graphs.neighbours((kind, p), seed=5)
        of_library = mixing.matrix([set(each) for each in near])
        assert graphs.factor(of_library) <= graphs.factor(graphs.equal_weights(near)) + 1e-12
        for w in (graphs.equal_weights(near), graphs.drawn_weights((kind, p), seed=5)):
            assert np.allclose(mixing.check(w), w.T) if len(w) > 1 else w.tolist() == [[1.0]]
            assert graphs.factor(w) == pytest.approx(1 - mixing.spectral_gap(w), abs=1e-12)


@pytest.mark.parametrize(("n", "factor"), [(4, 0.3333), (8, 0.80474), (16, 0.94925), (32, 0.98719)])
def test_the_consensus_factor_of_rings_is_the_closed_form(n: int, factor: float) -> None:
    got = graphs.factor(graphs.equal_weights(graphs.neighbours(("ring", n), seed=0)))
    assert got == pytest.approx((1 + 2 * np.cos(2 * np.pi / n)) / 3, abs=1e-12)
    assert got == pytest.approx(factor, abs=5e-5)


@pytest.mark.parametrize("name", ["two halves", "directed ring", "no own weight", "two groups", "permutations"])
def test_gossip_matrices_are_doubly_stochastic_and_have_the_stated_consensus_factors(name: str) -> None:
    p = 6
    w = graphs.matrices(name, p, seed=6)
    assert (w >= 0).all()
    np.testing.assert_allclose([w.sum(axis=0), w.sum(axis=1)], 1, atol=1e-12)
    told = {"two halves": 0.6, "directed ring": np.cos(np.pi / p), "no own weight": 1.0, "two groups": 1.0}
    x = np.random.default_rng(7).normal(size=p)
    late = np.linalg.norm(np.linalg.matrix_power(w, 40) @ (x - x.mean())) ** (1 / 40)
    assert graphs.factor(w) == pytest.approx(told.get(name, late), abs=1e-9 if name in told else 0.05)


@dataclass(frozen=True)
class Apart(parallel.Gossip):
    """Gossip of nodes that begin with weights of their own, at learning rate 0; records them at both ends."""

    def run(self, session: Any) -> None:
        session.set_weights(np.random.default_rng(session.comm.rank).normal(size=session.weights().shape))
        session.record("ends", session.weights())
        super().run(session)
        session.record("ends", session.weights())


@pytest.mark.parametrize("graph", [("random", 6), ("star", 4)])
@pytest.mark.timeout(300)
def test_gossip_with_the_library_mixes_by_the_same_powers(graph: graphs.Graph) -> None:
    w, steps = graphs.drawn_weights(graph, seed=8), 4
    job, _ = dealt(graph[1], 3, steps, np.zeros(3))
    still = dataclasses.replace(job, optimizer=partial(optim.SGD, lr=0.0))
    report = parallel.train(still, Apart(w.tolist()), graph[1], cluster.Simulation())
    starts, ends = np.array(report.recorded["ends"]).transpose(1, 0, 2)
    one = gossip_runs.Gossiped(NO_ANSWER, graph, w, starts, steps)
    np.testing.assert_allclose(ends, gossip_runs.mixed(one), atol=1e-12)


@pytest.mark.parametrize(("kind", "case"), [("even", (4, 3, 4)), ("uneven", (4, 2, 3)), ("same", (3, 2, 3))])
@pytest.mark.timeout(300)
def test_the_rounds_of_a_majority_are_those_of_the_library_s_partial_sums(
    kind: str, case: majority_rounds.Case
) -> None:
    """A machine of the library waits for the round of its gradient: so it has the first of each round only."""
    one = majority_rounds.majority(NO_ANSWER, kind, case, seed=9)
    first: list[majority_rounds.Gradient] = []  # for each machine, a gradient that is new in a round
    seconds, now = majority_rounds.replay(one)[0], 0.0
    for at in seconds:
        new = {each.machine: each for each in reversed(one.gradients) if now < each.at <= at}
        first, now = first + list(new.values()), at
    one.gradients = sorted(first, key=lambda each: each.at)
    seconds, sums, _ = majority_rounds.replay(one)

    def program(comm: cluster.Communicator) -> Any:
        own = [each for each in one.gradients if each.machine == comm.rank]
        partial_sums = PartialAllReduce(
            comm.split(0), limit=len(one.gradients), like=np.zeros(one.n), initiator=one.drawn.__getitem__
        )
        found = []
        for each in own:
            comm.compute(seconds=max(0.0, each.at - comm.now()))
            rounds, _ = partial_sums.contribute(each.values, samples=1)
            found += [one_round.total for one_round in rounds]
        return found

    runs = cluster.launch(program, nodes=one.p, on="simulation", network=majority_rounds.AT_ONCE).results
    longest = max(runs, key=len)
    np.testing.assert_allclose(longest, sums, atol=1e-12)


@pytest.mark.parametrize("kind", ["even", "uneven", "same"])
def test_each_gradient_is_in_exactly_one_round_or_left_over(kind: str) -> None:
    for seed in range(8):
        one = majority_rounds.majority(NO_ANSWER, kind, (5, 2, 4), seed)
        seconds, sums, left = majority_rounds.replay(one)
        assert seconds == sorted(set(seconds))
        want = majority_rounds.total(one.n, one.gradients)
        np.testing.assert_allclose(sum(sums) + sum(left), want, rtol=1e-12, atol=1e-11)
        assert len({each.at for each in one.gradients}) == len(one.gradients)
