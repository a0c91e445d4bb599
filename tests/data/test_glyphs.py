"""The drawn letters."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from minidl.data import DataError, glyphs
from tests.together import naming

module = importlib.import_module("minidl.data.glyphs")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path))
    return tmp_path


def test_glyphs_are_images_of_26_equally_frequent_letters() -> None:
    splits = glyphs(n_train=261, n_test=52)
    train, test = splits
    assert (train.x.shape, train.x.dtype, train.y.dtype) == ((261, 1, 28, 28), np.float32, np.int64)
    assert np.bincount(train.y).tolist() == [11] + [10] * 25
    assert np.bincount(test.y).tolist() == [2] * 26
    assert not set(module.TRAIN_FONTS) & set(module.TEST_FONTS)
    assert "".join(splits.classes) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    np.testing.assert_allclose(train.x.mean(axis=0), 0, atol=1e-6)
    assert splits.mean is not None
    pixels = test.x + splits.mean
    assert pixels.min() >= -1e-6
    assert 0.5 < pixels.max() <= 1 + 1e-6
    assert 0.05 < pixels.mean() < 0.3  # ink on paper


def test_the_seed_fixes_the_images_and_no_two_are_alike() -> None:
    first, again, other = (glyphs(40, 26, seed=seed).train.x for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first.reshape(40, -1), axis=0)) == 40


def test_a_cached_set_is_the_drawn_one_and_a_damaged_cache_is_drawn_again(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = glyphs(30, 26)
    [path] = own_cache.glob("*.npz")
    assert path.name.startswith(f"glyphs-v{module.VERSION}-30-26-seed0-")
    with monkeypatch.context() as without_drawing:
        without_drawing.setattr(module, "_draw", None)
        np.testing.assert_array_equal(glyphs(30, 26).train.x, drawn.train.x)
    whole = path.read_bytes()
    for damaged in (whole[:-10], b"", whole[:500] + bytes([whole[500] ^ 1]) + whole[501:]):
        path.write_bytes(damaged)
        np.testing.assert_array_equal(glyphs(30, 26).train.x, drawn.train.x)
        assert path.read_bytes() == whole


def test_an_unseen_font_is_recognisable_but_not_given_away() -> None:
    train, test = glyphs(n_train=520, n_test=104)
    distance = ((test.x.reshape(104, 1, -1) - train.x.reshape(1, 520, -1)) ** 2).sum(-1)
    accuracy = (train.y[distance.argmin(axis=1)] == test.y).mean()
    assert 0.25 < accuracy < 0.95  # by the nearest of 520 training images; guessing gives 0.04


def test_a_missing_font_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEST_FONTS", ("NoSuchFont",))
    with pytest.raises(DataError, match=r"cannot read matplotlib's font .*NoSuchFont\.ttf .*install matplotlib again"):
        glyphs(26, 26)


def test_impossible_numbers_are_refused() -> None:
    for options in [{"n_train": 0}, {"n_test": -5}, {"seed": -1}]:
        with naming(options), pytest.raises(ValueError, match=f"{next(iter(options))} must be at least"):
            glyphs(**options)
