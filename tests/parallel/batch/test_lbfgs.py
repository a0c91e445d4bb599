"""L-BFGS: the two-loop recursion, in one place and over a sharded store, and the line search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import cluster
from minidl.parallel import Store
from minidl.parallel.batch import LBFGS, Pair, direction
from minidl.parallel.servers.vectors import Vectors


def random_pairs(rng, n, count):
    """Steps s and changes y of the gradient with s y > 0, as convex functions have them."""
    steps = rng.normal(size=(count, n))
    changes = steps * rng.uniform(0.3, 4, size=(count, n)) + 0.1 * rng.normal(size=(count, n))
    return [(s, y if s @ y > 0 else s) for s, y in zip(steps, changes, strict=True)]


def dense_direction(gradient, pairs):
    """-H g with H written out: BFGS updates, oldest pair first, of (s y / y y) I of the newest."""
    h = np.eye(len(gradient))
    if pairs:
        s, y = pairs[-1]
        h *= s @ y / (y @ y)
    for s, y in pairs:
        left = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        h = left @ h @ left.T + np.outer(s, s) / (s @ y)
    return -h @ gradient


@settings(max_examples=12)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 23), count=st.integers(0, 7), shards=st.integers(1, 4))
def test_the_two_loops_over_any_shards_give_the_direction_of_the_dense_matrix(seed, n, count, shards):
    rng = np.random.default_rng(seed)
    gradient, pairs = rng.normal(size=n), random_pairs(rng, n, count)
    named = [Pair(f"s{i}", f"y{i}", float(s @ y)) for i, (s, y) in enumerate(pairs)]
    arrays = {
        "g": gradient,
        **{f"{name}{i}": x for i, pair in enumerate(pairs) for name, x in zip("sy", pair, strict=True)},
    }

    def program(comm):
        store = Store(comm, shards)
        if store.is_server:
            return store.serve(arrays)
        with store:
            direction(store, named)
            return store.get("d")

    found = cluster.launch(program, nodes=1 + shards, on="simulation").results[0]
    expected = dense_direction(gradient, pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    here = Vectors(dict(arrays))
    direction(here, named)
    np.testing.assert_allclose(here.arrays["d"], expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def minimiser(function, start, **options):
    """LBFGS of `function`, which returns loss and gradient; with the list of its evaluations."""
    vectors, evaluations = Vectors({"w": np.array(start, float)}), []

    def evaluate():
        loss, vectors.arrays["trial g"] = function(vectors.arrays["trial"])
        evaluations.append(loss)
        return loss

    return LBFGS(vectors, evaluate, **options), vectors, evaluations


def quadratic(rng, n):
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    matrix, best = basis * np.geomspace(1, 50, n) @ basis.T, rng.normal(size=n)
    return lambda w: ((w - best) @ matrix @ (w - best) / 2, matrix @ (w - best)), best


@pytest.mark.parametrize("history", [1, 5])
def test_with_an_exact_line_search_n_steps_solve_a_quadratic_function_of_n_variables(history):
    rng, n = np.random.default_rng(4), 7
    function, best = quadratic(rng, n)
    lbfgs, vectors, _ = minimiser(function, rng.normal(size=n), history=history, curvature=1e-11)
    errors = []
    for _ in range(n):
        assert lbfgs.step(200)
        errors.append(np.abs(vectors.arrays["w"] - best).max())
    assert errors[-1] < 1e-6
    assert errors[-2] > 1e-3  # one step less is not enough


def rosenbrock(w):
    a, b = w[:-1], w[1:]
    gradient = np.zeros_like(w)
    gradient[:-1] += -400 * a * (b - a * a) - 2 * (1 - a)
    gradient[1:] += 200 * (b - a * a)
    return float(np.sum(100 * (b - a * a) ** 2 + (1 - a) ** 2)), gradient


def test_every_step_satisfies_the_strong_wolfe_conditions_down_to_the_minimum():
    lbfgs, vectors, evaluations = minimiser(rosenbrock, [-1.2, 1.0, -0.7, 0.9, 2.1], history=4)
    steps = 0
    while True:
        before = {} if steps == 0 else {name: vectors.arrays[name].copy() for name in ("w", "g")}
        loss_before = lbfgs.loss
        if not lbfgs.step():
            break
        steps += 1
        assert len(lbfgs.pairs) <= 4
        assert all(pair.product > 0 for pair in lbfgs.pairs)
        if before and lbfgs.pairs:
            moved = vectors.arrays["w"] - before["w"]
            loss, gradient = rosenbrock(vectors.arrays["w"])
            assert loss == lbfgs.loss <= loss_before + 0.99e-4 * (before["g"] @ moved)
            assert abs(gradient @ moved) <= 0.9001 * abs(before["g"] @ moved)
    np.testing.assert_allclose(vectors.arrays["w"], 1, rtol=1e-6)
    assert steps < len(evaluations) < 3 * steps


def test_a_trial_where_the_function_is_not_finite_is_too_long():
    def log_barrier(w):
        with np.errstate(all="ignore"):
            return float(np.sum(w - 0.3 * np.log(w))), 1 - 0.3 / w

    lbfgs, vectors, evaluations = minimiser(log_barrier, [0.9, 0.05, 0.4])
    while lbfgs.step():
        pass
    assert not np.isfinite(evaluations).all()
    np.testing.assert_allclose(vectors.arrays["w"], 0.3, rtol=1e-6)


def test_a_trial_where_the_slope_alone_is_not_finite_is_too_long():
    """The first step from 1 ends at 0, where the function is finite and its gradient is not."""

    def power(w):
        with np.errstate(all="ignore"):
            return float(np.sum(np.abs(w) ** 1.5)) / 1.5, w / np.sqrt(np.abs(w))

    lbfgs, vectors, _ = minimiser(power, [1.0])
    assert lbfgs.step()
    assert np.isfinite(vectors.arrays["g"]).all()
    assert vectors.arrays["w"].tolist() == [0.5]


def test_settings_and_first_points_without_a_meaning_are_refused():
    for options, error in (
        ({"history": 0}, "history must be at least 1, got 0"),
        ({"history": 2.5}, "history must be a whole number"),
        ({"curvature": 1.0}, "curvature must be at least 0 and below 1"),
        ({"curvature": np.nan}, "curvature must be"),
    ):
        with pytest.raises((TypeError, ValueError), match=error):
            minimiser(rosenbrock, [0.3, 1.0], **options)
    for loss in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="begin where it is finite"):
            minimiser(lambda w, loss=loss: (loss, w), [0.3, 1.0])[0].step()


def test_the_number_of_evaluations_is_bounded_and_a_failed_search_leaves_the_point_where_it_was():
    lbfgs, vectors, evaluations = minimiser(rosenbrock, [-1.2, 1.0], curvature=2e-4)
    assert not lbfgs.step(3)
    assert len(evaluations) == 3
    assert vectors.arrays["w"].tolist() == [-1.2, 1.0]
    assert lbfgs.step(60)
    assert lbfgs.loss < evaluations[0]
