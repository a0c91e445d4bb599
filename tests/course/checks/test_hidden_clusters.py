"""Hidden clusters of `choose`: clear cases of both kinds, which catch every known mistake; formulas and play agree."""

from __future__ import annotations

import numpy as np
import pytest

from course.checks.asynchrony.cluster_times import MISTAKES, choice, estimated, one_after_the_other, played
from course.checks.asynchrony.hidden_clusters import CAUGHT, OF_EACH, REGRET, clusters
from course.probes.asynchrony import Cluster
from tests.tiers import exhaustively

SEEDS = [0, 27, *exhaustively(*range(1, 25))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("group", CAUGHT)
def test_a_group_has_clear_cases_of_both_kinds_and_catches_its_mistakes(group, seed):
    those = clusters(group, seed)
    right = [choice(times) for _, times in those]
    assert min(right.count("synchronous"), right.count("asynchronous")) >= OF_EACH
    assert all(max(times) > (1 + REGRET) * min(times) for _, times in those)
    assert [choice(estimated(cluster)) for cluster, _ in those] == right
    for sentence, choose in MISTAKES.items():
        errs = any(choose(cluster) != best for (cluster, _), best in zip(those, right, strict=True))
        assert errs == (sentence in CAUGHT[group]), sentence


def test_a_server_that_is_always_busy_gives_one_gradient_in_each_exchange():
    assert one_after_the_other([[0.001] * 50] * 8, 1.0) == pytest.approx(1.0, rel=0.01)


def test_without_a_network_the_rates_of_asynchronous_workers_add_up():
    cluster = Cluster(8, 0.1, 0.0, 1.0, 4.0, 0, 0.0, 0.0, 0.0)
    together, alone = played(cluster, 0)
    assert together == pytest.approx(0.4 / 8)
    assert alone == pytest.approx(1 / (7 / 0.1 + 1 / 0.4), rel=0.01)


def test_a_synchronous_step_waits_for_the_longest_of_its_gradients():
    cluster = Cluster(16, 1.0, 0.1, 5.0, 1.0, 0, 0.0, 0.0, 0.0)
    expected = np.mean([1 + 4 * (1 - 0.9**16)]) / 16
    assert estimated(cluster)[0] == pytest.approx(expected)
    assert played(cluster, 0)[0] == pytest.approx(expected, rel=0.05)
