"""Other types, copies and devices: `x.to(dtype)`, `x.float()`, `x.clone()`, `x.contiguous()`.

>>> from minidl import Tensor
>>> x = Tensor([1.0, 2.0], requires_grad=True)  # float32
>>> x.double().sum().backward()
>>> x.grad.dtype
dtype('float32')
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.functional.bind import operand, tensor_method
from minidl.kernels import array_module
from minidl.kernels.sixteen_bit import cast, is_floating_point
from minidl.tensor import Tensor, record


@tensor_method("astype")
def astype(a: Any, dtype: Any) -> Tensor:
    """a converted to another type; a itself if it has that type.

    Between floating-point types the gradient passes, and is converted back.

    >>> astype([1.7, -1.7], "int64")
    Tensor([ 1, -1], int64)
    """
    a = operand(a)
    x = a.data
    if x.dtype == (wanted := np.dtype(dtype)):
        return a
    if wanted.kind not in "iub" and not is_floating_point(wanted):
        raise TypeError(f"a Tensor holds real numbers, not {wanted}")
    out = cast(x, wanted)
    if not is_floating_point(wanted):
        return record(out, (), None)
    own = x.dtype
    return record(out, (a,), lambda g, needs: (cast(g, own),))


@tensor_method("to")
def to(a: Any, *target: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """a converted to another type: `x.to(np.float64)`, `x.to("float16")`, or `x.to(other)` for another tensor's type.

    A device is accepted if the tensor is already there ("cpu"); for the GPU see `minidl.kernels.use`.
    """
    a = operand(a)
    for each in target:
        if isinstance(each, Tensor):
            dtype = each.dtype
        elif isinstance(each, str) and each.partition(":")[0] in ("cpu", "cuda", "mps"):
            device = each
        else:
            dtype = each
    if device is not None and str(device).partition(":")[0] != a.device.partition(":")[0]:
        raise _elsewhere(str(device))
    return a if dtype is None else astype(a, dtype)


def _elsewhere(device: str) -> Exception:
    if device.startswith("cuda"):
        return RuntimeError(
            f"tensors are not moved to {device!r} one by one: call kernels.use('cupy') first, and all tensors made "
            "from then on lie on the GPU"
        )
    return RuntimeError(
        f"tensors are not moved to {device!r}: kernels.use('numpy') makes new tensors on the CPU, x.numpy() is a copy "
        "of the numbers there"
    )


@tensor_method("cuda")
def _cuda(a: Tensor, device: Any = None) -> Tensor:
    return to(a, device="cuda")


@tensor_method("cpu")
def cpu(a: Any) -> Tensor:
    """a itself. Errors: RuntimeError for a tensor on the GPU; the message says how to copy its numbers."""
    a = operand(a)
    return a if a.device == "cpu" else to(a, device="cpu")


for name, dtype in {
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "long": np.int64,
    "bool": np.bool_,
}.items():

    def convert(a: Tensor, dtype: Any = dtype) -> Tensor:
        return astype(a, dtype)

    convert.__name__, convert.__doc__ = name, f"The numbers as {np.dtype(dtype)}."
    tensor_method(name)(convert)


@tensor_method("clone")
def clone(a: Any) -> Tensor:
    """A copy with memory of its own; the gradient passes through."""
    a = operand(a)
    return record(a.data.copy(), (a,), lambda g, needs: (g,))


@tensor_method("contiguous")
def contiguous(a: Any) -> Tensor:
    """a itself if its memory is in the order of its axes, otherwise a copy whose memory is."""
    a = operand(a)
    if a.data.flags.c_contiguous:
        return a
    return record(array_module(a.data).ascontiguousarray(a.data), (a,), lambda g, needs: (g,))
