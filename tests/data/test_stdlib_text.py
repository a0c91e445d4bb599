"""The library's source as text."""

import pickle
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from minidl.data import DataError, DataLoader, Windows, decode, encode, stdlib_text, unigram_entropy
from tests.together import naming


def test_the_targets_are_the_tokens_one_symbol_later() -> None:
    for part in stdlib_text(block_size=16, n_chars=20_000):
        x, y = part[:]
        assert x.dtype == y.dtype == np.int64
        assert x.shape == y.shape == (len(part), 16)
        np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
        np.testing.assert_array_equal(x[1:, 0], y[:-1, -1])  # the next window starts where this one's targets end


def test_stride_one_gives_every_overlapping_window_without_copying_the_text() -> None:
    train, _ = stdlib_text(block_size=64, n_chars=100_000, stride=1)
    assert isinstance(train, Windows)
    assert len(train) == 90_000 - 64
    assert np.shares_memory(train.x, train.tokens)
    assert np.shares_memory(train.y, train.tokens)
    x, _ = next(iter(DataLoader(train, 16, shuffle=True)))
    assert x.shape == (16, 64)
    assert not np.shares_memory(x, train.tokens)
    pickled = pickle.dumps(train)
    assert len(pickled) < 1.1 * train.tokens.nbytes
    restored = pickle.loads(pickled)
    assert repr(restored) == repr(train)
    np.testing.assert_array_equal(restored.y[77], train.y[77])
    for i in (0, 12_345, len(train) - 1):
        np.testing.assert_array_equal(train[i][0], train.tokens[i : i + 64])
        np.testing.assert_array_equal(train[i][1], train.tokens[i + 1 : i + 65])


def test_the_text_is_the_same_each_time_and_a_shorter_one_is_its_beginning() -> None:
    long, short = stdlib_text(n_chars=60_000), stdlib_text(n_chars=30_000)
    np.testing.assert_array_equal(long.train.tokens, stdlib_text(n_chars=60_000).train.tokens)
    np.testing.assert_array_equal(long.train.tokens[: len(short.train.tokens)], short.train.tokens)
    np.testing.assert_array_equal(long.test.tokens[: len(short.test.tokens)], short.test.tokens)
    assert (len(long.train.tokens), len(long.test.tokens)) == (54_000, 6_000)


def test_the_default_is_half_a_million_characters_of_readable_python() -> None:
    splits = stdlib_text()
    assert len(splits.train.tokens) + len(splits.test.tokens) == 500_000
    assert len(splits.classes) == 96
    assert "\n    def " in decode(splits.train.tokens[:20_000])
    # A test file's text is nowhere in the training text.
    assert decode(splits.test.tokens[:2_000]) not in decode(splits.train.tokens)


def test_encode_drops_what_decode_cannot_give_back() -> None:
    printable = "".join(map(chr, range(32, 127))) + "\n"
    assert decode(encode(printable)) == printable
    assert decode(encode("na\u00efve\t\r\n\x00\u20ac!")) == "nave\n!"
    assert encode("").shape == (0,)
    assert decode([]) == ""
    with pytest.raises(ValueError, match=r"tokens lie in 0\.\.95, not -1\.\.96"):
        decode([96, -1])


def test_the_unigram_entropy_is_that_of_the_frequencies() -> None:
    assert unigram_entropy(np.array([7, 7, 7])) == 0
    assert unigram_entropy(np.arange(96)) == pytest.approx(np.log(96))
    assert unigram_entropy(np.array([0, 0, 0, 5])) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert 2.8 < unigram_entropy(stdlib_text().test.tokens) < 3.6


def test_a_library_without_enough_source_is_one_clear_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"found [\d,]+ in .*: ask for fewer with n_chars"):
        stdlib_text(n_chars=10**9)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(DataError, match="needs 50,000 characters of Python source for one of its sets but found 0 in"):
        stdlib_text()


def test_impossible_numbers_are_refused() -> None:
    for options, message in [
        ({"block_size": 0}, "block_size must be at least 1"),
        ({"n_chars": 0}, "n_chars must be at least 10"),
        ({"stride": 0}, "stride must be at least 1"),
        ({"n_chars": 600}, "has 60 symbols, but one window of block_size=64 with its targets takes 65"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            stdlib_text(**options)
