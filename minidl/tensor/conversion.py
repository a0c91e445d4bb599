"""What a Tensor can be made of: arrays, numbers and nested lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import kernels
from minidl.kernels import Array
from minidl.kernels.shapes import Hollow
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tape import Node


def as_array(value: Any) -> Array:
    """The array behind `value`, on the GPU with the cupy kernels; numbers and lists become float32.

    Errors: TypeError for values that are not real numbers, ValueError for lists of different lengths.
    """
    if isinstance(value, Node):
        return value._data
    if hasattr(value, "recorder"):  # while `compiler.trace` runs
        return value
    module = kernels.new_array_module()
    if type(value) in (np.ndarray, Hollow) and module is np:
        array = value
    elif isinstance(value, np.ndarray):  # of a subclass, which may refuse: `nn.placeholder.Absent` has no values
        array = module.asarray(value.view(np.ndarray))
    elif hasattr(value, "dtype"):  # a GPU's array or a numpy scalar
        array = module.asarray(value)
    else:
        array = module.asarray(_from_lists(value))
        if array.dtype.kind in "fiu":
            array = array.astype(np.float32)
    if array.dtype.kind not in "iub" and not is_floating_point(array.dtype):
        raise TypeError(
            f"a Tensor holds numbers, not {array.dtype} (from {type(value).__name__}): pass a number, nested lists of "
            "numbers or an array of numbers"
        )
    return array


def _from_lists(value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            f"a Tensor needs nested lists of equal lengths, and those of {_shortened(value)} differ: pad the shorter "
            "ones"
        ) from error


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
