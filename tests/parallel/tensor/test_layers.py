"""Layers that several ranks divide compute what one rank computes, with the messages that the papers state."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, amp, cluster, nn, random
from minidl import functional as F
from minidl.cluster import Communicator
from minidl.kept_arrays import kept_bytes
from minidl.parallel import tensor
from minidl.parallel.tensor import (
    ColumnConv2d,
    ColumnLinear,
    RowConv2d,
    RowLinear,
    ShardedBatchNorm,
    ShardedDropout,
    VocabularyEmbedding,
    split_layers,
)

WIDTH = 12  # can be divided by 2, 3, 4 and 6 ranks
ON = cluster.Simulation("10gbe")

MLP = {"0": ColumnLinear, "2": RowLinear}


def simulated(program: Callable[[Communicator], Any], p: int) -> cluster.Run:
    return cluster.launch(program, nodes=p, on=ON)


def result_of(model: nn.Module, x: Any, loss: Callable[[Tensor], Tensor] = lambda y: (y * y).sum()) -> dict[str, Any]:
    """The output, and the gradients of a loss with respect to inputs and parameters; of shards, this rank's."""
    inputs = Tensor(x, requires_grad=True) if x.dtype.kind == "f" else x
    y = model(inputs)
    loss(y).backward()
    found = {"output": y.numpy(), **{name: p.grad.copy() for name, p in model.named_parameters() if p.grad is not None}}
    return found | ({"input": inputs.grad.copy()} if x.dtype.kind == "f" else {})


def assert_divided_is_whole(
    model: nn.Module, layout: tensor.layouts.Layout, x: Any, p: int, output: Callable[[Any, int], Any] = lambda y, _: y
) -> cluster.Run:
    """The divided model has the output and the gradients of the whole one, each rank those of its shards."""
    whole = result_of(model, x)

    def program(comm: Communicator) -> None:
        mine = split_layers(copy.deepcopy(model), comm, layout)
        found = result_of(mine, x, lambda y: (y * y).sum())
        shards = {name: parameter.shard for name, parameter in mine.named_parameters()}
        for name, array in whole.items():
            expected = output(array, comm.rank) if name == "output" else array
            shard = shards.get(name)
            np.testing.assert_allclose(
                found[name], shard.cut(expected) if shard else expected, rtol=0, atol=1e-12, err_msg=name
            )

    return simulated(program, p)


@pytest.mark.parametrize(("p", "bias"), [(3, True), (2, False), (1, True)])
def test_columns_then_rows_are_the_whole_network_with_one_all_reduce_each_way(p: int, bias: bool) -> None:
    model = nn.Sequential(nn.Linear(5, WIDTH, bias), nn.GELU(), nn.Linear(WIDTH, 7, bias)).double()
    run = assert_divided_is_whole(model, MLP, np.random.default_rng(0).normal(size=(4, 3, 5)), p)
    if p > 1:
        for ledger in run.trace.ledger():
            assert {name: traffic.calls for name, traffic in ledger.items()} == {"all_reduce": 2}


@pytest.mark.parametrize(("p", "bias"), [(3, True), (2, False)])
def test_filters_then_channels_are_the_whole_convolutions_with_one_all_reduce_each_way(p: int, bias: bool) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, WIDTH, (3, 2), stride=2, padding=1, bias=bias),
        nn.BatchNorm2d(WIDTH, affine=bias),
        nn.Conv2d(WIDTH, 5, 3, padding="same", dilation=2, bias=bias),
    ).double()
    layout = {"0": ColumnConv2d, "1": ShardedBatchNorm, "2": RowConv2d}
    run = assert_divided_is_whole(model, layout, np.random.default_rng(0).normal(size=(4, 3, 7, 9)), p)
    for ledger in run.trace.ledger():
        assert {name: traffic.calls for name, traffic in ledger.items()} == {"all_reduce": 2}


