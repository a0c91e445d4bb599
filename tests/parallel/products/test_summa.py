"""SUMMA computes a product and its gradients on every grid, and a rank receives the words of the formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, cluster
from minidl import functional as F
from minidl.cluster import Communicator
from minidl.parallel.products import Grid, block, bounds, summa, volume
from minidl.parallel.tensor import vocabulary_cross_entropy
from tests.tiers import exhaustively

GRIDS = [(2, 3), *exhaustively(*[(shape,) for shape in ((1, 1), (1, 4), (4, 1), (2, 2), (3, 4), (4, 2))])]
ROWS, INNER, COLUMNS = 24, 36, 12  # every grid above divides them


def on_grid(program: Callable[[Grid], Any], shape: tuple[int, int], on: str = "simulation") -> cluster.Run:
    def on_rank(comm: Communicator) -> Any:
        return program(Grid.of(comm.mesh(shape, ("row", "column"))))

    return cluster.launch(on_rank, nodes=shape[0] * shape[1], on=on, timeout=60)


def matrices(m: int = ROWS, k: int = INNER, n: int = COLUMNS) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(m, k)), rng.normal(size=(k, n))


@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("panel", [None, 1, 5])
@pytest.mark.parametrize("sizes", [(ROWS, INNER, COLUMNS), (7, 11, 5)])
def test_a_product_and_its_gradients_are_those_of_one_rank(
    shape: tuple[int, int], panel: int | None, sizes: Any
) -> None:
    """Also where the grid does not divide the sizes."""
    a, b = matrices(*sizes)
    scale = np.random.default_rng(1).normal(size=(len(a), b.shape[1]))

    def program(grid: Grid) -> None:
        mine = Tensor(block(a, grid), requires_grad=True), Tensor(block(b, grid), requires_grad=True)
        c = summa(*mine, grid, inner=a.shape[1], panel=panel)
        np.testing.assert_allclose(c.numpy(), block(a @ b, grid), rtol=0, atol=1e-12)
        (c * Tensor(block(scale, grid))).sum().backward()
        np.testing.assert_allclose(mine[0].grad, block(scale @ b.T, grid), rtol=0, atol=1e-12)
        np.testing.assert_allclose(mine[1].grad, block(a.T @ scale, grid), rtol=0, atol=1e-12)

    on_grid(program, shape)


@pytest.mark.parametrize("shape", GRIDS)
@pytest.mark.parametrize("panel", [None, 2])
def test_a_rank_receives_the_words_of_the_formula(shape: tuple[int, int], panel: int | None) -> None:
    a, b = matrices()
    (m, k), n, (pr, pc) = a.shape, b.shape[1], shape
    run = on_grid(lambda grid: summa(block(a, grid), block(b, grid), grid, k, panel).numpy(), shape)
    expected = m * k / pr * (1 - 1 / pc) + k * n / pc * (1 - 1 / pr)
    assert expected == pytest.approx(volume(m, n, k, (pr, pc, 1)))
    for ledger in run.trace.ledger():
        received = ledger["broadcast"].nbytes_received if "broadcast" in ledger else 0
        assert received == 8 * round(expected)
    if pc > 1:
        along_rows = [ledger["broadcast"].nbytes_received for ledger in run.trace.ledger("column")]
        assert along_rows == [8 * m * k // pr * (pc - 1) // pc] * (pr * pc)


def test_in_backward_all_ranks_together_receive_twice_the_words_of_forward() -> None:
    a, b = matrices()

    def words(is_training: bool) -> int:
        def program(grid: Grid) -> None:
            c = summa(
                *(Tensor(block(x, grid), requires_grad=is_training) for x in (a, b)), grid=grid, inner=INNER, panel=6
            )
            if is_training:
                c.sum().backward()

        return sum(t.nbytes_received for rank in on_grid(program, (2, 3)).trace.ledger() for t in rank.values())

    mesh = sum(t.nbytes_received for rank in on_grid(lambda grid: None, (2, 3)).trace.ledger() for t in rank.values())
    assert words(True) - mesh == 3 * (words(False) - mesh)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("on", ["processes", pytest.param("mpi", marks=pytest.mark.slow)])
def test_processes_and_mpi_compute_the_same(on: str) -> None:
    if on == "mpi":
        pytest.importorskip("mpi4py", exc_type=ImportError)
    a, b = matrices()
    run = on_grid(lambda grid: summa(block(a, grid), block(b, grid), grid, INNER, 4).numpy(), (2, 2), on)
    whole = np.block([[run.results[0], run.results[1]], [run.results[2], run.results[3]]])
    np.testing.assert_allclose(whole, a @ b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", GRIDS)
def test_a_network_whose_layers_lie_on_a_grid_has_one_ranks_gradients(shape: tuple[int, int]) -> None:
    """Samples lie over the rows of the grid, features over its columns."""
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(24, 16)), rng.integers(12, size=24)
    weights = [rng.normal(size=size) for size in ((16, 20), (20, 12))]
    whole = [Tensor(weight, requires_grad=True) for weight in weights]
    F.cross_entropy(F.tanh(Tensor(x) @ whole[0]) @ whole[1], labels).backward()
    gradients = [weight.grad for weight in whole]

    def program(grid: Grid) -> None:
        mine = [Tensor(block(weight, grid), requires_grad=True) for weight in weights]
        logits = summa(F.tanh(summa(block(x, grid), mine[0], grid, 16)), mine[1], grid, 20)
        rows = bounds(24, shape[0])
        own = labels[rows[grid.i] : rows[grid.i + 1]]
        (vocabulary_cross_entropy(logits, own, grid.along_row) * (len(own) / 24)).backward()
        for weight, gradient in zip(mine, gradients, strict=True):
            np.testing.assert_allclose(weight.grad, block(gradient, grid), rtol=0, atol=1e-12)

    on_grid(program, shape)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda a, b: (a[:, :-1], b, 6, None),
            r"rank \(0, 0\) has blocks of shapes \(m, 3\) and \(3, n\), got \(2, 2\)",
        ),
        (lambda a, b: (a, b[:-1], 6, None), "cut them with products.block"),
        (lambda a, b: (a[0], b, 6, None), "got \\(3,\\)"),
        (lambda a, b: (a, b, 1, None), "inner=1 cannot be divided by a grid of 2 x 2 ranks"),
        (lambda a, b: (a, b, 0, None), "inner must be at least 1, got 0"),
        (lambda a, b: (a, b, 6, 0), "panel must be at least 1, got 0"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(change: Any, message: str) -> None:
    a, b = matrices(4, 6, 4)

    def program(grid: Grid) -> None:
        if grid.i == grid.j == 0:
            one, other, inner, panel = change(block(a, grid), block(b, grid))
            with pytest.raises(ValueError, match=message):
                summa(one, other, grid, inner, panel)

    on_grid(program, (2, 2))


def test_a_grid_has_two_axes() -> None:
    def program(comm: Communicator) -> None:
        with pytest.raises(ValueError, match="a grid has two axes"):
            Grid.of(comm.mesh((2, 1, 1), ("a", "b", "c")))

    cluster.launch(program, nodes=2, on="simulation")
