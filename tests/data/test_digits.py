"""The shipped digits: what they are, and that a damaged file is noticed."""

import hashlib
import importlib
from pathlib import Path

import numpy as np
import pytest

from minidl.data import DataError, digits

module = importlib.import_module("minidl.data.digits")


def test_the_digits_are_the_1797_scans_in_a_fixed_split() -> None:
    train, test = digits()
    assert (train.x.shape, train.x.dtype) == ((1437, 1, 8, 8), np.float32)
    assert (test.x.shape, test.x.dtype) == ((360, 1, 8, 8), np.float32)
    assert train.y.dtype == test.y.dtype == np.int64
    # The class counts that the data's documentation gives for its test part.
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (np.bincount(train.y) + np.bincount(test.y)).tolist() == counts
    assert np.abs(np.bincount(test.y) - np.array(counts) * 360 / 1797).max() < 1
    # Numbers printed elsewhere rest on this very split: a change of it must be noticed.
    assert hashlib.sha256(test.y.astype("<i8").tobytes()).hexdigest()[:16] == "723b354289d5bac3"


def test_pixels_are_sixteenths_with_the_mean_of_the_training_set_removed() -> None:
    splits = digits()
    assert splits.mean is not None
    np.testing.assert_allclose(splits.train.x.mean(axis=0), 0, atol=1e-6)
    for part in splits:
        sixteenths = (part.x + splits.mean) * 16
        np.testing.assert_allclose(sixteenths, np.rint(sixteenths), atol=1e-5)
        assert (np.rint(sixteenths.min()), np.rint(sixteenths.max())) == (0, 16)


def test_train_and_test_together_are_the_rows_of_the_shipped_file() -> None:
    splits = digits()
    restored = [
        np.column_stack([np.rint((part.x + splits.mean) * 16).reshape(len(part), 64), part.y]).astype(np.uint8)
        for part in splits
    ]
    rows = module._read_rows()
    assert sorted(map(bytes, np.concatenate(restored))) == sorted(map(bytes, rows))
    assert rows[0, :16].tolist() == [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]  # the upper end of a zero
    assert rows[0, 64] == 0


@pytest.mark.parametrize("name", ["IMAGES", "TEST_ROWS"])
def test_a_missing_or_damaged_file_is_one_clear_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped: Path = getattr(module, name)
    monkeypatch.setattr(module, name, tmp_path / shipped.name)
    with pytest.raises(DataError, match=rf"cannot read the digits in .*{shipped.name} .*install minidl again"):
        digits()
    damaged = bytearray(shipped.read_bytes())
    damaged[1000] ^= 1
    (tmp_path / shipped.name).write_bytes(damaged)
    with pytest.raises(DataError, match=rf"digits in .*{shipped.name} are damaged"):
        digits()