def test_a_divided_convolution_has_no_groups_and_divides_only_convolutions() -> None:
    def program(comm: Communicator) -> None:
        with pytest.raises(
            ValueError, match=r"0 cannot be divided by 2 ranks: its groups=3 read channels of their own"
        ):
            split_layers(nn.Sequential(nn.Conv2d(6, WIDTH, 3, groups=3)), comm, {"0": ColumnConv2d})
        with pytest.raises(
            ValueError, match="0 cannot be divided by 2 ranks: RowConv2d divides a layer of type Conv2d, got Linear"
        ):
            split_layers(nn.Sequential(nn.Linear(6, WIDTH)), comm, {"0": RowConv2d})
        with pytest.raises(ValueError, match=r"0 cannot be divided by 2 ranks: .* must be a multiple of 2"):
            split_layers(nn.Sequential(nn.BatchNorm2d(5)), comm, {"0": ShardedBatchNorm})

    simulated(program, 2)


@pytest.mark.parametrize(("p", "gather"), [(3, "always"), (4, "never")])
def test_columns_give_their_share_of_the_outputs_or_all(p: int, gather: str) -> None:
    layer = nn.Sequential(nn.Linear(5, WIDTH)).double()
    layout = {"0": partial(ColumnLinear, gather=gather)}
    cut = (lambda y, rank: np.split(y, p, -1)[rank]) if gather == "never" else (lambda y, rank: y)
    x = np.random.default_rng(0).normal(size=(4, 5))
    assert_divided_is_whole(layer, layout, x, p, cut)


@pytest.mark.parametrize(("p", "padding"), [(3, None), (3, 0), (3, 7), (1, 7)])
def test_an_embedding_divided_by_rows_is_the_whole_one(p: int, padding: int | None) -> None:
    model = nn.Sequential(nn.Embedding(WIDTH, 5, padding_idx=padding)).double()
    indices = np.random.default_rng(0).integers(WIDTH, size=(4, 6))
    run = assert_divided_is_whole(model, {"0": VocabularyEmbedding}, indices, p)
    if p > 1:
        assert [ledger["all_reduce"].calls for ledger in run.trace.ledger()] == [1] * p


@pytest.mark.parametrize(("p", "scale", "ignored"), [(3, 1.0, 2), (2, 1e3, 0), (3, 1.0, 20), (1, 1.0, 0)])
def test_the_loss_of_divided_classes_is_cross_entropy_with_three_numbers_a_sample(
    p: int, scale: float, ignored: int
) -> None:
    """Samples that are ignored have no loss and no gradient."""
    rng = np.random.default_rng(0)
    n, t = 4, 5
    logits, labels = rng.normal(size=(n, t, WIDTH)) * scale, rng.integers(WIDTH, size=(n, t))
    labels.reshape(-1)[:ignored] = -100
    whole = Tensor(logits, requires_grad=True)
    loss = F.cross_entropy(whole.reshape(n * t, WIDTH), labels.reshape(-1))
    loss.backward()
    expected, gradient = loss.item(), whole.grad

    def program(comm: Communicator) -> None:
        mine = Tensor(np.split(logits, comm.size, -1)[comm.rank], requires_grad=True)
        found = tensor.vocabulary_cross_entropy(mine, labels, comm)
        found.backward()
        np.testing.assert_allclose(found.item(), expected, rtol=1e-12)
        np.testing.assert_allclose(mine.grad, np.split(gradient, comm.size, -1)[comm.rank], rtol=0, atol=1e-12)

    run = simulated(program, p)
    if p == 2:  # both ranks send all numbers once, however they are divided into messages
        assert [ledger["all_reduce"].nbytes for ledger in run.trace.ledger()] == [3 * n * t * 8] * 2
    if p > 1:
        assert [ledger["all_reduce"].calls for ledger in run.trace.ledger()] == [2] * p


