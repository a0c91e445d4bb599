"""The right values of chapter 10's checks are those of the library's layers, products and meshes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from course.checks.tensor_parallelism import (
    attention_heads,
    divided_runs,
    grid_products,
    linear_layers,
    mesh_and_grid,
    mlp_blocks,
    vocabulary_shards,
)
from course.probes.tensor_parallelism import Stored
from minidl import Tensor, cluster
from minidl import functional as F
from minidl.parallel import products

NO_ANSWER: Any = None
"""Oracles are computed without an answer."""


def tensor(value: Any) -> Tensor:
    return Tensor(value[:, :] if isinstance(value, Stored) else value, requires_grad=True)


def joined(one: divided_runs.Divided, which: str, name: str, axis: int) -> Any:
    """The shards of all ranks as one array."""
    return np.concatenate([getattr(rank, which)[name] for rank in one.ranks], axis=axis)


def close(got: Any, want: Tensor | Any) -> bool:
    return bool(np.allclose(got, getattr(want, "data", want), rtol=1e-12, atol=1e-12))


@pytest.mark.parametrize("case", [(1, 2, 3, 4), (3, 5, 6, 7), (4, 2, 5, 6)])
def test_the_shards_of_a_linear_layer_are_those_of_autograd(case: linear_layers.Case) -> None:
    for of_case, axis_x, axis_w, axis_n in (
        (linear_layers.by_columns, None, 1, 0),
        (linear_layers.by_rows, 1, 0, None),
    ):
        one = of_case(NO_ANSWER, case, seed=3)
        first = one.ranks[0]
        x = tensor(first.given["x"] if axis_x is None else joined(one, "given", "x", axis_x))
        w = tensor(joined(one, "given", "w", axis_w))
        b = tensor(first.given["b"] if axis_n is None else joined(one, "given", "b", axis_n))
        g = first.given["g"] if axis_n is None else joined(one, "given", "g", 1)
        y = x @ w + b
        y.backward(g)
        assert close(joined(one, "wanted", "y", 1) if axis_x is None else first.wanted["y"], y)
        assert close(first.wanted["gx"] if axis_x is None else joined(one, "wanted", "gx", axis_x), x.grad)
        assert close(joined(one, "wanted", "gw", axis_w), w.grad)
        assert close(first.wanted["gb"] if axis_n is None else joined(one, "wanted", "gb", axis_n), b.grad)


@pytest.mark.parametrize("case", [(1, 2, 3, 4), (3, 5, 4, 7)])
def test_the_shards_of_an_mlp_are_those_of_autograd(case: mlp_blocks.Case) -> None:
    one = mlp_blocks.block(NO_ANSWER, case, seed=4)
    x, w1, b1, w2, b2 = (tensor(one.ranks[0].given[name]) for name in ("x", "w1", "b1", "w2", "b2"))
    z = x @ w1 + b1
    y = (0.5 * z * (1 + F.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))) @ w2 + b2
    y.backward(one.ranks[0].given["g"])
    assert close(one.ranks[0].wanted["y"], y)
    assert close(one.ranks[0].wanted["gx"], x.grad)
    assert close(one.ranks[0].wanted["gb2"], b2.grad)
    for name, axis, of in (("gw1", 1, w1), ("gb1", 0, b1), ("gw2", 0, w2)):
        assert close(joined(one, "wanted", name, axis), of.grad)


@pytest.mark.parametrize("case", [(1, 3, 4, 2), (3, 4, 6, 3)])
def test_the_output_of_attention_is_that_of_the_library(case: attention_heads.Case) -> None:
    _, T, d, heads = case
    one = attention_heads.heads_of(NO_ANSWER, case, seed=5)
    given = one.ranks[0].given
    split = (given["x"] @ given["wqkv"][:, :]).reshape(T, 3, heads, d // heads).transpose(1, 2, 0, 3)
    a = F.scaled_dot_product_attention(*(Tensor(each[None].copy()) for each in split))
    assert close(one.ranks[0].wanted["y"], a.data[0].transpose(1, 0, 2).reshape(T, d) @ given["wo"][:, :])


def test_embedding_and_loss_are_those_of_the_library() -> None:
    for repeated in (True, False):
        one = vocabulary_shards.lookup(NO_ANSWER, (3, 12, 14, 4), seed=6, is_repeated=repeated)
        ids, g = one.ranks[0].given["ids"], one.ranks[0].given["g"]
        table = tensor(joined(one, "given", "table", 0))
        y = F.embedding(ids, table)
        y.backward(g)
        assert close(one.ranks[0].wanted["y"], y)
        assert close(joined(one, "wanted", "gtable", 0), table.grad)
    for large in (False, True):
        of_loss = vocabulary_shards.loss(NO_ANSWER, (3, 6, 8), seed=7, is_large=large)
        logits = tensor(joined(of_loss, "given", "logits", 1))
        loss = F.cross_entropy(logits, of_loss.ranks[0].given["targets"])
        loss.backward()
        assert close(of_loss.ranks[0].wanted["loss"], loss)
        assert close(joined(of_loss, "wanted", "glogits", 1), logits.grad)


@pytest.mark.parametrize("case", [(2, 3, 2, 4, 12, 6), (1, 2, 1, 3, 4, 4)])
@pytest.mark.timeout(300)
def test_the_words_of_a_product_are_those_of_the_library_s(case: grid_products.Case) -> None:
    pr, pc, width, m, k, n = case
    one = grid_products.grid(NO_ANSWER, case, seed=8)

    def program(comm: cluster.Communicator) -> Any:
        given = one.ranks[comm.rank].given
        grid = products.Grid.of(comm.mesh((pr, pc), ("row", "column")))
        return products.summa(Tensor(given["a"]), Tensor(given["b"]), grid, k, width).data

    run = cluster.launch(program, nodes=pr * pc, on="simulation")
    for rank, c in enumerate(run.results):
        assert close(c, one.ranks[rank].wanted["C"])
    assert grid_products.words(case) == products.volume(m, n, k, (pr, pc, 1))


@pytest.mark.parametrize("dims", [(2, 3, 4), (1, 2, 2), (3, 1, 2)])
@pytest.mark.timeout(300)
def test_the_groups_of_a_mesh_are_those_of_the_library(dims: mesh_and_grid.Mesh) -> None:
    def program(comm: cluster.Communicator) -> Any:
        mesh = comm.mesh(dims, mesh_and_grid.NAMES)
        return {name: mesh[name].all_gather(comm.rank) for name in mesh_and_grid.NAMES}

    theirs = cluster.launch(program, nodes=int(np.prod(dims)), on="simulation").results
    for name, groups in mesh_and_grid.groups(dims).items():
        for group in groups:
            assert all(theirs[rank][name] == group for rank in group)


@pytest.mark.timeout(300)
def test_the_words_of_a_grid_are_those_of_its_rings() -> None:
    p, B, d, h = 6, 30, 12, 36
    for tp in mesh_and_grid.grids(p):
        dp = p // tp

        def program(comm: cluster.Communicator, dp: int = dp, tp: int = tp) -> None:
            grid = {name: comm.split(color) for name, color in (("tp", comm.rank // tp), ("dp", comm.rank % tp))}
            for _ in range(2):
                grid["tp"].all_reduce(np.zeros(B // dp * d), algorithm="ring")
            grid["dp"].all_reduce(np.zeros(2 * d * h // tp), algorithm="ring")

        for traffic in cluster.launch(program, nodes=p, on="simulation").trace.ledger():
            assert traffic["all_reduce"].nbytes / 8 == pytest.approx(mesh_and_grid.words(p, tp, B, d, h), rel=1e-12)
