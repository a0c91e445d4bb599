"""Operations against their definitions, and properties that can be proved."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from minidl import Tensor, grad, kernels, manual_seed, nn
from minidl import functional as F
from tests.together import Mistake, assert_refused, naming

KERNELS = pytest.mark.parametrize("kernel", ["numpy", "numba"])


# ---- normalisation ----


@KERNELS
def test_a_norm_has_mean_0_and_variance_1_and_a_gradient_orthogonal_to_ones_and_to_its_output(kernel: str) -> None:
    random = np.random.default_rng(0)
    ones, zeros = np.ones(5), np.zeros(5)
    for norm, axes in (
        (lambda x: F.batch_norm(x, None, None, training=True, eps=0.0), (0, 2, 3)),
        (lambda x: F.group_norm(x, 1, eps=0.0), (1, 2, 3)),
        (lambda x: F.layer_norm(x, ones, zeros, eps=0.0), (3,)),
    ):
        x = Tensor(random.standard_normal((8, 3, 4, 5)) * 7 + 3, requires_grad=True)
        with kernels.use(kernel):
            out = norm(x)
            out.backward(random.standard_normal(out.shape))
        np.testing.assert_allclose(out.numpy().mean(axis=axes), 0, atol=1e-13)
        np.testing.assert_allclose(out.numpy().var(axis=axes), 1, rtol=1e-12)
        np.testing.assert_allclose(x.grad.sum(axis=axes), 0, atol=1e-12)
        np.testing.assert_allclose((x.grad * out.numpy()).sum(axis=axes), 0, atol=1e-11)


# ---- attention ----


@KERNELS
def test_the_future_has_zero_gradient_in_causal_attention(kernel: str) -> None:
    random = np.random.default_rng(0)
    q, k, v = (Tensor(random.standard_normal((5, 4)), requires_grad=True) for _ in range(3))
    with kernels.use(kernel):
        F.scaled_dot_product_attention(q, k, v, is_causal=True)[2].sum().backward()
    for gradient in (k.grad, v.grad):
        np.testing.assert_array_equal(gradient[3:], 0)
    assert (v.grad[:3] != 0).all()


# ---- elementwise ----


@KERNELS
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 5e-6)])
def test_gelu_is_x_times_the_normal_distribution_function_to_the_last_digits_in_its_tail(
    dtype: str, tolerance: float, kernel: str
) -> None:
    x = np.linspace(-12, 6, 333).astype(dtype)
    phi = np.array([0.5 * math.erfc(-t / math.sqrt(2)) for t in x.tolist()])
    density = np.exp(-(x.astype(float) ** 2) / 2) / math.sqrt(2 * math.pi)
    with kernels.use(kernel):
        t = Tensor(x, requires_grad=True)
        out = F.gelu(t)
        out.sum().backward()
        assert (F.gelu(np.array([-20.0, -30.0, -37.0], dtype=dtype)).numpy() <= 0).all()
    np.testing.assert_allclose(out.numpy(), x * phi, rtol=tolerance)
    np.testing.assert_allclose(t.grad, phi + x * density, atol=tolerance)


@KERNELS
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-6)])
def test_sigmoid_keeps_its_digits_where_it_is_small_and_overflows_nowhere(
    dtype: str, tolerance: float, kernel: str
) -> None:
    x = np.array([-20.0, -50.0, -80.0, -1.0, 0.0, 1.0], dtype=dtype)
    exact = [1 / (1 + math.exp(-t)) for t in x.tolist()]
    with kernels.use(kernel), np.errstate(over="raise", divide="raise", invalid="raise"):
        np.testing.assert_allclose(F.sigmoid(x).numpy(), exact, rtol=tolerance)
        np.testing.assert_array_equal(F.sigmoid(np.array([-1e4, 0.0, 1e4], dtype)).numpy(), [0.0, 0.5, 1.0])
        assert F.logsigmoid(np.array([-1000.0], dtype=dtype)).item() == -1000
        assert F.softplus(np.array([-50.0], dtype=dtype)).item() == pytest.approx(math.exp(-50), rel=1e-6)


# ---- losses ----


@KERNELS
def test_cross_entropy_of_sequences_is_that_of_their_rows(kernel: str) -> None:
    random = np.random.default_rng(0)
    x, labels = random.standard_normal((2, 5, 7)), random.integers(0, 7, (2, 5))
    labels[0, 2] = -100
    a, b = Tensor(x, requires_grad=True), Tensor(x.reshape(10, 7), requires_grad=True)
    with kernels.use(kernel):
        for settings in ({}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"weight": np.arange(7.0)}):
            ours, rows = F.cross_entropy(a, labels, **settings), F.cross_entropy(b, labels.reshape(-1), **settings)
            assert ours.item() == pytest.approx(rows.item(), rel=1e-14)
            np.testing.assert_allclose(grad(ours, a)[0].reshape(10, 7), grad(rows, b)[0], atol=1e-15)


def test_the_axis_of_the_classes_decides_where_the_shapes_fit_two() -> None:
    x, labels = np.random.default_rng(0).standard_normal((2, 5, 5)), np.zeros((2, 5), dtype=int)
    assert F.cross_entropy(x, labels, axis=1).item() == F.cross_entropy(x.swapaxes(1, 2), labels, axis=-1).item()
    assert F.cross_entropy(x, labels, axis=1).item() != F.cross_entropy(x, labels, axis=-1).item()


@KERNELS
def test_ignored_samples_may_hold_anything_and_where_all_are_the_mean_is_nan_and_the_gradient_zero(kernel: str) -> None:
    for settings in ({}, {"label_smoothing": 0.1}, {"weight": [1.0, 2.0]}):
        x = Tensor(np.array([[1.0, 2.0], [np.nan, np.inf]]), requires_grad=True)
        with kernels.use(kernel), np.errstate(invalid="ignore"), naming(settings):
            F.cross_entropy(x, [1, -100], **settings).backward()
            np.testing.assert_array_equal(x.grad[1], 0)
            assert np.isfinite(x.grad[0]).all()
            x.grad = None
            loss = F.cross_entropy(x, [-100] * 2, **settings)
            loss.backward()
            assert math.isnan(loss.item())
            assert F.cross_entropy(x, [-100] * 2, reduction="sum", **settings).item() == 0
        np.testing.assert_array_equal(x.grad, 0)


def test_binary_cross_entropy_of_large_logits_neither_overflows_nor_cancels() -> None:
    x = Tensor(np.array([-800.0, 800.0, -40.0, 40.0]), requires_grad=True)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        losses = F.binary_cross_entropy_with_logits(x, [1.0, 0.0, 0.0, 1.0], reduction="none")
        losses.sum().backward()
    np.testing.assert_allclose(losses.numpy(), [800, 800, math.exp(-40), math.exp(-40)], rtol=1e-12)
    np.testing.assert_allclose(x.grad, [-1, 1, math.exp(-40), -math.exp(-40)], rtol=1e-12)


# ---- dropout ----


def test_dropout_keeps_the_mean_and_the_share_and_scales_the_gradient_alike() -> None:
    manual_seed(0)
    x = Tensor(np.ones(100_000), requires_grad=True)
    out = F.dropout(x, 0.3)
    out.sum().backward()
    kept = out.numpy() != 0
    assert kept.mean() == pytest.approx(0.7, abs=4 * math.sqrt(0.3 * 0.7 / 100_000))  # four standard deviations
    np.testing.assert_allclose(out.numpy()[kept], 1 / 0.7, rtol=1e-15)
    np.testing.assert_array_equal(x.grad, out.numpy())


# ---- what does not fit is refused, with what was given and what was expected ----

ZEROS, BCE = np.zeros, F.binary_cross_entropy_with_logits


MISTAKES: list[Mistake] = [
    (lambda: F.linear(ZEROS((2, 3)), ZEROS((4, 5))), ValueError, r"x has shape \(2, 3\).*the weight's 5 inputs"),
    (lambda: F.linear(ZEROS((2, 3)), ZEROS((3, 4))), ValueError, r"\(2, 3\).*the weight's 4 inputs.*weight\.T"),
    (lambda: F.linear(ZEROS((2, 6, 7)), ZEROS((5, 6))), ValueError, r"6 inputs.*x\.transpose\(-2, -1\)"),
    (lambda: F.batch_norm(ZEROS((1, 3)), None, None, training=True), ValueError, "more than one value per channel"),
    (
        lambda: F.batch_norm(ZEROS(3), None, None, training=True),
        ValueError,
        r"samples and channels.*x\.reshape\(1, -1\)",
    ),
    (lambda: F.batch_norm(ZEROS((4, 3)), None, None, ZEROS(2), training=True), ValueError, r"\(2,\), expected \(3,\)"),
    (lambda: F.layer_norm(ZEROS((2, 3)), ZEROS(4)), ValueError, r"\(2, 3\), which does not end with.*\(4,\)"),
    (lambda: F.embedding([0.5], ZEROS((3, 2))), TypeError, "indices must be integers, not float64"),
    (lambda: F.embedding(np.array([0, 3]), ZEROS((3, 2))), IndexError, r"0 <= i < 3, found 0 to 3"),
    (lambda: F.embedding([0, 1], ZEROS(3)), ValueError, r"embedding: weight \(n, d\) expected.*got shape \(3,\)"),
    (lambda: F.cross_entropy(ZEROS((2, 0)), [0, 1]), ValueError, r"no classes: axis 1 of the logits \(2, 0\) is empty"),
    (lambda: F.cross_entropy(ZEROS((2, 3)), [0, 3]), IndexError, r"0 <= label < 3 \(the classes\), found 0 to 3"),
    (lambda: F.cross_entropy(ZEROS((2, 3)), [0, 1], "sum"), TypeError, "third argument.*write reduction='sum'"),
    (lambda: F.cross_entropy(ZEROS((2, 3)), [[1, 0, 0], [0, 1, 0]]), ValueError, r"labels.argmax\(1\), or class prob"),
    (lambda: F.cross_entropy(ZEROS((2, 3)), [0, 1], ZEROS(2)), ValueError, r"weight must be \(3,\).*got \(2,\)"),
    (lambda: BCE(ZEROS(3), ZEROS((3, 1))), ValueError, r"logits have shape \(3,\), targets have shape \(3, 1\)"),
    (
        lambda: BCE(ZEROS((2, 3)), ZEROS((2, 3)), pos_weight=ZEROS(2)),
        ValueError,
        r"pos_weight of shape \(2,\) does not",
    ),
    (lambda: F.mse_loss(ZEROS(3), ZEROS(3), "max"), ValueError, "'mean', 'sum' or 'none', got 'max'"),
    (lambda: F.dropout(ZEROS(3), "0.5"), TypeError, "dropout: p must be a number from 0 to 1.*write 0.5"),
    (
        lambda: F.scaled_dot_product_attention(*map(ZEROS, [(2, 3), (2, 4), (2, 4)])),
        ValueError,
        r"got \(2, 3\), \(2, 4\)",
    ),
    # what would be a silent wrong number
    (lambda: F.pad(ZEROS((2, 3)), (1, 2, 3)), ValueError, r"two widths for each of the last axes of shape \(2, 3\)"),
    (lambda: F.pad(ZEROS((2, 3)), (-2, -2)), ValueError, "cuts off more than"),
    (lambda: F.pad(ZEROS((2, 3)), (1, 1), "reflect"), ValueError, "mode must be 'constant', got 'reflect'"),
    (lambda: F.div([7.0], 2.0, rounding_mode="round"), ValueError, "got 'round'"),
    (lambda: F.gelu([0.3], "tan"), ValueError, "did you mean 'tanh'"),
    (lambda: F.einsum(ZEROS((2, 3)), "ij->i"), TypeError, r"the equation comes first, .* got ndarray"),
    (lambda: F.conv1d(ZEROS((2, 3)), ZEROS((4, 2))), ValueError, r"got \(2, 3\) and \(4, 2\)"),
    (lambda: nn.Conv1d(2, 3, (4, 5)), TypeError, r"of a sequence must be a whole number, got \(4, 5\)"),
    (lambda: F.scaled_dot_product_attention(*[ZEROS((2, 3))] * 3, scale=0), ValueError, "scale 0"),
    (lambda: F.l1_loss(np.array([1], np.uint8), np.array([3], np.uint8)), TypeError, r"convert them with .float\(\)"),
    (lambda: F.dropout(np.full(10, 10), p=0.3), TypeError, "dropout: floating-point numbers expected, got int64"),
    (lambda: Tensor([1.0]).repeat(-1), ValueError, r"0 or more, got \(-1,\)"),
    (lambda: Tensor([1.0, 2.0]).reshape(-2, 1), ValueError, r"reshape to \(-2, 1\): lengths are 0 or more, or -1"),
]


def test_what_does_not_fit_is_refused() -> None:
    assert_refused(MISTAKES)


@KERNELS
def test_remainders_and_quotients_of_float32_are_numpys_near_whole_quotients_too(kernel: str) -> None:
    with kernels.use(kernel):
        random = np.random.default_rng(0)
        y = random.standard_normal(20_000).astype(np.float32)
        whole = random.integers(-(2**20), 2**20, y.size)
        x = (whole * y.astype(np.float64)).astype(np.float32)  # rounded: just above or below a multiple
        for near in (x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))):
            np.testing.assert_array_equal(F.floor_divide(near, y).numpy(), near // y)
            np.testing.assert_array_equal(F.remainder(near, y).numpy(), near % y)
        with np.errstate(all="ignore"):
            x = np.array([1e30, np.inf, 1, np.nan, 0, -1e-30, 3, -0.0], np.float32)
            y = np.array([0.1, 1, 0, 1, 0, 1, -3, 2], np.float32)
            np.testing.assert_array_equal(F.remainder(x, y).numpy(), x % y)
            np.testing.assert_array_equal(F.floor_divide(x, y).numpy(), x // y)


# ---- repeated, sorted and refused ----


def test_numbers_of_extreme_sizes_and_types_keep_their_digits_and_types() -> None:
    assert (Tensor(np.array([3, -2])) ** 39).tolist() == [3**39, -(2**39)]
    for dtype, exponent in itertools.product(("float16", "float32"), (2, np.int64(2), np.float64(0.5), np.float32(3))):
        assert (Tensor([1.0, 2.0]).to(dtype) ** exponent).dtype == dtype
    y = Tensor(np.float32([1e-25]), requires_grad=True)
    (np.float32([1e-30]) / y).sum().backward()  # y * y is 0 in float32
    assert y.grad.item() == pytest.approx(-1e20, rel=1e-6)
    x = Tensor(np.array([1.0, 4.0]), requires_grad=True)
    with np.errstate(divide="ignore"):
        F.sqrt(F.where(np.array([False, True]), x, 0.0)).sum().backward()  # the root's slope at 0 is infinite
    np.testing.assert_array_equal(x.grad, [0.0, 0.25])
    zero = Tensor(0.0, requires_grad=True)
    F.prod(zero, -1).backward()
    assert zero.grad == 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64"])
def test_einsum_of_integers_may_sum_over_an_axis_of_one_operand_before_the_product(dtype: str) -> None:
    a, b = np.array([[1, 0, 1], [1, 1, 0]]).astype(dtype), np.array([1, 0, 1, 1]).astype(dtype)
    np.testing.assert_array_equal(F.einsum("ij,k->jk", a, b).numpy(), np.outer([2, 1, 1], [1, 0, 1, 1]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_running_sums_and_products_of_a_single_number_have_the_type_of_those_of_a_vector(dtype: str) -> None:
    for running in (F.cumsum, F.cumprod):
        alone = running(np.array(1, dtype), 0)
        assert alone.shape == ()
        assert alone == 1
        assert alone.dtype == running(np.array([1], dtype), 0).dtype


def test_a_single_number_may_be_padded_by_no_widths() -> None:
    x = Tensor(0.7, requires_grad=True)
    out = F.pad(x, ())
    out.backward()
    assert out.shape == ()
    assert out == x
    assert x.grad == 1


def test_isclose_compares_with_an_integer_that_the_type_of_the_other_does_not_hold() -> None:
    x = Tensor(np.array([127, -128], np.int8))
    assert F.isclose(x, 300).tolist() == [False, False]
    assert F.isclose(x, 300, atol=200).tolist() == [True, False]
    assert F.isclose(300, x, atol=200).tolist() == [True, False]


def test_of_equal_numbers_the_first_is_taken_and_nan_is_the_largest() -> None:
    x = np.full(100, 5, np.float32)
    x[50] = math.nan
    assert Tensor(x).topk(3).indices.tolist() == [50, 0, 1]
    assert Tensor(np.full(100, math.nan)).topk(3).indices.tolist() == [0, 1, 2]
    x[:] = math.nan
    x[50] = 1
    assert Tensor(x).topk(3, largest=False).indices.tolist() == [50, 0, 1]
    brain = Tensor([3.0, 1.0, math.nan, 2.0, -5.0]).to("bfloat16")
    np.testing.assert_array_equal(brain.sort().values.float().numpy(), [-5, 1, 2, 3, math.nan])