def test_layers_of_your_own_from_copied_summed_and_gathered_have_the_gradients_of_the_whole():
    rng = np.random.default_rng(2)
    a, b, c, x, g = (rng.normal(size=shape) for shape in ((5, 6), (6, 7), (7, 4), (3, 5), (3, 4)))

    def network(a, b, c, x, begin, end, join):
        return join(begin(end((begin(x) @ a).tanh() @ b)) @ c)

    def program(comm):
        i, p = comm.rank, comm.size
        mine = [np.split(a, p, 1)[i], np.split(b, p)[i], np.split(c, p, 1)[i], x]
        tensors = [Tensor(each.copy(), requires_grad=True) for each in mine]
        begin, end, join = (partial(each, comm=comm) for each in (tensor.copied, tensor.summed, tensor.gathered))
        y = network(*tensors, begin, end, join)
        y.backward(g)
        return y.numpy(), [each.grad for each in tensors]

    whole = [Tensor(each.copy(), requires_grad=True) for each in (a, b, c, x)]
    y = network(*whole, *[lambda same: same] * 3)
    y.backward(g)
    for i, (output, grads) in enumerate(cluster.launch(program, nodes=2, on="simulation").results):
        np.testing.assert_allclose(output, y.numpy(), rtol=1e-12)
        expected = [np.split(whole[0].grad, 2, 1)[i], np.split(whole[1].grad, 2)[i], np.split(whole[2].grad, 2, 1)[i]]
        for found, true in zip(grads, [*expected, whole[3].grad], strict=True):
            np.testing.assert_allclose(found, true, rtol=1e-10)


def test_slices_of_samples_may_differ_by_one_and_slices_of_positions_may_not():
    x = np.random.default_rng(4).normal(size=(5, 5))

    def program(comm: Communicator) -> tuple[int, ...]:
        with pytest.raises(
            ValueError, match=r"5 numbers along axis 1 of an array of shape \(5, 5\) cannot be divided by 3"
        ):
            tensor.collectives.summed_sliced(Tensor(x), comm, 1)
        found = tensor.collectives.summed_sliced(Tensor(x), comm, 0).numpy()
        np.testing.assert_allclose(found, 3 * np.array_split(x, 3)[comm.rank], rtol=1e-12)
        return found.shape

    assert simulated(program, 3).results == [(2, 5), (2, 5), (1, 5)]


def test_tokens_and_labels_of_8_bits_are_divided_as_others():
    """A token that another rank has is a negative number here: in uint8 it would be a row of this rank."""
    classes = 300
    tokens = np.array([[0, 7, 149, 150, 255]], dtype=np.uint8)
    logits = np.random.default_rng(0).normal(size=(*tokens.shape, classes))
    embedding = nn.Embedding(classes, 3).double()
    rows = embedding.weight.data[tokens.astype(int)]
    loss = F.cross_entropy(Tensor(logits[0]), tokens[0].astype(int)).item()

    def program(comm: Communicator) -> None:
        divided = VocabularyEmbedding(copy.deepcopy(embedding), comm)
        np.testing.assert_array_equal(divided(tokens).numpy(), rows)
        mine = np.split(logits, comm.size, -1)[comm.rank]
        found = tensor.vocabulary_cross_entropy(Tensor(mine), tokens, comm)
        np.testing.assert_allclose(found.item(), loss, rtol=1e-12)

    for p in (2, 3):
        simulated(program, p)


def test_outputs_are_gathered_never_in_evaluation_or_always():
    with pytest.raises(cluster.RankFailed, match="ColumnLinear: gather must be 'never', 'evaluation' or 'always'"):
        simulated(lambda comm: ColumnLinear(nn.Linear(4, 6), comm, gather="allways"), 2)


