"""Compiled compressors send what those of numpy send, to the bit, and use the same random numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import kernels, random
from minidl.compress import (
    DGC,
    QSGD,
    ErrorFeedback,
    Half,
    Lossless,
    OneBit,
    RandomK,
    Sign,
    Signum,
    TernGrad,
    Threshold,
    TopK,
)
from minidl.compress.top_k import larger_than, largest
from minidl.kernels import counterparts
from tests.together import naming

COMPRESSORS = {
    "TopK": lambda: TopK(0.013),
    "TopK of half": lambda: TopK(0.5),
    "Threshold": lambda: Threshold(np.float64(0.1)),  # float32(0.1) is larger
    "RandomK": lambda: RandomK(0.1),
    "DGC": lambda: DGC(0.07, momentum=np.float64(0.7), warmup=()),
    "Sign": Sign,
    "OneBit": OneBit,
    "QSGD": lambda: QSGD(7),
    "QSGD of one bucket": lambda: QSGD(3, None),
    "QSGD of small buckets": lambda: QSGD(127, 11),
    "QSGD of 9 bits": lambda: QSGD(130),
    "TernGrad": TernGrad,
    "TernGrad with clip": lambda: TernGrad(clip=2.3),
    "Signum": Signum,
    "Half": Half,
    "Lossless": lambda: Lossless(QSGD(5)),
    "ErrorFeedback(TopK)": lambda: ErrorFeedback(TopK(0.03)),
    "ErrorFeedback(Sign)": lambda: ErrorFeedback(Sign()),
}
ODD = [0.0, -0.0, 0.1, 1.5, -1.5, 1e-40, -3e-39, 1e30]


def numbers(shape, dtype, odd):
    """Normal numbers, a third of them replaced by those in `odd`."""
    rng = np.random.default_rng(5)
    return np.where(rng.random(shape) < 0.3, rng.choice(odd, shape), rng.standard_normal(shape)).astype(dtype)


def coded(make, array, steps=2):
    """The bytes of the messages of some steps, of what they decode to, and a random number after them."""
    random.manual_seed(3)
    compressor, out = make(), []
    for _ in range(steps):
        message = compressor.encode(array)
        out += [message.data.tobytes(), compressor.decode(message).tobytes()]
    return [*out, random.generator().random()]


def test_messages_and_sums_have_the_bits_of_the_reference(monkeypatch):
    monkeypatch.setattr(counterparts, "LARGE", 1)
    arrays = {
        "a matrix beyond every threshold": numbers((271, 259), "float32", ODD),
        "a vector, NaN and infinity": numbers(70_003, "float32", [*ODD, np.nan, np.inf, -np.inf]),
        "float64, not contiguous": numbers((61, 94), "float64", ODD)[::-2, 1::3],
        "all equal": np.full(1234, -3.3, "float32"),
        "negative zeros": np.full((5, 3), -0.0, "float32"),
        "one element": np.array([0.7], "float32"),
        "float16": numbers(333, "float16", [0.0, 1.5]),
    }
    for (kind, array), (name, make) in [(a, c) for a in arrays.items() for c in COMPRESSORS.items()]:
        with naming(name, kind), np.errstate(all="ignore"):
            with kernels.use("numpy"):
                expected = coded(make, array)
            with kernels.use("numba"):
                assert coded(make, array) == expected


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(st.sampled_from([0.0, -1.1, 1.1, 2.3, np.inf, np.nan]), min_size=1, max_size=99))
def test_the_largest_entries_are_those_of_a_stable_sort(data, values):
    flat, k = np.array(values, "float32"), data.draw(st.integers(1, len(values)))
    flat[-1:].view(np.uint32)[:] |= np.uint32(data.draw(st.sampled_from([0, 0x7FF00000])))  # an unusual NaN, perhaps
    order = sorted(range(len(values)), key=lambda i: (not np.isnan(flat[i]), -abs(flat[i]), i))
    with pytest.MonkeyPatch.context() as patch:
        for size in (1, 10**9):  # with and without compiled code
            patch.setattr(counterparts, "LARGE", size)
            assert largest(flat, k).tolist() == sorted(order[:k])
            assert larger_than(flat, 1.1).tolist() == [i for i, x in enumerate(flat) if not abs(x) <= np.float32(1.1)]


def test_a_sample_that_is_unlike_the_whole_costs_time_but_no_entry(monkeypatch):
    monkeypatch.setattr(counterparts, "LARGE", 1)
    flat = np.random.default_rng(0).standard_normal(70_003).astype("float32")
    flat.reshape(-1)[np.arange(flat.size) % 4096 < 256] *= 100  # the sample is the large ones
    few = flat.size // 5
    assert largest(flat, few).tolist() == np.sort(np.argsort(-np.abs(flat), kind="stable")[:few]).tolist()


def test_compressing_takes_no_time_in_a_simulation():
    array = numbers(10_007, "float32", ODD)
    with kernels.use("numba"), kernels.counted() as work:
        for make in COMPRESSORS.values():
            coded(make, array, steps=1)
    assert (work.flops, work.nbytes) == (0, 0)
