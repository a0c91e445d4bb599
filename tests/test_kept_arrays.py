"""What a forward pass keeps for backward: by hand, and against the memory that Python counts."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from minidl import Tensor, checkpoint, kernels, nn, random
from minidl import functional as F
from minidl.functional.axes import zeros_in_order
from minidl.kept_arrays import kept_bytes
from minidl.parallel import pipeline
from minidl.tape import OUTPUT, memory_of, node_of
from minidl.tensor import record
from tests.functional.cases import three_of_each_operation
from tests.tiers import all_but_first_exhaustive

N, C, H, W = 3, 2, 6, 5
IMAGES = np.random.default_rng(0).normal(size=(N, C, H, W)).astype(np.float32)
ROWS = np.random.default_rng(0).normal(size=(N, 8)).astype(np.float32)
TEXTS = np.random.default_rng(0).normal(size=(N, 7, 8)).astype(np.float32)  # 7 positions of 8 features
FLOAT = 4


@pytest.fixture(params=["numpy", "numba"], autouse=True)
def _kernels(request):
    with kernels.use(request.param):
        yield


def kept(module: nn.Module, x: np.ndarray) -> int:
    """By the unit of a model that has two: the input of the second one needs a gradient."""

    class Model(nn.Module):
        def __init__(self):
            self.scale, self.module = nn.Parameter(np.ones(1, np.float32)), module

        def stages(self):
            return [nn.Stage(lambda x: Tensor(x) * self.scale, self.scale), nn.Stage(module, module)]

    return pipeline.costs_of(Model(), x).rows[1].kept


def test_a_layer_keeps_its_output_and_little_else():
    """Its input is the output of the unit before; the weights and buffers are there anyway."""

    class Masked(nn.Module):
        def __init__(self):
            self.register_buffer("mask", np.ones(8, np.float32))

        def forward(self, x):
            return x * self.mask

    for layer, x, numbers in (
        (nn.Linear(8, 6), ROWS, N * 6),
        (nn.Conv2d(C, 4, 3), IMAGES, N * 4 * (H - 2) * (W - 2)),  # not the unfolded windows
        (nn.BatchNorm2d(C), IMAGES, IMAGES.size + 2 * C),  # mean and std; backward computes xhat again from the input
        (nn.BatchNorm2d(C).eval(), IMAGES, IMAGES.size + 2 * C),
        (nn.LayerNorm(8), ROWS, ROWS.size + 2 * N),
        (nn.GroupNorm(1, C), IMAGES, IMAGES.size + 2 * N),
        (nn.GELU(), ROWS, N * 8),
        (nn.Dropout(0.5), ROWS, N * 8 * (1 + 1 / FLOAT)),  # and its mask, a byte an element
        (nn.Flatten(), IMAGES, 0),  # a view
        (Masked(), ROWS, N * 8),
    ):
        assert kept(layer, x) == FLOAT * numbers, layer


def test_two_views_of_one_array_count_once():
    class Halves(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y[:, :3] * y[:, 3:]

    assert kept(Halves(8, 6), ROWS) == FLOAT * (N * 6 + N * 3)


def test_attention_keeps_queries_keys_values_probabilities_and_its_output():
    """Queries, keys and values of all heads are views of one projection."""
    n, t, d, heads = *TEXTS.shape, 2

    class Attention(nn.Module):
        def __init__(self):
            self.project = nn.Linear(d, 3 * d)

        def forward(self, x):
            q, k, v = (
                self.project(x).reshape(n, t, 3, heads, d // heads).transpose(2, 0, 3, 1, 4)[i] for i in range(3)
            )
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return out.transpose(1, 2).reshape(n, t, d)  # the heads of a position lie together, so this is a view

    projected = 3 * n * t * 3 * d  # three times, each of queries, keys and values
    assert kept(Attention(), TEXTS) == FLOAT * (projected + n * heads * t * t + n * t * d)


def test_a_checkpointed_unit_keeps_its_output_alone():
    layers = nn.Sequential(nn.Linear(8, 20), nn.Tanh(), nn.Dropout(0.5), nn.Linear(20, 6))

    class Checkpointed(nn.Module):
        def __init__(self):
            self.layers = layers

        def forward(self, x):
            return checkpoint(self.layers, x)

    # With dropout's mask; without the first layer's output: tanh reads its own
    assert kept(layers, ROWS) == N * (FLOAT * (20 + 20 + 6) + 20)
    assert kept(Checkpointed(), ROWS) == FLOAT * N * 6


def test_arrays_in_containers_and_in_functions_are_found():
    """As they may be in the vjp of a user's own operation."""
    from minidl.tensor import record

    x, arrays = Tensor(ROWS, requires_grad=True), [np.ones(10 + i) for i in range(5)]

    class Own:
        def __init__(self):
            self.array = arrays[3]

        def vjp(self, g, needs):
            return (g,)

    def multiply(array, g, needs, default={"of": arrays[1]}):  # noqa: B006
        return ([g, array][0],)

    own, multiplied = Own(), partial(multiply, arrays[2])
    y = record(ROWS * 1, (x,), lambda g, needs: own.vjp(g, needs) if own else (arrays[:1], arrays[4]))
    z = record(ROWS * 2, (y,), multiplied)
    doubles = sum(array.nbytes for array in arrays)
    assert kept_bytes([z], [x]) == ROWS.nbytes + doubles  # y's own array only as long as somebody holds y
    assert kept_bytes([z, y], [x]) == 2 * ROWS.nbytes + doubles
    assert kept_bytes([z], [x, arrays[4]]) == ROWS.nbytes + doubles - arrays[4].nbytes


