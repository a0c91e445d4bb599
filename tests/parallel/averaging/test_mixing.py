"""Mixing matrices: they keep the mean, and bring the nodes together as fast as their spectral gap says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl.parallel.averaging import mixing


@pytest.mark.parametrize(("nodes", "factor"), [(4, 0.3333), (32, 0.98719)])
def test_on_a_ring_the_distance_shrinks_by_a_third_of_1_plus_2_cos_of_a_step_round_it(nodes, factor):
    gap = mixing.spectral_gap(mixing.matrix(mixing.ring(nodes)))
    assert 1 - gap == pytest.approx((1 + 2 * np.cos(2 * np.pi / nodes)) / 3, abs=1e-12)
    assert 1 - gap == pytest.approx(factor, abs=5e-5)


@settings(max_examples=20)
@given(st.integers(1, 20), st.sampled_from(["ring", "torus", "full"]), st.integers(0, 9))
def test_every_matrix_is_symmetric_and_doubly_stochastic_and_brings_all_together(nodes, topology, seed):
    if topology == "torus" and not has_grid(nodes):
        with pytest.raises(ValueError, match="nodes make no grid of at least two rows"):
            mixing.torus(nodes)
        return
    w = mixing.check(mixing.matrix(mixing.TOPOLOGIES[topology](nodes)))
    np.testing.assert_array_equal(w, w.T)
    values = np.random.default_rng(seed).normal(size=(nodes, 3))
    distance = np.linalg.norm(values - values.mean(axis=0))
    mixed = w @ values
    assert np.linalg.norm(mixed - values.mean(axis=0)) <= (1 - mixing.spectral_gap(w)) * distance + 1e-12


def has_grid(nodes):
    return any(nodes % rows == 0 for rows in range(2, nodes // 2 + 1))


def test_where_some_have_more_neighbours_than_others_the_mean_is_kept_all_the_same():
    star = mixing.check(mixing.matrix([{1, 2, 3}, {0}, {0}, {0}]))
    np.testing.assert_allclose(star[0], [0.25] * 4)
    np.testing.assert_allclose(np.diag(star), [0.25, 0.75, 0.75, 0.75])


def test_on_a_torus_of_3_by_4_everyone_has_four_neighbours():
    neighbours = mixing.torus(12)
    assert neighbours[0] == {1, 3, 4, 8}
    assert all(len(others) == 4 for others in neighbours)
    assert all(i in neighbours[j] for i, others in enumerate(neighbours) for j in others)


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(0, 99))
def test_a_matching_pairs_everyone_once(nodes, seed):
    w = mixing.matching(nodes, np.random.default_rng(seed))
    np.testing.assert_array_equal(w.sum(axis=1), np.ones(nodes))
    np.testing.assert_array_equal(w, w.T)
    assert sorted(np.diag(w).tolist()) == [0.5] * (nodes - nodes % 2) + [1.0] * (nodes % 2)


@pytest.mark.parametrize("nodes", [1, 2, 5, 8, 11, 16])
def test_on_the_exponential_graph_lg_n_steps_make_the_mean_if_n_is_a_power_of_two(nodes):
    rounds = max(1, (nodes - 1).bit_length())
    product = np.eye(nodes)
    for step in range(rounds):
        w = mixing.exponential(nodes, step + 3 * rounds)
        np.testing.assert_array_equal([w.sum(axis=0), w.sum(axis=1)], np.ones((2, nodes)))
        assert (np.count_nonzero(w, axis=0) <= 2).all()  # itself, and one message
        product = w @ product
    exact = bool(np.abs(product - 1 / nodes).max() < 1e-15)
    assert exact == (nodes & (nodes - 1) == 0)
    assert np.linalg.norm(product - 1 / nodes, 2) < 0.5


@settings(max_examples=20)
@given(st.integers(2, 24), st.sampled_from(["ring", "torus", "full", "random"]))
def test_the_halves_know_only_each_other_and_all_are_connected(nodes, topology):
    if topology == "torus" and not has_grid(nodes):
        return
    halves = mixing.opposites(topology, nodes)
    for i, (active, neighbours) in enumerate(halves):
        assert neighbours
        for j in neighbours:
            assert halves[j][0] != active
            assert i in halves[j][1]
    w = mixing.matrix([set(neighbours) for _, neighbours in halves])
    assert mixing.spectral_gap((w + np.eye(nodes)) / 2) > 1e-6  # in a graph of two parts it would be 0


@pytest.mark.parametrize(
    ("w", "sentence"),
    [
        ([[0.5, 0.5]], r"a mixing matrix is square, .* got shape \(1, 2\)"),
        ([], "a mixing matrix is square"),
        ([[1.5, -0.5], [-0.5, 1.5]], r"no entry below 0, but entry \(0, 1\) is -0.5"),
        ([[np.nan, 1.0], [1.0, 0.0]], r"no entry below 0, but entry \(0, 0\) is nan"),
        (
            [[0.5, 0.4], [0.5, 0.6]],
            "every row of a mixing matrix sums to 1, but row 0 sums to 0.9: it would",
        ),
        ([[0.5, 0.5], [0.4, 0.6]], "every column of a mixing matrix sums to 1, but column 0 sums to 0.9: the mean"),
        (np.eye(3), "with this mixing matrix the nodes never agree"),
        ([[0.0, 1.0], [1.0, 0.0]], "with this mixing matrix the nodes never agree"),
    ],
)
def test_bad_matrices_are_refused_in_a_sentence(w, sentence):
    with pytest.raises(ValueError, match=sentence):
        mixing.check(w)
