"""The rate of one layer, which LARS and LAMB scale by |w| / |update|: where the update is tiny, it is huge."""

from __future__ import annotations

from ml_dtypes import finfo

from minidl.kernels import Array


def within_type(rate: float, update: Array) -> tuple[float, float]:
    """Return two factors whose product is `rate`: the first is a number of the update's type, the second 1 or more.

    A gradient of 1e-43 makes rates of 1e39, which float32 does not have; their product is a step of ordinary size.
    """
    largest = float(finfo(update.dtype).max)  # type: ignore[no-untyped-call]
    return (rate, 1.0) if rate <= largest else (largest, rate / largest)


def enlarged(update: Array, factor: float) -> Array:
    """The update times the factor, computed in float64."""
    return update if factor == 1 else (update.astype("float64") * factor).astype(update.dtype)