# ---- whole models ----


class Outputs(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]


MODELS = {
    "MLP": (partial(nn.models.MLP, 8, 64, 64, 4), np.tile(ROWS, (50, 1))),
    "GPT": (partial(nn.models.GPT, 50, 32, 3, 2, 32, 0.2), np.ones((4, 32), np.int64)),
    "LeNet": (nn.models.LeNet, np.ones((8, 1, 28, 28), np.float32)),
    "ResNet": (partial(nn.models.ResNet, 14, 4), np.ones((4, 3, 16, 16), np.float32)),
    "LSTM": (lambda: nn.Sequential(Outputs(8, 6, num_layers=2, bidirectional=True)), TEXTS),
}


@pytest.mark.parametrize(("make", "x"), all_but_first_exhaustive(list(MODELS.values())), ids=MODELS)
def test_it_is_the_memory_that_python_counts_and_all_units_together_keep_what_the_whole_model_keeps(make, x):
    """But for the output of a unit that the next one does not read: the hidden layers of an MLP, whose ReLU follows.

    And but for tables that pooling makes once for a shape of images: less than a thousand bytes.
    """
    random.manual_seed(0)
    model = make()
    rows = pipeline.costs_of(model, x).rows
    gc.collect()
    tracemalloc.start()
    try:
        output = model(x)
        arrays = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
    finally:
        tracemalloc.stop()
    live = sum(trace.size for trace in arrays.traces)
    found = kept_bytes([output], [x, *model.parameters()])
    assert live <= found <= live + (1000 if isinstance(model, nn.models.LeNet) else 0)
    unread = sum(row.output for row in rows[:-1]) if isinstance(model, nn.models.MLP) else 0
    assert sum(row.kept for row in rows) - unread == found


def test_a_communicator_in_a_graph_is_not_followed_to_the_arrays_of_the_program():
    x, comm = Tensor(np.ones(4), requires_grad=True), SimpleNamespace(program=np.ones(100))
    y = record(x.numpy() * 2, (x,), lambda g, needs: (g * comm.program[0],))
    assert kept_bytes([y], [x]) == 32


def test_the_gradient_of_a_slice_lies_as_the_whole_so_that_a_transposition_need_not_copy_it():
    """Queries, keys and values of all heads are slices of one transposed projection."""
    for select in (lambda whole: whole[0], lambda whole: whole.max(dim=0).values):
        x = Tensor(TEXTS, requires_grad=True)
        with kernels.counted() as work:
            whole = (x * 1.0).reshape(N, 7, 4, 2).transpose(2, 0, 1, 3)
            y = select(whole)
            before = work.flops
            y.backward(np.ones(y.shape, np.float32))
        assert work.flops - before == 2 * x.size  # the zeros and the product: no copy
    zeros = zeros_in_order(np, whole.shape, whole.data.strides, np.float32)
    assert (zeros.shape, zeros.strides) == (whole.shape, whole.data.strides)


def test_attention_does_not_keep_a_mask_that_was_computed():
    q = Tensor(TEXTS, requires_grad=True)
    bias = Tensor(np.zeros((7, 7), np.float32), requires_grad=True)
    mask = bias * 2.0
    alive = weakref.ref(mask.data)
    out = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    del mask
    assert alive() is None
    out.sum().backward()
    assert bias.grad is not None


# ---- operations ----


def test_an_operation_keeps_no_array_that_its_gradient_is_not_said_to_read():
    """So a result that backward does not read can be let go; what it reads is guarded against being overwritten."""
    for case in three_of_each_operation():
        random.manual_seed(0)
        tensors = [Tensor(a, requires_grad=d) for a, d in zip(case.arrays(), case.differentiable, strict=True)]
        out = case.function(F, *tensors)
        nodes, saved = [node_of(out)] if out.requires_grad else [], set()
        for node in nodes:  # the list grows while it is read
            saved.update(memory_of(node if index == OUTPUT else node._parents[index]) for index in node._saved)
            nodes += [parent for parent in node._parents if parent._vjp is not None and parent not in nodes]
        vjps = [node._vjp for node in nodes]
        for operand in [*tensors, out]:
            if memory_of(node_of(operand)) not in saved:
                assert kept_bytes(vjps, []) == kept_bytes(vjps, [operand]), case
