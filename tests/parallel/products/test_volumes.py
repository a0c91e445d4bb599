"""Words by formula: faces of cuboids, their order, COSMA's bound, model and batch parallelism against the ledger."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product
from math import inf, prod, sqrt
from typing import Any

import numpy as np
import pytest

from minidl import cluster, nn, parallel
from minidl.parallel import Hybrid
from minidl.parallel.products import best_grid, faces, lower_bound, memory, model_and_batch, recursive, volume
from minidl.parallel.tensor import ColumnLinear
from tests.parallel.jobs import blobs, small_job
from tests.tiers import exhaustively

SIZES = [(64, 64, 64), (4096, 16, 16), (16, 16, 4096), (256, 8, 64)]


@pytest.mark.parametrize(("sizes", "p"), [(SIZES[0], 1), (SIZES[1], 12), (SIZES[2], 6), (SIZES[3], 64)])
def test_the_best_grid_is_the_best_of_all(sizes: tuple[int, int, int], p: int) -> None:
    grids = [grid for grid in product(range(1, p + 1), repeat=3) if prod(grid) == p]
    assert volume(*sizes, best_grid(*sizes, p)) == min(volume(*sizes, grid) for grid in grids)
    room = sorted(memory(*sizes, grid) for grid in grids)[len(grids) // 2]
    possible = [grid for grid in grids if memory(*sizes, grid) <= room]
    assert volume(*sizes, best_grid(*sizes, p, room)) == min(volume(*sizes, grid) for grid in possible)


@pytest.mark.parametrize(("sizes", "p"), [(SIZES[0], 1), (SIZES[0], 64), (SIZES[2], 12), (SIZES[3], 8)])
def test_no_grid_has_smaller_faces_than_the_bound_which_cubes_reach(sizes: tuple[int, int, int], p: int) -> None:
    grids = [grid for grid in product(range(1, p + 1), repeat=3) if prod(grid) == p]
    bound = lower_bound(*sizes, p, memory=inf)
    assert min(sum(faces(*sizes, grid)) for grid in grids) >= bound * (1 - 1e-12)
    if sizes == (64, 64, 64) and p in (1, 8, 64):
        assert sum(faces(*sizes, best_grid(*sizes, p))) == pytest.approx(bound)


@pytest.mark.parametrize("p", [1, 64, 4096, 10**6])
def test_recursion_needs_sqrt_3_times_the_words_of_two_factors_and_no_more(p: int) -> None:
    """The numbers that pass by, without the face that stays: sqrt(3) while it does not fit, then down to 1."""
    n = 2**14
    cube = (n**3 / p) ** (2 / 3)
    for room, gain in ((cube / 1000, sqrt(3)), (cube, sqrt(3)), (2 * cube, sqrt(1.5)), (3 * cube, 1.0), (inf, 1.0)):
        needed = recursive(n, n, n, p, room) - cube
        least = lower_bound(n, n, n, p, room) - min(room, cube)
        assert needed / least == pytest.approx(gain, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: best_grid(8, 8, 8, 4, most=10),
            "no grid of 4 ranks has room for its faces in 10 numbers: the least is",
        ),
        (lambda: volume(1, 1, 1, (1, 0, 1)), "volumes: "),
        (lambda: lower_bound(8, 8, 8, 0, 9), "volumes: p must be at least 1, got 0"),
        (lambda: lower_bound(8, 8, 8, 4, 0), "volumes: memory must be above 0"),
        (lambda: recursive(8, 8, -8, 4, 9), "volumes: k must be at least 1, got -8"),
        (lambda: model_and_batch([8], 4, 2, 2), "at least one layer, got \\[8\\]"),
        (lambda: model_and_batch([8, 0], 4, 2, 2), "volumes: widths\\[1\\] must be at least 1, got 0"),
        (lambda: model_and_batch([8, 8], 4, 2, -1), "volumes: replicas must be at least 1, got -1"),
    ],
)
def test_sizes_below_one_and_no_memory_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# Model and batch parallelism together

WIDTHS = (5, 72, 72, 72)
TEST_SAMPLES = 30


def network() -> nn.Module:
    return nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in pairwise(WIDTHS))).double()


def gathered(layer: nn.Module, comm: Any) -> nn.Module:
    return ColumnLinear(layer, comm, gather="always")


@pytest.mark.parametrize(("model", "replicas"), [(3, 2), *exhaustively((6, 1), (1, 6))])
def test_the_words_of_a_step_are_those_of_the_formula(model: int, replicas: int) -> None:
    """Layers divided by their outputs, which are gathered. A second epoch adds a step, and an evaluation's outputs."""
    layout = {str(at): gathered for at in range(3)}
    strategy = Hybrid(dp=replicas, tp=model, layout=layout, micro_batches=1)
    bandwidth_only = cluster.Simulation(cluster.Network(0.0, 1e-9))  # sums take the fewest bytes

    def sent(epochs: int) -> np.ndarray:
        job = small_job(model=network, data=partial(blobs, 12), batch_size=12, epochs=epochs)
        trace = parallel.train(job, strategy, model * replicas, on=bandwidth_only).trace
        tp, dp = (trace.ledger(axis)[0] if axis in trace.axes else {} for axis in ("tp", "dp"))
        traffic = [tp.get("all_gather"), tp.get("all_reduce"), dp.get("all_reduce")]
        return np.array([each.nbytes if each else 0 for each in traffic]) / 8

    more, words = sent(2) - sent(1), model_and_batch(WIDTHS, 12, model, replicas)
    evaluated = model_and_batch(WIDTHS, TEST_SAMPLES, model, replicas).outputs
    assert more[0] == pytest.approx(words.outputs + evaluated)
    assert more[1] == pytest.approx(words.gradients_of_inputs)
    assert 0 <= more[2] - words.gradients_of_weights <= 6  # and the sums of the losses
