"""How many windows fit an image: what convolution and pooling have in common."""

from __future__ import annotations

Pair = tuple[int, int]  # vertical, horizontal


def output_size(shape: tuple[int, ...], window: Pair, stride: Pair, padding: Pair) -> Pair:
    """Height and width of the result, for an image (n, c, h, w) of this shape.

    >>> output_size((1, 1, 28, 28), window=(5, 5), stride=(1, 1), padding=(2, 2))
    (28, 28)
    """
    return (
        (shape[2] + 2 * padding[0] - window[0]) // stride[0] + 1,
        (shape[3] + 2 * padding[1] - window[1]) // stride[1] + 1,
    )
