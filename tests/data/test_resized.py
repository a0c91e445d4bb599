"""Images at another size: means of the pixels that a new pixel covers."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import data


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 11, (2, 7)])
def test_a_new_pixel_is_the_mean_of_the_pixels_that_it_covers(size: int | tuple[int, int]) -> None:
    whole = data.digits()
    made = data.resized(whole, size)
    height, width = size if isinstance(size, tuple) else (size, size)
    assert made.train.x.shape == (1437, 1, height, width)
    for part, old in ((made.train, whole.train), (made.test, whole.test)):
        assert part.x.dtype == np.float32
        for i in range(height):
            for j in range(width):
                rows, columns = (slice(k * 8 // n, -(-(k + 1) * 8 // n)) for k, n in ((i, height), (j, width)))
                expected = old.x[:, :, rows, columns].mean(axis=(2, 3), dtype=np.float64)
                np.testing.assert_allclose(part.x[:, :, i, j], expected, atol=1e-6)
        assert part.y is old.y
        assert (part.name, part.classes) == (old.name, old.classes)


def test_resized_images_are_prepared_with_the_mean_of_their_size() -> None:
    whole = data.digits()
    small = data.resized(whole, 3)
    assert whole.mean is not None
    pixels = data.resized(data.Splits(data.Dataset(whole.test.x + whole.mean, whole.test.y), whole.test), 3).train.x
    np.testing.assert_allclose(small.prepared(pixels), small.test.x, atol=1e-6)


def test_samples_that_are_no_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x is images \(n, c, h, w\)"):
        data.resized(data.spirals(n=50), 4)
