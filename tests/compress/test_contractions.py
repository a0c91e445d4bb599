"""The bounds that compressors state for their errors hold, and error feedback wraps contractions only."""

import copy
from itertools import product

import numpy as np
import pytest

from minidl import optim, parallel, random
from minidl.compress import (
    QSGD,
    Compressor,
    ErrorFeedback,
    Half,
    Lossless,
    Message,
    OneBit,
    PowerSGD,
    QuantizedAllReduce,
    RandomK,
    Sign,
    TernGrad,
    Threshold,
    TopK,
)
from tests.parallel.jobs import small_job
from tests.together import naming


def arrays(size: int) -> dict[str, np.ndarray]:
    """Hard cases of that size: even, a peak, a peak over what is worst for TernGrad, noise."""
    rng = np.random.default_rng(size)
    peak, over = np.zeros(size), np.ones(size)
    peak[size // 2], over[size // 2] = 1, 1 + size**0.5
    return {"even": np.ones(size), "peak": peak, "over": over, "noise": rng.normal(size=size)}


def draws(compressor: Compressor, x: np.ndarray, repeats: int) -> np.ndarray:
    random.manual_seed(7)
    return np.array([compressor.decode(compressor.encode(x)) for _ in range(repeats)])


BOUNDED = [
    TopK(0.3),
    RandomK(0.3),
    RandomK(0.3, seed=None),
    RandomK(0.6, unbiased=True),
    Sign(),
    OneBit(),
    QSGD(1, None),
    QSGD(4, None),
    QSGD(3, 5),
    TernGrad(),
    Half("bf16"),
]


def test_the_expected_squared_error_is_within_the_stated_bound():
    for compressor, size in product(BOUNDED, (1, 9, 40)):
        with naming(compressor, size):
            for x in arrays(size).values():
                ratios = ((draws(compressor, x, 100) - x) ** 2).sum(axis=1) / (x**2).sum()
                error = ratios.std() / len(ratios) ** 0.5
                assert ratios.mean() <= compressor.squared_error(size) + 5 * error + 1e-9


def test_the_variance_of_qsgd_attains_d_over_4_s_squared():
    """Every number is half-way between two levels; d / s^2 would be four times too much."""
    d, levels = 16, 66  # of equal numbers, each is 66 / 4 = 16.5 levels
    x = np.ones(d)
    ratio = ((draws(QSGD(levels, None), x, 100) - x) ** 2).sum(axis=1).mean() / (x**2).sum()
    assert QSGD(levels, None).squared_error(d) == d / (4 * levels**2)
    assert ratio == pytest.approx(d / (4 * levels**2), rel=1e-6)


def test_the_worst_case_of_terngrad_attains_its_bound():
    x = arrays(100)["over"]
    ratio = ((draws(TernGrad(), x, 500) - x) ** 2).sum(axis=1).mean() / (x**2).sum()
    assert ratio == pytest.approx(TernGrad().squared_error(100), rel=0.05)


REFUSED = {
    "QSGD(7)": "levels=23, bucket=512",  # of the least integer from the root of 512: a bound of 1/4
    "QSGD(11)": "levels=23, bucket=512",
    "QuantizedAllReduce(QSGD(7))": "levels=23, bucket=512",
    "Lossless(QSGD(2, 100))": "levels=10, bucket=100",
    "RandomK(0.5, unbiased=True)": "unbiased=False",
    "TernGrad()": "use it by itself",
    "TernGrad(clip=2.5)": "use it by itself, if it is right on average",
    "Lossless(TernGrad())": "use it by itself",
    "QuantizedAllReduce(TernGrad())": "use it by itself",
}


def test_what_is_no_contraction_is_refused_with_what_is_one():
    for text in REFUSED:
        with naming(text):
            with pytest.raises(ValueError, match="the residual would grow without bound") as error:
                ErrorFeedback(eval(text))
            assert REFUSED[text] in str(error.value)
            recommended = str(error.value).partition(": use ErrorFeedback(")[2]
            if recommended:
                assert eval("ErrorFeedback(" + recommended).squared_error() < 1


def test_contractions_are_accepted_and_without_a_bucket_the_size_of_the_parameter_decides():
    for accepted in (QSGD(12), QSGD(3, 16), QSGD(1, None), RandomK(0.51, unbiased=True), Half(), Lossless(QSGD(12))):
        ErrorFeedback(accepted)
    compressor = ErrorFeedback(QSGD(4, None))
    compressor.check((63,), "float32")  # 63 / (4 * 16)
    with pytest.raises(ValueError, match=r"may be 1 \|x\|\^2 for 64 numbers.*levels=8, bucket=None"):
        compressor.check((8, 8), "float32")
    with pytest.raises(ValueError, match="for 64 numbers"):
        compressor.encode(np.ones(64))


def test_a_parameter_that_is_too_large_is_named_before_the_run():
    strategy = parallel.Synchronous(compressor=ErrorFeedback(QSGD(3, None)))
    with pytest.raises(ValueError, match=r"does not fit the parameter 0\.weight: ErrorFeedback: the residual"):
        parallel.train(small_job(optimizer=lambda p: optim.SGD(p, lr=0.1)), strategy, 2, on="simulation")


def test_a_compressor_of_ones_own_that_states_no_bound_is_accepted():
    class Halved(Compressor):
        def encode(self, array):
            return Message((array / 2).view(np.uint8).reshape(-1), array.shape, array.dtype)

        def decode(self, message):
            return message.data.copy().view(message.dtype).reshape(message.shape)

    compressor = ErrorFeedback(Halved())
    compressor.encode(np.ones(3))
    np.testing.assert_array_equal(compressor.residual, 0.5)


LENGTHS = [*BOUNDED, Half("fp16"), PowerSGD(2), QuantizedAllReduce(Sign()), ErrorFeedback(TopK(0.2))]


def test_the_length_of_a_message_is_known_from_the_shape_unless_it_depends_on_the_values():
    for compressor, shape in product(LENGTHS, [(), (0,), (7,), (9, 12), (3, 4, 5)]):
        with naming(compressor, shape):
            x = np.asarray(np.random.default_rng(0).normal(size=shape)).astype("float32")
            assert compressor.message_bytes(shape, x.dtype) == copy.deepcopy(compressor).encode(x).nbytes
    for compressor in (Threshold(1.0), Lossless(QSGD(3))):
        assert compressor.message_bytes((3, 4), "float32") is None
