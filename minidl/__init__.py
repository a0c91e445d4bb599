"""minidl: parallel deep learning from scratch.

The learning side: `tensor` (the autograd engine), `functional` (differentiable operations), `nn` (layers and models),
`optim` (update rules and schedules), `data`, `amp` (activations in 16 bits); below it `kernels`, the arithmetic on
arrays. The cluster side: `cluster`, nodes that talk, and `compress`, smaller gradients. On both: `parallel`, training
on many nodes.

>>> from minidl import Tensor
>>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x**2).sum().backward()
>>> x.grad
array([2., 4., 6.], dtype=float32)
"""

from typing import NoReturn

from minidl.instruction_set import use_avx512

use_avx512()  # before anything loads numpy

from minidl import functional, kernels, nn  # noqa: E402
from minidl.creation import (  # noqa: E402
    arange,
    eye,
    full,
    ones,
    ones_like,
    rand,
    randint,
    randn,
    randn_like,
    zeros,
    zeros_like,
)
from minidl.functional.operation import operation  # noqa: E402
from minidl.gradcheck import gradcheck  # noqa: E402
from minidl.random import manual_seed  # noqa: E402
from minidl.tape import enable_grad, is_grad_enabled, no_grad  # noqa: E402
from minidl.tensor import Tensor, grad  # noqa: E402

__all__ = [
    "Tensor",
    "arange",
    "enable_grad",
    "eye",
    "full",
    "functional",
    "grad",
    "gradcheck",
    "is_grad_enabled",
    "kernels",
    "manual_seed",
    "nn",
    "no_grad",
    "ones",
    "ones_like",
    "operation",
    "rand",
    "randint",
    "randn",
    "randn_like",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> NoReturn:
    """`minidl.cat`, as `torch.cat`: say where it is."""
    if name in functional.__all__:
        raise AttributeError(f"module 'minidl' has no {name!r}: type functional.{name}", name=name)
    raise AttributeError(f"module 'minidl' has no attribute {name!r}", name=name)
