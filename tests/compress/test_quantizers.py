"""What all quantizers have in common: bytes, shapes, edge cases."""

import math
from itertools import product

import numpy as np
import pytest

from minidl import random
from minidl.compress import QSGD, Lossless, OneBit, Sign, TernGrad
from minidl.compress.quantizer import pack_bits, unpack_bits
from tests.together import naming

QUANTIZERS = [
    Sign(),
    OneBit(),
    TernGrad(),
    TernGrad(clip=2.0),
    QSGD(1, None),
    QSGD(3, 4),
    QSGD(127, 512),
    QSGD(1000, 7),
]
SHAPES = [(0,), (3, 0), (), (1,), (5,), (4, 3), (2, 3, 5), (1, 6)]


def test_what_comes_back_has_the_shape_and_the_dtype():
    random.manual_seed(0)
    cases = [(shape, "float32") for shape in SHAPES] + [((4, 3), "float16"), ((4, 3), "float64")]
    for quantizer, (shape, dtype) in product(QUANTIZERS, cases):
        with naming(quantizer, shape, dtype):
            array = np.random.default_rng(0).normal(size=shape).astype(dtype)
            message = quantizer.encode(array)
            back = quantizer.decode(message)
            assert message.data.dtype == np.uint8
            assert message.data.ndim == 1
            assert (back.shape, back.dtype) == (array.shape, array.dtype)
            assert back.flags.writeable
            assert np.isfinite(back).all()
            assert not quantizer.decode(quantizer.encode(np.zeros(shape, dtype))).any()


def test_the_layout_in_memory_does_not_matter():
    for quantizer in QUANTIZERS:
        with naming(quantizer):
            array = np.random.default_rng(1).normal(size=(6, 4)).astype("float32")
            for view in (array.T, array[::-2, ::2]):
                random.manual_seed(5)
                message = quantizer.encode(view)
                random.manual_seed(5)
                assert (message.data == quantizer.encode(np.ascontiguousarray(view)).data).all()


def test_what_is_not_finite_is_not_hidden():
    for bad, quantizer in product([np.nan, np.inf], QUANTIZERS):
        with naming(bad, quantizer):
            array = np.ones(4, "float32")
            array[2] = bad
            assert not np.isfinite(quantizer.decode(quantizer.encode(array))).all()


def test_a_bucket_that_is_not_finite_leaves_the_others_as_they_are():
    array = np.array([0.0, 2.0, np.nan, 1.0, 3.0, 0.0])
    back = QSGD(1, bucket=2).decode(QSGD(1, bucket=2).encode(array))
    np.testing.assert_array_equal(back, [0, 2, np.nan, np.nan, 3, 0])


def test_messages_have_the_bytes_of_the_formulas():
    for n in (0, 1, 5, 8, 9, 512, 1025):
        with naming(n):
            array = np.ones(n, "float32")
            assert Sign().encode(array).nbytes == 4 + math.ceil(n / 8)
            assert OneBit().encode(array).nbytes == 8 + math.ceil(n / 8)
            assert TernGrad().encode(array).nbytes == 4 + math.ceil(n / 5)
            for levels in (1, 2, 3, 4, 7, 8, 15, 127, 128):
                bits = math.ceil(math.log2(2 * levels + 1))
                assert QSGD(levels, 512).encode(array).nbytes == 4 * math.ceil(n / 512) + math.ceil(bits * n / 8)
                assert QSGD(levels, None).encode(array).nbytes == 4 * min(n, 1) + math.ceil(bits * n / 8)


def test_one_bit_sends_two_means_a_column():
    assert OneBit().encode(np.ones((100, 30))).nbytes == 2 * 30 * 4 + 100 * 30 // 8
    assert OneBit().encode(np.ones((8, 5, 3, 3))).nbytes == 2 * 45 * 4 + 45


def test_bits_are_packed_without_gaps_and_come_back():
    for bits in [1, 2, 3, 4, 5, 8, 13, 32]:
        with naming(bits):
            numbers = np.random.default_rng(bits).integers(0, 2**bits, size=101, dtype=np.uint64)
            packed = pack_bits(numbers, bits)
            assert packed.nbytes == math.ceil(101 * bits / 8)
            assert (unpack_bits(packed, bits, 101) == numbers).all()


def test_sign_keeps_signs_and_the_sum_of_magnitudes():
    array = np.random.default_rng(0).normal(size=1000)
    back = Sign().decode(Sign().encode(array))
    assert (np.sign(back) == np.sign(array)).all()
    assert np.abs(back).sum() == pytest.approx(np.abs(array).sum(), rel=1e-6)


def test_one_bit_keeps_the_sums_of_columns_and_no_pair_of_values_is_nearer():
    array = np.random.default_rng(0).normal(size=(50, 7))
    back = OneBit().decode(OneBit().encode(array))
    np.testing.assert_allclose(back.sum(axis=0), array.sum(axis=0), atol=1e-5)
    assert all(len(np.unique(column)) == 2 for column in back.T)
    error = ((back - array) ** 2).sum()
    for shift in (-0.01, 0.01):
        assert ((back + shift * (array < 0) - array) ** 2).sum() > error
        assert ((back + shift * (array >= 0) - array) ** 2).sum() > error


