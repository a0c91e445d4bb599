"""Layers against PyTorch's: the same state gives the same outputs, gradients and buffers, in both directions."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import numpy as np
import pytest

import minidl
from minidl import Tensor, kernels, nn
from tests.together import naming

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")

TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-11, "atol": 1e-13}}


def compare(ours, theirs, dtype, *inputs, training=True):
    """Outputs and all gradients agree after ours was loaded into theirs and back; and so do the buffers afterwards."""
    ours, theirs = ours.to(dtype).train(training), theirs.to(getattr(torch, dtype)).train(training)
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
    fresh = copy.deepcopy(ours)
    for parameter in fresh.parameters():
        parameter.data = np.zeros_like(parameter.data)
    fresh.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    _compare_passes(ours, theirs, dtype, inputs)
    _compare_passes(fresh, theirs, dtype, inputs, buffers=False)


def _compare_passes(ours, theirs, dtype, inputs, buffers=True):
    tolerance = TOLERANCE[dtype]
    real = [array.dtype.kind == "f" for array in inputs]
    xs = [Tensor(a.astype(dtype) if r else a, requires_grad=r) for a, r in zip(inputs, real, strict=True)]
    ts = [torch.tensor(x.data, requires_grad=r) for x, r in zip(xs, real, strict=True)]
    theirs.zero_grad()
    out, expected = ours(*xs), theirs(*ts)
    for a, b in zip(*((o if isinstance(o, tuple) else (o,)) for o in (out, expected)), strict=True):
        np.testing.assert_allclose(a.data, b.detach().numpy(), **tolerance)
    out, expected = (o[0] if isinstance(o, tuple) else o for o in (out, expected))
    assert out.dtype == dtype
    cotangent = np.random.default_rng(9).standard_normal(out.shape).astype(dtype)
    out.backward(cotangent)
    expected.backward(torch.from_numpy(cotangent))
    gradients = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        g = gradients[name].grad.numpy()
        np.testing.assert_allclose(parameter.grad, g, err_msg=name, rtol=tolerance["rtol"], atol=_floor(g, tolerance))
    for x, t in zip(xs, ts, strict=True):
        if x.requires_grad:
            g = t.grad.numpy()
            np.testing.assert_allclose(x.grad, g, rtol=tolerance["rtol"], atol=_floor(g, tolerance))
    if buffers:
        expected_buffers = dict(theirs.named_buffers())
        for name, buffer in ours.named_buffers():
            np.testing.assert_allclose(buffer.data, expected_buffers[name].numpy(), err_msg=name, **tolerance)


def _floor(gradient, tolerance):
    """Sums of many terms are exact to the rounding of the largest."""
    return tolerance["rtol"] * max(abs(gradient).max(), 0.1) if gradient.size else 0


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


NORM_1D = [
    {"eps": 1e-3, "momentum": 0.3},
    {"momentum": None},
    {"affine": False},
    {"track_running_stats": False},
    {"affine": False, "track_running_stats": False},
]
LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [  # name, arguments, options, shape of x
    ("Linear", (7, 5), {}, (3, 4, 7)),
    ("Linear", (7, 5), {"bias": False}, (4, 7)),
    ("Conv2d", (3, 4, 3), {}, (2, 3, 7, 6)),
    ("Conv2d", (3, 4, (5, 3)), {"stride": 2, "padding": (2, 1), "bias": False}, (2, 3, 9, 8)),
    ("Conv2d", (4, 6, 3, 2, 2, 2, 2, False), {}, (2, 4, 9, 8)),  # dilated, in groups
    ("Conv2d", (3, 4, (3, 5)), {"padding": "same"}, (2, 3, 7, 6)),
    ("MaxPool2d", (3, 2, 1), {}, (2, 3, 7, 6)),
    ("MaxPool2d", (3, 2, 1, 2, False, True), {}, (2, 3, 8, 9)),  # dilated, with a last window
    ("AvgPool2d", (3, 2, 1), {}, (2, 3, 7, 6)),
    ("AvgPool2d", (3, 2, 1, True, False), {}, (2, 3, 8, 7)),  # the padding is not counted
    ("AdaptiveAvgPool2d", ((3, None),), {}, (2, 3, 8, 7)),
    ("AdaptiveMaxPool2d", (2,), {}, (2, 3, 7, 7)),
    *(("BatchNorm1d", (3,), options, shape) for options in NORM_1D for shape in ((6, 3), (4, 3, 5))),
    ("BatchNorm2d", (3,), {"eps": 1e-3, "momentum": 0.3}, (4, 3, 5, 4)),
    ("BatchNorm2d", (3,), {"affine": False, "track_running_stats": False}, (4, 3, 5, 4)),
    ("GroupNorm", (2, 6), {"eps": 1e-3}, (4, 6)),
    ("GroupNorm", (2, 6), {"affine": False}, (4, 6, 5)),
    ("GroupNorm", (2, 6), {}, (4, 6, 5, 3)),
    ("RMSNorm", ((3, 5), 1e-3), {}, (4, 3, 5)),
    ("RMSNorm", (5,), {"elementwise_affine": False}, (4, 5)),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (5, 4, 9)),
    ("Conv1d", (2, 3, (4,)), {"padding": "same", "dilation": 2, "bias": False}, (5, 2, 9)),
    ("GELU", (), {"approximate": "tanh"}, (4, 5)),
    ("LayerNorm", ((3, 5), 1e-3, False), {}, (4, 3, 5)),
    ("LayerNorm", ((3, 5),), {}, (4, 3, 5)),
    ("LayerNorm", (5,), {"bias": False}, (4, 5)),
    *((name, (), {}, (4, 5)) for name in ("ReLU", "GELU", "Tanh", "Sigmoid", "SiLU")),
    ("LeakyReLU", (0.2,), {}, (4, 5)),
    ("Softmax", (), {"dim": 1}, (4, 5, 2)),
    ("LogSoftmax", (), {"dim": -1}, (4, 5)),
    ("Identity", (54,), {"unused": 0.1}, (4, 5)),
    ("Flatten", (1, 2), {}, (2, 3, 4, 5)),
]


RUNS = [("float32", "numba"), ("float64", "numba"), ("float64", "numpy")]
"""The types and kernels of a comparison; that both kernels agree in every type is proved in tests/kernels."""


def test_layers_equal_pytorch_s():
    minidl.manual_seed(0)
    for (name, arguments, options, shape), (dtype, kernel), training in product(LAYERS, RUNS, (True, False)):
        with naming(name, arguments, options, shape, dtype, kernel, training), kernels.use(kernel):
            ours, theirs = (getattr(m, name)(*arguments, **options) for m in (nn, torch.nn))
            if name == "Identity":
                ours, theirs = nn.Sequential(ours, nn.Linear(5, 2)), torch.nn.Sequential(theirs, torch.nn.Linear(5, 2))
            compare(ours, theirs, dtype, numbers(*shape), training=training)


def test_embedding_equals_pytorch_s():
    indices = np.random.default_rng(0).integers(6, size=(3, 5))
    for padding_idx, (dtype, kernel) in product([None, 2, -1], RUNS):
        with naming(padding_idx, dtype, kernel), kernels.use(kernel):
            ours, theirs = (m.Embedding(6, 4, padding_idx=padding_idx) for m in (nn, torch.nn))
            compare(ours, theirs, dtype, indices)


def test_attention_to_itself_and_to_others_equals_pytorch_s():
    minidl.manual_seed(0)
    x = numbers(4, 5, 12)
    for batch_first, bias, (dtype, kernel) in product([True, False], [True, False], RUNS):
        options = {"bias": bias, "batch_first": batch_first}
        key, value = (numbers(*((4, 7, 12) if batch_first else (7, 5, 12)), seed=seed) for seed in (1, 2))
        for others in ((x.copy(), x.copy()), (key, value)):
            with naming(options, dtype, kernel), kernels.use(kernel):
                ours, theirs = (m.MultiheadAttention(12, 3, **options) for m in (nn, torch.nn))
                compare(ours, theirs, dtype, x, *others)


class Theirs(torch.nn.MultiheadAttention):
    """With masks and other options of the call; the weights only where they are asked for."""

    def __init__(self, size, heads, need_weights, **given):
        super().__init__(size, heads, batch_first=True)
        self.need_weights, self.given = need_weights, given

    def forward(self, *x):
        given = {
            name: torch.tensor(mask) if isinstance(mask, np.ndarray) else mask for name, mask in self.given.items()
        }
        if given.get("is_causal"):
            given["attn_mask"] = torch.nn.Transformer.generate_square_subsequent_mask(x[0].shape[1], dtype=x[0].dtype)
        out, weights = super().forward(*x, need_weights=True, average_attn_weights=False, **given)
        return (out, weights) if self.need_weights else out


class Ours(nn.MultiheadAttention):
    def __init__(self, size, heads, need_weights, **given):
        super().__init__(size, heads, batch_first=True)
        self.need_weights, self.given = need_weights, given

    def forward(self, *x):
        out, weights = super().forward(*x, need_weights=self.need_weights, average_attn_weights=False, **self.given)
        return (out, weights) if self.need_weights else out


def test_masked_attention_equals_pytorch_s():
    """Causal, with key_padding_mask and attn_mask; nobody is left without a key."""
    n, t, s, heads = 3, 4, 5, 2
    padding = np.zeros((n, s), bool)
    padding[0, -1] = padding[1, -2:] = True
    attention = np.triu(np.ones((t, s), bool), 2)
    each = np.broadcast_to(attention, (n * heads, t, s)).copy()
    each[3, 0, 1] = True
    query, key, value = numbers(n, t, 8), numbers(n, s, 8, seed=1), numbers(n, s, 8, seed=2)
    masks = [
        {"is_causal": True},
        {"key_padding_mask": padding},
        {"attn_mask": attention},
        {"key_padding_mask": padding, "attn_mask": attention},
        {"attn_mask": each},
        {"attn_mask": numbers(t, s, seed=5)},
        {"key_padding_mask": np.where(padding, -np.inf, 0.5), "attn_mask": np.where(each, -np.inf, 0.25)},
    ]
    minidl.manual_seed(0)
    for given, need_weights, kernel in product(masks, [True, False], ["numpy", "numba"]):
        x = (query, query.copy(), query.copy()) if given.get("is_causal") else (query, key, value)
        with naming(given, need_weights, kernel), kernels.use(kernel):
            compare(Ours(8, heads, need_weights, **given), Theirs(8, heads, need_weights, **given), "float64", *x)


def test_a_query_that_sees_no_key_gets_what_pytorch_gives_without_weights_and_the_same_gradients_with_them():
    ours, theirs = (kind(8, 2, batch_first=True) for kind in (nn.MultiheadAttention, torch.nn.MultiheadAttention))
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
    x, padding = numbers(2, 3, 8).astype(np.float32), np.array([[True] * 3, [False, True, False]])
    t = torch.from_numpy(x)
    expected, _ = theirs(t, t, t, torch.tensor(padding), need_weights=False)
    (expected * expected).sum().backward()
    for need_weights in [True, False]:
        with naming(need_weights):
            ours.zero_grad()
            out, _ = ours(x, x, x, padding, need_weights)
            (out * out).sum().backward()
            np.testing.assert_allclose(out.data, expected.detach().numpy(), rtol=1e-5, atol=1e-6)
            for name, parameter in theirs.named_parameters():
                found = dict(ours.named_parameters())[name].grad
                np.testing.assert_allclose(found, parameter.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


RECURRENT = [
    {},
    {"bias": False},
    {"num_layers": 3},
    {"batch_first": True},
    {"bidirectional": True, "num_layers": 2},
    {"bidirectional": True, "batch_first": True, "bias": False},
]


class Joined:
    """Outputs and both states as one array, so that the gradients are those of a loss that all three have a part in."""

    def forward(self, x, *state):
        is_simple = isinstance(self, (nn.RNN, torch.nn.RNN))
        out, last = super().forward(x, (state[0] if is_simple else state) if state else None)
        cat = minidl.functional.cat if isinstance(self, nn.Module) else torch.cat
        return cat([y.reshape(-1) * k for k, y in enumerate((out, *((last,) if is_simple else last)), 1)], 0)


class OurLSTM(Joined, nn.LSTM):
    pass


class TheirLSTM(Joined, torch.nn.LSTM):
    pass


def test_lstm_equals_pytorch_s():
    minidl.manual_seed(0)
    n, t = 5, 6
    for options, given, (dtype, kernel) in product(RECURRENT, [True, False], RUNS):
        with naming(options, given, dtype, kernel), kernels.use(kernel):
            rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
            x = numbers(n, t, 3) if options.get("batch_first") else numbers(t, n, 3)
            state = [numbers(rows, n, 4, seed=seed) for seed in (1, 2)] if given else []
            compare(OurLSTM(3, 4, **options), TheirLSTM(3, 4, **options), dtype, x, *state)


class OurRNN(Joined, nn.RNN):
    pass


class TheirRNN(Joined, torch.nn.RNN):
    pass


def test_rnn_equals_pytorch_s():
    minidl.manual_seed(0)
    for options, nonlinearity in zip(RECURRENT, ["tanh", "relu"] * 3, strict=True):
        with naming(options, nonlinearity):
            options = options | {"nonlinearity": nonlinearity}
            rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
            x, h = numbers(5, 6, 3), numbers(rows, 5 if options.get("batch_first") else 6, 4, seed=1)
            compare(OurRNN(3, 4, **options), TheirRNN(3, 4, **options), "float64", x, h)


def test_lstm_of_a_single_sequence_equals_pytorch_s():
    for given in [True, False]:
        with naming(given):
            ours, theirs = nn.LSTM(3, 4, 2).double(), torch.nn.LSTM(3, 4, 2).double()
            theirs.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
            x, state = numbers(6, 3), [numbers(2, 4, seed=1), numbers(2, 4, seed=2)]
            out, (h, c) = ours(x, tuple(state) if given else None)
            peers = theirs(torch.tensor(x), tuple(torch.tensor(s) for s in state) if given else None)
            for mine, peer in zip((out, h, c), (peers[0], *peers[1]), strict=True):
                np.testing.assert_allclose(mine.data, peer.detach().numpy(), rtol=1e-11)


class Stepping:
    def forward(self, x, h, c):
        for _ in range(3):
            if isinstance(self, (nn.RNNCell, torch.nn.RNNCell)):
                h = super().forward(x, h) + c
            else:
                h, c = super().forward(x, (h, c))
        return (minidl.functional.cat if isinstance(self, nn.Module) else torch.cat)([h, c], -1)


class OurCell(Stepping, nn.LSTMCell):
    pass


class TheirCell(Stepping, torch.nn.LSTMCell):
    pass


class OurSimpleCell(Stepping, nn.RNNCell):
    pass


class TheirSimpleCell(Stepping, torch.nn.RNNCell):
    pass


def test_cells_equal_pytorch_s():
    for bias, shape in product([True, False], [(5, 3), (3,)]):
        state = [numbers(*shape[:-1], 4, seed=seed) for seed in (1, 2)]
        with naming(bias, shape):
            compare(OurCell(3, 4, bias), TheirCell(3, 4, bias), "float64", numbers(*shape), *state)
            options = {"bias": bias, "nonlinearity": "relu" if bias else "tanh"}
            simple = OurSimpleCell(3, 4, **options), TheirSimpleCell(3, 4, **options)
            compare(*simple, "float64", numbers(*shape), *state)


def test_layers_are_printed_as_pytorch_s():
    def tree(m):
        body = m.Sequential(m.Conv2d(1, 2, 3, padding=1), m.ReLU(), m.AvgPool2d(2), m.Flatten(), m.Linear(8, 3))
        lstm = m.LSTM(3, 4, num_layers=2, dropout=0.25, bidirectional=True)
        return m.Sequential(
            body,
            m.ModuleList([m.Tanh(), m.Tanh(), m.Embedding(3, 2)]),
            lstm,
            m.LSTMCell(3, 4, bias=False),
            *(m.RNN(3, 4, bidirectional=True), m.RNNCell(3, 4, nonlinearity="relu")),
        )

    assert repr(tree(nn)) == repr(tree(torch.nn))
