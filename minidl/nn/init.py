"""Initialisation: fill a tensor in place with numbers that are good to start training from.

A unit that sums n inputs of variance 1 has variance n Var(w). Var(w) = 1/n keeps the signal's size from layer to layer;
2/n compensates for the half that ReLU cuts off. Each call draws from its own generator, the next one that
`minidl.random.generator()` spawns. So `minidl.manual_seed` decides the numbers, equal under all kernels, and they do
not depend on the sizes of the tensors that were filled before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod, sqrt
from typing import Any

import numpy as np

from minidl import random
from minidl.arguments import one_of
from minidl.from_pytorch import explain_missing_names
from minidl.kernels import Array
from minidl.nn.placeholder import Placeholder, copied
from minidl.tensor import Tensor, as_array


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fill with uniformly distributed numbers from a to b; rounded to the tensor's type, they may be b."""
    return _fill(tensor, "random", b - a, a)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill with normally distributed numbers."""
    return _fill(tensor, "standard_normal", std, mean)


def constant_(tensor: Tensor, value: float) -> Tensor:
    """Fill with one number."""
    return _overwrite(tensor, partial(copied, as_array(value)))


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fill uniformly with standard deviation gain sqrt(2 / (fan_in + fan_out)).

    A compromise: fan_in alone would keep the signal's size in the forward pass, fan_out alone in the backward pass.

    References
        Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (AISTATS 2010).
    """
    bound = sqrt(3.0) * gain * sqrt(2.0 / max(sum(fans(tensor)), 1))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fill normally with standard deviation gain sqrt(2 / (fan_in + fan_out)); see `xavier_uniform_`."""
    return normal_(tensor, 0.0, gain * sqrt(2.0 / max(sum(fans(tensor)), 1)))


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Fill uniformly with standard deviation gain / sqrt(fan): layers followed by ReLU keep the signal's size.

    Parameters
        a               slope of leaky ReLU for x < 0
        mode            "fan_in" keeps the sizes of the forward pass, "fan_out" those of the backward pass
        nonlinearity    nonlinearity after the layer, as in `calculate_gain`

    References
        He et al., Delving Deep into Rectifiers (arXiv:1502.01852), section 2.2.
    """
    bound = sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Fill normally with standard deviation gain / sqrt(fan); see `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity))


def calculate_gain(nonlinearity: str, param: float = 0.01) -> float:
    """Return the factor on the weights that compensates for a nonlinearity's reduction of the signal.

    Parameters
        nonlinearity    "linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu" or "selu"
        param           slope of leaky_relu for x < 0

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    gains = {
        "linear": 1.0,
        "conv2d": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3.0,
        "relu": sqrt(2.0),
        "leaky_relu": sqrt(2.0 / (1.0 + param**2)),
        "selu": 3.0 / 4.0,
    }
    return gains[one_of("nonlinearity", nonlinearity, gains)]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return fan_in and fan_out of a weight (out, in, ...): the inputs per unit, and the units per input.

    Raises ValueError for a weight with fewer than two axes.
    """
    if tensor.ndim < 2:
        raise ValueError(f"fan_in and fan_out need a weight with at least 2 axes (out, in, ...), got {tensor.shape}")
    window = prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    one_of("mode", mode, ("fan_in", "fan_out"))
    fan_in, fan_out = fans(tensor)
    return calculate_gain(nonlinearity, a) / sqrt(max(fan_in if mode == "fan_in" else fan_out, 1))


def _fill(tensor: Tensor, distribution: str, scale: float, shift: float) -> Tensor:
    return _overwrite(tensor, partial(_draw, random.generator().spawn(1)[0], distribution, scale, shift))


def _overwrite(tensor: Tensor, write: Callable[[Array], object]) -> Tensor:
    """Fill the tensor's array with `write(array)`; a placeholder stores the call for later."""
    if isinstance(tensor, Placeholder):
        return tensor.overwrite(write)
    write(tensor.data)
    tensor.increment_version()
    return tensor


def _draw(generator: np.random.Generator, distribution: str, scale: float, shift: float, array: Array) -> None:
    """Write shift + scale draw() directly into numpy's memory, which halves the time for a large model.

    Repeated calls draw the same numbers, since copies of one placeholder may be filled separately.
    """
    bits: Any = generator.bit_generator
    generator = np.random.Generator(type(bits)(bits.seed_seq))
    values = array
    direct = isinstance(values, np.ndarray) and values.flags.c_contiguous and values.dtype in (np.float32, np.float64)
    if not direct:
        values = np.empty(array.shape, np.float32 if array.dtype == np.float32 else np.float64)
    getattr(generator, distribution)(out=values, dtype=values.dtype)
    values *= scale
    values += shift
    if not direct:
        array[...] = as_array(values)


explain_missing_names(__name__, [name for name in globals() if name.endswith("_") and not name.startswith("_")])
