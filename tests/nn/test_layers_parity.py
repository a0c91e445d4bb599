"""Layers against PyTorch's: the same state gives the same outputs, gradients and buffers, in both directions."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import minidl
from minidl import Tensor, kernels, nn

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")

TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-11, "atol": 1e-13}}


def compare(ours, theirs, dtype, *inputs, training=True, options=None):
    """Outputs and all gradients agree after ours was loaded into theirs and back; and so do the buffers afterwards."""
    ours, theirs = ours.to(dtype).train(training), theirs.to(getattr(torch, dtype)).train(training)
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
    fresh = copy.deepcopy(ours)
    for parameter in fresh.parameters():
        parameter.data = np.zeros_like(parameter.data)
    fresh.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    _compare_passes(ours, theirs, dtype, inputs, options or {})
    _compare_passes(fresh, theirs, dtype, inputs, options or {}, buffers=False)


def _compare_passes(ours, theirs, dtype, inputs, options, buffers=True):
    tolerance = TOLERANCE[dtype]
    real = [array.dtype.kind == "f" for array in inputs]
    xs = [Tensor(a.astype(dtype) if r else a, requires_grad=r) for a, r in zip(inputs, real, strict=True)]
    ts = [torch.tensor(x.data, requires_grad=r) for x, r in zip(xs, real, strict=True)]
    theirs.zero_grad()
    out, expected = ours(*xs, **options), theirs(*ts, **options)
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


LAYERS = {
    "linear": (lambda: nn.Linear(7, 5), lambda: torch.nn.Linear(7, 5), (3, 4, 7)),
    "linear without bias": (lambda: nn.Linear(7, 5, bias=False), lambda: torch.nn.Linear(7, 5, bias=False), (4, 7)),
    "conv": (lambda: nn.Conv2d(3, 4, 3), lambda: torch.nn.Conv2d(3, 4, 3), (2, 3, 7, 6)),
    "conv, strided, padded": (
        lambda: nn.Conv2d(3, 4, (5, 3), stride=2, padding=(2, 1), bias=False),
        lambda: torch.nn.Conv2d(3, 4, (5, 3), stride=2, padding=(2, 1), bias=False),
        (2, 3, 9, 8),
    ),
    "conv, dilated, in groups": (
        lambda: nn.Conv2d(4, 6, 3, 2, 2, 2, 2, False),
        lambda: torch.nn.Conv2d(4, 6, 3, 2, 2, 2, 2, False),
        (2, 4, 9, 8),
    ),
    "conv, same size": (
        lambda: nn.Conv2d(3, 4, (3, 5), padding="same"),
        lambda: torch.nn.Conv2d(3, 4, (3, 5), padding="same"),
        (2, 3, 7, 6),
    ),
    "max pool, dilated, with a last window": (
        lambda: nn.MaxPool2d(3, 2, 1, 2, False, True),
        lambda: torch.nn.MaxPool2d(3, 2, 1, 2, False, True),
        (2, 3, 8, 9),
    ),
    "average pool, padding not counted": (
        lambda: nn.AvgPool2d(3, 2, 1, True, False),
        lambda: torch.nn.AvgPool2d(3, 2, 1, True, False),
        (2, 3, 8, 7),
    ),
    "adaptive average pool": (
        lambda: nn.AdaptiveAvgPool2d((3, None)),
        lambda: torch.nn.AdaptiveAvgPool2d((3, None)),
        (2, 3, 8, 7),
    ),
    "adaptive max pool": (
        lambda: nn.AdaptiveMaxPool2d(2),
        lambda: torch.nn.AdaptiveMaxPool2d(2),
        (2, 3, 7, 7),
    ),
    "max pool": (lambda: nn.MaxPool2d(3, 2, 1), lambda: torch.nn.MaxPool2d(3, 2, 1), (2, 3, 7, 6)),
    "average pool": (lambda: nn.AvgPool2d(3, 2, 1), lambda: torch.nn.AvgPool2d(3, 2, 1), (2, 3, 7, 6)),
    "batch norm": (
        lambda: nn.BatchNorm2d(3, eps=1e-3, momentum=0.3),
        lambda: torch.nn.BatchNorm2d(3, eps=1e-3, momentum=0.3),
        (4, 3, 5, 4),
    ),
    **{
        f"batch norm {what}, {settings}": (
            lambda settings=settings: nn.BatchNorm1d(3, **settings),
            lambda settings=settings: torch.nn.BatchNorm1d(3, **settings),
            shape,
        )
        for what, shape in (("of features", (6, 3)), ("of sequences", (4, 3, 5)))
        for settings in (
            {"eps": 1e-3, "momentum": 0.3},
            {"momentum": None},
            {"affine": False},
            {"track_running_stats": False},
            {"affine": False, "track_running_stats": False},
        )
    },
    "batch norm of images, nothing learned or kept": (
        lambda: nn.BatchNorm2d(3, affine=False, track_running_stats=False),
        lambda: torch.nn.BatchNorm2d(3, affine=False, track_running_stats=False),
        (4, 3, 5, 4),
    ),
    **{
        f"group norm of {shape}": (
            lambda affine=affine: nn.GroupNorm(2, 6, eps=1e-3, affine=affine),
            lambda affine=affine: torch.nn.GroupNorm(2, 6, eps=1e-3, affine=affine),
            shape,
        )
        for shape, affine in (((4, 6), True), ((4, 6, 5), False), ((4, 6, 5, 3), True))
    },
    "layer norm, nothing learned": (
        lambda: nn.LayerNorm((3, 5), 1e-3, False),
        lambda: torch.nn.LayerNorm((3, 5), 1e-3, False),
        (4, 3, 5),
    ),
    "layer norm": (lambda: nn.LayerNorm((3, 5)), lambda: torch.nn.LayerNorm((3, 5)), (4, 3, 5)),
    "layer norm without bias": (lambda: nn.LayerNorm(5, bias=False), lambda: torch.nn.LayerNorm(5, bias=False), (4, 5)),
    "relu": (nn.ReLU, torch.nn.ReLU, (4, 5)),
    "gelu": (nn.GELU, torch.nn.GELU, (4, 5)),
    "tanh": (nn.Tanh, torch.nn.Tanh, (4, 5)),
    "sigmoid": (nn.Sigmoid, torch.nn.Sigmoid, (4, 5)),
    "silu": (nn.SiLU, torch.nn.SiLU, (4, 5)),
    "leaky relu": (lambda: nn.LeakyReLU(0.2), lambda: torch.nn.LeakyReLU(0.2), (4, 5)),
    "softmax": (lambda: nn.Softmax(dim=1), lambda: torch.nn.Softmax(dim=1), (4, 5, 2)),
    "log softmax": (lambda: nn.LogSoftmax(dim=-1), lambda: torch.nn.LogSoftmax(dim=-1), (4, 5)),
    "identity in a row": (
        lambda: nn.Sequential(nn.Identity(54, unused=0.1), nn.Linear(5, 2)),
        lambda: torch.nn.Sequential(torch.nn.Identity(54, unused=0.1), torch.nn.Linear(5, 2)),
        (4, 5),
    ),
    "flatten": (lambda: nn.Flatten(1, 2), lambda: torch.nn.Flatten(1, 2), (2, 3, 4, 5)),
}


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_equal_pytorch_s(name, dtype, training, kernel):
    ours, theirs, shape = LAYERS[name]
    minidl.manual_seed(0)
    with kernels.use(kernel):
        compare(ours(), theirs(), dtype, numbers(*shape), training=training)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("padding_idx", [None, 2, -1])
def test_embedding_equals_pytorch_s(padding_idx, dtype, kernel):
    indices = np.random.default_rng(0).integers(6, size=(3, 5))
    with kernels.use(kernel):
        make = [lambda m=m: m.Embedding(6, 4, padding_idx=padding_idx) for m in (nn, torch.nn)]
        compare(make[0](), make[1](), dtype, indices)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_to_itself_and_to_others_equals_pytorch_s(batch_first, bias, dtype, kernel):
    minidl.manual_seed(0)
    make = [lambda m=m: m.MultiheadAttention(12, 3, bias=bias, batch_first=batch_first) for m in (nn, torch.nn)]
    x = numbers(4, 5, 12)
    key, value = (numbers(*((4, 7, 12) if batch_first else (7, 5, 12)), seed=seed) for seed in (1, 2))
    with kernels.use(kernel):
        compare(make[0](), make[1](), dtype, x, x.copy(), x.copy())
        compare(make[0](), make[1](), dtype, x, key, value)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_causal_attention_equals_pytorch_s(need_weights, dtype, kernel):
    class Theirs(torch.nn.MultiheadAttention):
        def forward(self, query, key, value):
            mask = torch.nn.Transformer.generate_square_subsequent_mask(query.shape[1], dtype=query.dtype)
            out, weights = super().forward(query, key, value, need_weights=True, attn_mask=mask, is_causal=True)
            return (out, weights) if need_weights else out

    class Ours(nn.MultiheadAttention):
        def forward(self, query, key, value):
            out, weights = super().forward(query, key, value, need_weights=need_weights, is_causal=True)
            return (out, weights) if need_weights else out

    minidl.manual_seed(0)
    x = numbers(3, 6, 8)
    with kernels.use(kernel):
        compare(Ours(8, 2, batch_first=True), Theirs(8, 2, batch_first=True), dtype, x, x.copy(), x.copy())


def test_initial_distributions_are_pytorch_s():
    """The same standard deviation and the same largest number, within what 20,000 draws allow."""
    minidl.manual_seed(0)
    torch.manual_seed(0)
    for ours, theirs in (
        (nn.Linear(100, 200), torch.nn.Linear(100, 200)),
        (nn.Conv2d(20, 40, 5), torch.nn.Conv2d(20, 40, 5)),
        (nn.Embedding(200, 100), torch.nn.Embedding(200, 100)),
        (nn.MultiheadAttention(80, 4), torch.nn.MultiheadAttention(80, 4)),
        (nn.BatchNorm2d(8), torch.nn.BatchNorm2d(8)),
        (nn.LayerNorm(8), torch.nn.LayerNorm(8)),
    ):
        state = ours.state_dict()
        for name, tensor in theirs.state_dict().items():
            expected = tensor.numpy()
            assert state[name].dtype == expected.dtype
            small = expected.size < 1000
            assert state[name].std() == pytest.approx(expected.std(), rel=0.3 if small else 0.03), name
            assert abs(state[name]).max() == pytest.approx(abs(expected).max(), rel=0.2), name


@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
@pytest.mark.parametrize("nonlinearity", ["relu", "leaky_relu", "tanh", "linear"])
def test_kaiming_and_gains_follow_pytorch_s_formulas(mode, nonlinearity):
    minidl.manual_seed(0)
    torch.manual_seed(0)
    assert nn.init.calculate_gain(nonlinearity) == pytest.approx(torch.nn.init.calculate_gain(nonlinearity))
    for name in ("kaiming_uniform_", "kaiming_normal_"):
        ours = getattr(nn.init, name)(Tensor(np.empty((60, 30, 5, 5), np.float32)), 0.2, mode, nonlinearity)
        theirs = getattr(torch.nn.init, name)(torch.empty(60, 30, 5, 5), 0.2, mode, nonlinearity)
        assert ours.data.std() == pytest.approx(theirs.std().item(), rel=0.02)


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping_equals_pytorch_s(max_norm):
    gradients = [numbers(4, 3).astype(np.float32), numbers(5, seed=1).astype(np.float32)]
    ours = [nn.Parameter(np.zeros(g.shape, np.float32)) for g in gradients]
    theirs = [torch.nn.Parameter(torch.zeros(g.shape)) for g in gradients]
    for g, p, q in zip(gradients, ours, theirs, strict=True):
        p.grad, q.grad = g.copy(), torch.from_numpy(g.copy())
    norm = nn.clip_grad_norm_(ours, max_norm)
    assert norm == pytest.approx(torch.nn.utils.clip_grad_norm_(theirs, max_norm).item(), rel=1e-6)
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-6)


def test_the_printed_tree_is_pytorch_s():
    def tree(m):
        body = m.Sequential(m.Conv2d(1, 2, 3, padding=1), m.ReLU(), m.AvgPool2d(2), m.Flatten(), m.Linear(8, 3))
        return m.Sequential(body, m.ModuleList([m.Tanh(), m.Tanh(), m.Embedding(3, 2)]))

    assert repr(tree(nn)) == repr(tree(torch.nn))


def _masks(kind, n, t, s, heads):
    """key_padding_mask and attn_mask; nobody is left without a key."""
    padding = np.zeros((n, s), bool)
    padding[0, -1] = padding[1, -2:] = True
    attention = np.triu(np.ones((t, s), bool), 2)
    each = np.broadcast_to(attention, (n * heads, t, s)).copy()
    each[3, 0, 1] = True
    added = numbers(t, s, seed=5)
    return {
        "padding": (padding, None),
        "attention": (None, attention),
        "both": (padding, attention),
        "each head": (None, each),
        "numbers": (None, added),
        "numbers for each head": (np.where(padding, -np.inf, 0.5), np.where(each, -np.inf, 0.25)),
    }[kind]


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("kind", ["padding", "attention", "both", "each head", "numbers", "numbers for each head"])
def test_masked_attention_equals_pytorch_s(kind, need_weights, kernel):
    n, t, s, heads = 3, 4, 5, 2
    padding, attention = _masks(kind, n, t, s, heads)
    given = {"key_padding_mask": padding, "attn_mask": attention}

    class Theirs(torch.nn.MultiheadAttention):
        def forward(self, *x):
            masks = {name: mask if mask is None else torch.tensor(mask) for name, mask in given.items()}
            out, weights = super().forward(*x, need_weights=need_weights, average_attn_weights=False, **masks)
            return (out, weights) if need_weights else out

    class Ours(nn.MultiheadAttention):
        def forward(self, *x):
            out, weights = super().forward(*x, need_weights=need_weights, average_attn_weights=False, **given)
            return (out, weights) if need_weights else out

    minidl.manual_seed(0)
    with kernels.use(kernel):
        compare(
            Ours(8, heads, batch_first=True),
            Theirs(8, heads, batch_first=True),
            "float64",
            numbers(n, t, 8),
            *(numbers(n, s, 8, seed=seed) for seed in (1, 2)),
        )


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_query_that_sees_no_key_gets_what_pytorch_gives(need_weights):
    ours, theirs = nn.MultiheadAttention(8, 2, batch_first=True), torch.nn.MultiheadAttention(8, 2, batch_first=True)
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
    x, padding = numbers(2, 3, 8).astype(np.float32), np.array([[True] * 3, [False, True, False]])
    with np.errstate(invalid="ignore"):
        out, _ = ours(x, x, x, padding, need_weights)
    t = torch.from_numpy(x)
    expected, _ = theirs(t, t, t, torch.tensor(padding), need_weights)
    np.testing.assert_allclose(out.data, expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert np.isnan(out.data[0]).all() == need_weights


RECURRENT = {
    "one layer": {},
    "without bias": {"bias": False},
    "three layers": {"num_layers": 3},
    "batch first": {"batch_first": True},
    "both directions": {"bidirectional": True, "num_layers": 2},
    "both directions, batch first, without bias": {"bidirectional": True, "batch_first": True, "bias": False},
}


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("given", [True, False], ids=["state given", "from zeros"])
@pytest.mark.parametrize("name", RECURRENT)
def test_lstm_equals_pytorch_s(name, given, dtype, kernel):
    """Outputs and both states, and the gradients of a loss that all three have a part in."""

    def joined(base, m):
        class Joined(base):
            def forward(self, x, *state):
                out, (h, c) = super().forward(x, state or None)
                return (m.cat if m is torch else minidl.functional.cat)([y.reshape(-1) for y in (out, h * 2, c * 3)], 0)

        return Joined(3, 4, **options)

    options = RECURRENT[name]
    rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    n, t = 5, 6
    x = numbers(n, t, 3) if options.get("batch_first") else numbers(t, n, 3)
    state = [numbers(rows, n, 4, seed=seed) for seed in (1, 2)] if given else []
    minidl.manual_seed(0)
    with kernels.use(kernel):
        compare(joined(nn.LSTM, nn), joined(torch.nn.LSTM, torch), dtype, x, *state)


@pytest.mark.parametrize("given", [True, False], ids=["state given", "from zeros"])
def test_lstm_of_a_single_sequence_equals_pytorch_s(given):
    ours, theirs = nn.LSTM(3, 4, 2).double(), torch.nn.LSTM(3, 4, 2).double()
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
    x, state = numbers(6, 3), [numbers(2, 4, seed=1), numbers(2, 4, seed=2)]
    out, (h, c) = ours(x, tuple(state) if given else None)
    peers = theirs(torch.tensor(x), tuple(torch.tensor(s) for s in state) if given else None)
    for mine, peer in zip((out, h, c), (peers[0], *peers[1]), strict=True):
        np.testing.assert_allclose(mine.data, peer.detach().numpy(), rtol=1e-11)


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("shape", [(5, 3), (3,)])
@pytest.mark.parametrize("bias", [True, False])
def test_lstm_cell_equals_pytorch_s(bias, shape, kernel):
    def stepping(base, m):
        class Stepping(base):
            def forward(self, x, h, c):
                for _ in range(3):
                    h, c = super().forward(x, (h, c))
                return m.cat([h, c], -1)

        return Stepping(3, 4, bias)

    state = [numbers(*shape[:-1], 4, seed=seed) for seed in (1, 2)]
    with kernels.use(kernel):
        compare(
            stepping(nn.LSTMCell, minidl.functional),
            stepping(torch.nn.LSTMCell, torch),
            "float64",
            numbers(*shape),
            *state,
        )


def test_recurrent_layers_print_and_start_as_pytorch_s():
    for options in (
        {},
        {"num_layers": 2, "dropout": 0.25, "bidirectional": True},
        {"bias": False, "batch_first": True},
    ):
        assert repr(nn.LSTM(3, 4, **options)) == repr(torch.nn.LSTM(3, 4, **options))
    assert repr(nn.LSTMCell(3, 4, bias=False)) == repr(torch.nn.LSTMCell(3, 4, bias=False))
    for parameter in nn.LSTM(50, 100).parameters():
        assert 0.099 < abs(parameter.data).max() <= 0.1
