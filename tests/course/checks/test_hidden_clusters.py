"""Hidden clusters of `choose`: clear cases of both kinds, which find every known slip; formulas and play agree."""

from __future__ import annotations

import numpy as np
import pytest

from course.checks.asynchrony.cluster_times import (
    SLIPS,
    asynchronous_played,
    choice,
    estimated,
    one_after_the_other,
)
from course.checks.asynchrony.hidden_clusters import FOUND, OF_EACH, REGRET, TOLERANCE, clusters, is_off
from course.probes.asynchrony import Cluster
from tests.tiers import exhaustively

SEEDS = [0, 27, *exhaustively(*range(1, 25))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("group", FOUND)
def test_a_group_has_clear_cases_of_both_kinds_and_finds_its_slips(group, seed):
    those = clusters(group, seed)
    right = [choice(times) for _, times in those]
    assert min(right.count("synchronous"), right.count("asynchronous")) >= OF_EACH
    assert all(max(times) > (1 + REGRET) * min(times) for _, times in those)
    assert all(abs(asynchronous_played(one, seed) - times[1]) < TOLERANCE * times[1] for one, times in those)
    for slip in SLIPS:
        assert any(is_off(estimated(one, slip), times) for one, times in those) == (slip in FOUND[group]), slip


def test_a_server_that_is_always_busy_gives_one_gradient_in_each_exchange():
    assert one_after_the_other([[0.001] * 50] * 8, 1.0) == pytest.approx(1.0, rel=0.01)


def test_without_a_network_the_rates_of_asynchronous_workers_add_up():
    cluster = Cluster(40, 8, 0.1, 0.0, 1.0, 4.0, 0, 0.0, 0.0, 0.0)
    assert estimated(cluster)[0] == pytest.approx(5 * 0.4)
    assert estimated(cluster)[1] == pytest.approx(40 / (7 / 0.1 + 1 / 0.4))
    assert asynchronous_played(cluster, 0) == pytest.approx(40 / (7 / 0.1 + 1 / 0.4), rel=0.01)


def test_a_synchronous_step_waits_for_the_longest_of_its_gradients():
    cluster = Cluster(16, 16, 1.0, 0.1, 5.0, 1.0, 0, 0.0, 0.0, 0.0)
    played = 1 + 4 * (np.random.default_rng(0).random((20_000, 16)) < 0.1)
    assert estimated(cluster)[0] == pytest.approx(played.max(axis=1).mean(), rel=0.01)
