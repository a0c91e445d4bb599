"""SUMMA computes a product and its gradients on every grid, and a rank receives the words of the formula."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, cluster, no_grad, optim
from minidl import functional as F
from minidl.cluster import Communicator
from minidl.parallel.products import Grid, block, bounds, summa, volume
from minidl.parallel.tensor import vocabulary_cross_entropy

ROWS, INNER, COLUMNS = 24, 36, 12  # every grid above divides them


def on_grid(program: Callable[[Grid], Any], shape: tuple[int, int], on: str = "simulation") -> cluster.Run:
    def on_rank(comm: Communicator) -> Any:
        return program(Grid.of(comm.mesh(shape, ("row", "column"))))

    return cluster.launch(on_rank, nodes=shape[0] * shape[1], on=on, timeout=60)


def matrices(m: int = ROWS, k: int = INNER, n: int = COLUMNS) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(m, k)), rng.normal(size=(k, n))


@pytest.mark.parametrize(
    ("shape", "panel", "sizes"),
    [
        ((2, 3), None, (7, 11, 5)),
        ((3, 2), 5, (ROWS, INNER, COLUMNS)),
        ((4, 1), 1, (7, 11, 5)),
        ((1, 4), 5, (7, 11, 5)),
    ],
)
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


@pytest.mark.parametrize(("shape", "panel"), [((2, 3), None), ((4, 2), 2)])
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


@pytest.mark.parametrize(("shape", "of_a"), [((2, 3), True), ((2, 3), False), ((4, 1), True)])
def test_each_gradient_takes_every_rank_the_words_of_the_product(shape: tuple[int, int], of_a: bool) -> None:
    """One factor is broadcast, the other one's gradient added up. Panels of one width: every rank receives the same."""
    a, b = matrices()
    (pr, pc), kinds = shape, ("broadcast", "reduce")

    def words(is_training: bool) -> list[int]:
        def program(grid: Grid) -> None:
            of_b = is_training and not of_a
            mine = (
                Tensor(block(a, grid), requires_grad=is_training and of_a),
                Tensor(block(b, grid), requires_grad=of_b),
            )
            c = summa(*mine, grid, INNER, panel=3)
            if is_training:
                c.sum().backward()

        ledgers = on_grid(program, shape).trace.ledger()
        return [sum(of[kind].nbytes_received // 8 for kind in kinds if kind in of) for of in ledgers]

    forward = ROWS * INNER / pr * (1 - 1 / pc) + INNER * COLUMNS / pc * (1 - 1 / pr)
    assert words(True) == pytest.approx([2 * forward] * (pr * pc))


@pytest.mark.parametrize("operand", [0, 1])
def test_backward_notices_a_factor_that_was_overwritten(operand: int) -> None:
    a, b = matrices()

    def program(grid: Grid) -> None:
        mine = Tensor(block(a, grid), requires_grad=True), Tensor(block(b, grid), requires_grad=True)
        c = summa(*mine, grid, INNER)
        with no_grad():
            mine[operand].mul_(2.0)
        with pytest.raises(RuntimeError, match="overwritten in place"):
            c.sum().backward()

    on_grid(program, (1, 1))


@pytest.mark.timeout(300)
def test_processes_compute_the_same() -> None:
    a, b = matrices()
    run = on_grid(lambda grid: summa(block(a, grid), block(b, grid), grid, INNER, 4).numpy(), (2, 2), "processes")
    whole = np.block([[run.results[0], run.results[1]], [run.results[2], run.results[3]]])
    np.testing.assert_allclose(whole, a @ b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3), (1, 4)])
def test_a_network_on_a_grid_trains_as_on_one_rank(shape: tuple[int, int]) -> None:
    """Samples, inputs and hidden units that grids do not divide, biases and momentum.

    A bias is on every rank of a grid column.
    """
    rng = np.random.default_rng(0)
    sizes, samples = (7, 11, 12), 10  # the loss needs classes that the columns divide
    x, labels = rng.normal(size=(samples, sizes[0])), rng.integers(sizes[-1], size=samples)
    start = [(rng.normal(size=size), rng.normal(size=size[1])) for size in pairwise(sizes)]

    def updated(parameters: list[Tensor], step: Callable[[], None]) -> None:
        sgd = optim.SGD(parameters, lr=0.3, momentum=0.9)
        for _ in range(4):
            sgd.zero_grad()
            step()
            sgd.step()

    whole = [Tensor(array.copy(), requires_grad=True) for layer in start for array in layer]

    def on_one_rank() -> None:
        hidden = F.tanh(Tensor(x) @ whole[0] + whole[1])
        F.cross_entropy(hidden @ whole[2] + whole[3], labels).backward()

    updated(whole, on_one_rank)

    def program(grid: Grid) -> None:
        rows = bounds(samples, shape[0])
        own = labels[rows[grid.i] : rows[grid.i + 1]]
        mine = []
        for weight, bias in start:
            columns = bounds(len(bias), shape[1])
            share = bias[columns[grid.j] : columns[grid.j + 1]]
            mine += [Tensor(array.copy(), requires_grad=True) for array in (block(weight, grid), share)]

        def on_grid_of_ranks() -> None:
            hidden = F.tanh(summa(block(x, grid), mine[0], grid, sizes[0]) + mine[1])
            logits = summa(hidden, mine[2], grid, sizes[1]) + mine[3]
            (vocabulary_cross_entropy(logits, own, grid.along_row) * (len(own) / samples)).backward()
            for bias in (mine[1], mine[3]):  # those of other samples
                grid.along_column.all_reduce(bias.grad)

        updated(mine, on_grid_of_ranks)
        for weight, trained in zip(mine[::2], whole[::2], strict=True):
            np.testing.assert_allclose(weight.numpy(), block(trained.numpy(), grid), rtol=0, atol=1e-12)
        for bias, trained in zip(mine[1::2], whole[1::2], strict=True):
            columns = bounds(len(trained.numpy()), shape[1])
            share = trained.numpy()[columns[grid.j] : columns[grid.j + 1]]
            np.testing.assert_allclose(bias.numpy(), share, rtol=0, atol=1e-12)

    on_grid(program, shape)


def test_only_matrices_are_divided_and_a_grid_has_two_axes() -> None:
    def program(comm: Communicator) -> None:
        with pytest.raises(ValueError, match="a grid has two axes"):
            Grid.of(comm.mesh((2, 1, 1), ("a", "b", "c")))
        with pytest.raises(ValueError, match=r"divides matrices, got an array of shape \(3,\)"):
            block(np.ones(3), Grid.of(comm.mesh((1, 2), ("row", "column"))))

    cluster.launch(program, nodes=2, on="simulation")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda a, b: (a[:, :-1], b, 6, None),
            r"rank \(0, 0\) has blocks of shapes \(m, 3\) and \(3, n\), got \(2, 2\)",
        ),
        (lambda a, b: (a, b[:-1], 6, None), "cut them with products.block"),
        (lambda a, b: (a, b, 1, None), "inner=1 cannot be divided by a grid of 2 x 2 ranks"),
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