def moments(quantizer, array, draws):
    """The mean of what comes back and its standard deviation over draws; the mean squared error; the mean of nnz."""
    random.manual_seed(3)
    backs = np.array([quantizer.decode(quantizer.encode(array)) for _ in range(draws)])
    return backs.mean(axis=0), backs.std(axis=0), ((backs - array) ** 2).sum(axis=1).mean(), (backs != 0).sum(1).mean()


def test_random_rounding_is_right_on_average():
    for quantizer in (QSGD(4, 100), TernGrad()):
        with naming(quantizer):
            array = np.random.default_rng(2).normal(size=257)
            draws = 1000
            mean, deviation, *_ = moments(quantizer, array, draws)
            z = np.abs(mean - array)[deviation > 0] / (deviation[deviation > 0] / draws**0.5)
            assert z.max() < 5  # the greatest of 257: 4 sigma for one of them
            assert (z > 4).sum() <= 1
            assert abs((mean - array).sum()) < 4 * (deviation**2).sum() ** 0.5 / draws**0.5


def test_error_and_sparsity_of_qsgd_are_within_the_bounds_of_the_paper():
    for levels in (1, 32):
        with naming(levels):
            n = 1024
            array = np.random.default_rng(0).normal(size=n)
            _, _, error, nonzero = moments(QSGD(levels, None), array, 100)
            norm2 = (array**2).sum()
            assert error < min(n / levels**2, n**0.5 / levels) * norm2
            assert nonzero < levels * (levels + n**0.5)
            fraction = np.abs(array) / norm2**0.5 * levels % 1  # each number's variance is f (1 - f) steps squared
            assert error == pytest.approx((fraction * (1 - fraction)).sum() / levels**2 * norm2, rel=0.05)
            if levels == 1:
                assert error == pytest.approx((np.abs(array).sum() / norm2**0.5 - 1) * norm2, rel=0.05)
                assert nonzero == pytest.approx(np.abs(array).sum() / norm2**0.5, rel=0.05)


def test_error_and_sparsity_of_terngrad_are_what_its_formulas_say():
    array = np.random.default_rng(0).normal(size=1024)
    _, _, error, nonzero = moments(TernGrad(), array, 400)
    one, infinity = np.abs(array).sum(), np.abs(array).max()
    assert nonzero == pytest.approx(one / infinity, rel=0.03)
    assert error == pytest.approx(one * infinity - (array**2).sum(), rel=0.03)
    assert moments(TernGrad(clip=1.5), array, 50)[2] < 0.7 * error


def test_five_ternary_numbers_share_a_byte():
    array = np.array([1.0, -1.0, 0.0, 1.0, -1.0, -1.0, 1.0])
    message = TernGrad().encode(array)
    assert message.nbytes == 4 + 2
    assert (TernGrad().decode(message) == array).all()


def test_what_does_not_fit_is_said_in_a_sentence():
    for call, sentence in [
        (lambda: QSGD(0), "QSGD: levels must be from 1 to 2147483647, got 0"),
        (lambda: QSGD(2**31), "QSGD: levels must be from 1 to 2147483647, got 2147483648"),
        (lambda: QSGD(1.5), "QSGD: levels must be a whole number from 1 to 2147483647, got 1.5"),
        (lambda: QSGD(4, 0), "QSGD: bucket must be at least 1, got 0: None takes the whole array"),
        (lambda: TernGrad(clip=0.0), "TernGrad: clip must be above 0, got 0.0: None switches clipping"),
        (lambda: TernGrad(clip=float("nan")), "TernGrad: clip must be .*, got nan"),
        (lambda: QSGD(4).encode(np.arange(3)), "QSGD compresses floating-point numbers, not int64"),
        (lambda: Lossless(QSGD(4)).encode(np.arange(3)), "QSGD compresses floating-point numbers, not int64"),
    ]:
        with naming(sentence), pytest.raises((ValueError, TypeError), match=sentence):
            call()


def test_clipping_terngrad_lets_equal_numbers_through():
    for n in (1, 5):
        array = np.full(n, -3.0)
        np.testing.assert_array_equal(TernGrad(clip=2.5).decode(TernGrad(clip=2.5).encode(array)), array)


def test_the_error_of_qsgd_keeps_its_bound_for_tiny_numbers():
    for magnitude in [1e-44, 1e-40, 1e-38, 1e-30]:
        with naming(magnitude):
            random.manual_seed(0)
            compressor, array = QSGD(23), np.full(100, magnitude, np.float32).astype(np.float64)
            error = compressor.decode(compressor.encode(array)) - array
            ratio = np.sqrt((error**2).sum() / (array**2).sum())
            assert ratio < 0.25  # the bound: sqrt(100 / (4 23^2)) = 0.22 on average
