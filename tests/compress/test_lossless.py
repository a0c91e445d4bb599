"""Huffman's code of a quantizer's symbols: exact, and within a bit a symbol of the entropy."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import cluster, random
from minidl.compress import QSGD, Lossless, OneBit, Sign, TernGrad, TopK, huffman
from minidl.compress.lossless import decode_elias, encode_elias
from tests.together import naming

fifty_examples = settings(max_examples=50)

QUANTIZERS = [QSGD(1, None), QSGD(7, 64), QSGD(127, 512), TernGrad(), OneBit(), Sign()]


def entropy(symbols: np.ndarray) -> float:
    frequencies = np.unique(symbols, return_counts=True)[1] / symbols.size
    return float(-(frequencies * np.log2(frequencies)).sum())


@fifty_examples
@given(st.lists(st.integers(0, 2**16 - 1)) | st.lists(st.integers(0, 3), max_size=300))
def test_any_sequence_comes_back(numbers):
    symbols = np.array(numbers, np.uint64)
    back = huffman.decode(huffman.encode(symbols, 16), 16, symbols.size)
    assert back.tolist() == numbers


@fifty_examples
@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=40))
def test_the_words_of_a_sequence_take_less_than_the_entropy_and_a_bit_a_symbol(counts):
    lengths = huffman.word_lengths(np.array(counts))
    n = sum(counts)
    entropy_bits = sum(count * math.log2(n / count) for count in counts)
    bits = int((lengths * counts).sum())
    assert entropy_bits * (1 - 1e-12) <= bits < entropy_bits + n
    assert (2.0**-lengths).sum() == 1  # Kraft: no bit of the code is wasted


def test_the_message_has_the_bytes_of_table_and_words():
    random.manual_seed(0)
    array = np.random.default_rng(0).normal(size=100_000)
    quantizer = QSGD(7, 512)
    _, symbols = quantizer.quantize(array)
    random.manual_seed(0)
    message = Lossless(quantizer).encode(array)
    random.manual_seed(0)
    different, counts = np.unique(symbols, return_counts=True)
    words = int((huffman.word_lengths(counts) * counts).sum())
    coded = math.ceil((4 + different.size * (4 + 6) + words) / 8)
    assert message.nbytes == 4 * math.ceil(array.size / 512) + 1 + coded
    assert words < array.size * (entropy(symbols) + 1)
    assert message.nbytes < 0.5 * quantizer.encode(array).nbytes


def test_what_is_decoded_is_what_the_quantizer_gives():
    codes = [(each, "huffman") for each in QUANTIZERS] + [(each, "elias") for each in (QSGD(7, 64), TernGrad())]
    for (quantizer, code), shape in product(codes, [(0,), (3, 0), (), (1,), (7,), (30, 40)]):
        with naming(quantizer, code, shape):
            array = np.random.default_rng(0).normal(size=shape).astype("float32")
            random.manual_seed(1)
            plain = quantizer.encode(array)
            random.manual_seed(1)
            coded = Lossless(quantizer, code).encode(array)
            np.testing.assert_array_equal(Lossless(quantizer, code).decode(coded), quantizer.decode(plain))
            assert coded.nbytes <= plain.nbytes + 1


def test_the_worst_sequence_for_huffman_has_its_longest_words():
    counts = [1, 1]
    while len(counts) < 22:
        counts.append(counts[-1] + counts[-2])  # Fibonacci's numbers
    symbols = np.repeat(np.arange(22), counts)
    assert huffman.word_lengths(np.array(counts)).max() == 21
    assert huffman.encode(np.full(10**6, 3), 4).nbytes == 2  # one symbol only: no bits but the table's, 4 + 4 + 6
    np.random.default_rng(0).shuffle(symbols)
    assert (huffman.decode(huffman.encode(symbols, 5), 5, symbols.size) == symbols).all()


@fifty_examples
@given(st.lists(st.integers(-(2**40), 2**40)) | st.lists(st.sampled_from([0, 0, 0, 0, 0, 1, -1]), max_size=400))
def test_any_levels_come_back_from_elias_code(numbers):
    levels = np.array(numbers, np.int64)
    data = encode_elias(levels)
    assert decode_elias(data, levels.size).tolist() == numbers
    places = [i for i, number in enumerate(numbers) if number]
    distances = np.diff(places, prepend=-1).tolist() if places else []
    words = [2 * (k.bit_length() - 1) + 1 for k in distances + [abs(numbers[i]) for i in places]]
    assert data.nbytes == math.ceil((sum(words) + len(places)) / 8)


def test_one_level_of_a_long_vector_takes_the_bits_of_qsgds_theorem_in_elias_code():
    n, s = 2**16, 1
    array = np.random.default_rng(0).normal(size=n)
    nonzero = s * (s + math.sqrt(n))
    theorem = (3 + 1.5 * math.log2(2 * (s**2 + n) / nonzero)) * nonzero + 32  # Theorem 3.2 without its o(1)
    random.manual_seed(0)
    bits = [8 * Lossless(QSGD(s, None), "elias").encode(array).nbytes for _ in range(10)]
    assert np.mean(bits) < theorem
    assert np.mean(bits) < 0.1 * 8 * Lossless(QSGD(s, None)).encode(array).nbytes  # Huffman's words have a bit at least


def reduce_on_a_node(comm, array):
    random.manual_seed(comm.rank)
    wait = Lossless(QSGD(2, 64)).begin_all_reduce(array, comm)
    random.manual_seed(comm.rank)
    plain = QSGD(2, 64).begin_all_reduce(array, comm)
    return wait(), plain()


def test_nodes_add_up_messages_of_unequal_length():
    run = cluster.launch(reduce_on_a_node, (np.random.default_rng(0).normal(size=(40, 20)),), 3, "simulation")
    for coded, plain in run.results:
        np.testing.assert_array_equal(coded, plain)
        np.testing.assert_array_equal(coded, run.results[0][0])


def test_what_is_no_quantizer_is_refused():
    with pytest.raises(TypeError, match="Lossless codes the symbols of a quantizer"):
        Lossless(TopK(0.1))
    with pytest.raises(ValueError, match=r"at most 65,536 different symbols, .* has 80,001: use fewer levels"):
        Lossless(QSGD(40_000))
    with pytest.raises(ValueError, match="Lossless: code must be 'huffman' or 'elias', got 'zip'"):
        Lossless(QSGD(1), "zip")
    with pytest.raises(ValueError, match=r"Elias' code leaves out zeros, but Sign\(\) has no zero"):
        Lossless(Sign(), "elias")