@pytest.mark.parametrize(("dtype", "sequence"), [("float16", False), ("bfloat16", True)])
def test_sixteen_bits_are_added_in_float32_and_the_loss_is_float32(dtype: str, sequence: bool) -> None:
    tokens = np.arange(2 * WIDTH).reshape(2, WIDTH) % 24
    model = nn.models.GPT(24, WIDTH, 2, 4, 16)
    with amp.autocast(dtype=dtype):
        expected = F.cross_entropy(model(tokens), tokens).item()

    def program(comm: Communicator) -> tuple[str, float]:
        mine = copy.deepcopy(model)
        split_layers(mine, comm, tensor.layout_of(mine, sequence))
        with amp.autocast(dtype=dtype):
            loss = tensor.vocabulary_cross_entropy(mine(tokens), tokens, comm)
        loss.backward()
        assert all(parameter.grad.dtype == np.float32 for parameter in mine.parameters())
        return str(loss.dtype), loss.item()

    assert simulated(program, 2).results == [("float32", pytest.approx(expected, rel=2e-3))] * 2


@pytest.mark.parametrize(
    ("labels", "error"), [([0.5, 1.0], TypeError), ([0, WIDTH], IndexError), ([-1, 0], IndexError), ([1], ValueError)]
)
def test_labels_that_are_no_classes_are_refused_on_every_rank(labels: list[float], error: type[Exception]) -> None:
    def program(comm: Communicator) -> str:
        with pytest.raises(error, match=r"cross_entropy: labels") as caught:
            tensor.vocabulary_cross_entropy(Tensor(np.zeros((2, WIDTH // comm.size))), np.array(labels), comm)
        with pytest.raises(error):
            F.cross_entropy(Tensor(np.zeros((2, WIDTH))), np.array(labels))
        return str(caught.value)

    assert len(set(simulated(program, 2).results)) == 1


@pytest.mark.parametrize("p", [3, 4])
def test_dropout_of_a_divided_tensor_takes_its_share_of_one_nodes_mask(p: int) -> None:
    x = np.random.default_rng(0).normal(size=(4, 3, WIDTH))

    def mask(axis: int) -> Callable[[Communicator], Any]:
        def program(comm: Communicator) -> Any:
            random.manual_seed(3)
            layer = ShardedDropout(nn.Dropout(0.4), comm, axis)
            shares = np.split(x, comm.size, axis)[comm.rank]
            given = Tensor(shares, requires_grad=True)
            y = layer(given)
            y.sum().backward()
            np.testing.assert_array_equal(y.numpy() != 0, given.grad != 0)
            assert layer.eval()(given).numpy() is not None
            return y.numpy()

        return program

    for axis in (-1, 2):
        whole = simulated(mask(axis), 1).results[0]
        np.testing.assert_array_equal(np.concatenate(simulated(mask(axis), p).results, axis), whole)
        assert 0.2 < np.mean(whole == 0) < 0.6


def test_layers_that_share_a_parameter_must_divide_it_in_the_same_way() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.table, self.head = nn.Embedding(12, 6), nn.Linear(6, 12, bias=False)
            self.table.weight = self.head.weight

    def program(comm: Communicator) -> None:
        split_layers(Tied(), comm, {"table": VocabularyEmbedding, "head": ColumnLinear})
        with pytest.raises(ValueError, match="two layers share a parameter"):
            split_layers(Tied(), comm, {"table": VocabularyEmbedding, "head": RowLinear})

    simulated(program, 2)


def test_the_loss_of_divided_classes_keeps_one_array_of_the_size_of_the_logits():
    def program(comm: Communicator) -> int:
        logits = Tensor(np.zeros((50, 30), np.float32), requires_grad=True)
        return kept_bytes([tensor.vocabulary_cross_entropy(logits * 2.0, np.zeros(50, np.int64), comm)], [logits])

    whole = 50 * 30 * 4
    for kept in simulated(program, 2).results:
        assert whole < kept < 1.5 * whole  # and some numbers a sample


def test_a_share_of_a_mask_does_not_keep_the_whole_mask_until_backward():
    def program(comm: Communicator) -> int:
        x = Tensor(np.ones((2, 3)), requires_grad=True)
        return kept_bytes([ShardedDropout(nn.Dropout(0.5), comm)(x)], [x])

    assert simulated(program, 4).results == [6 + 48] * 4  # its share, a byte an element, and the output
