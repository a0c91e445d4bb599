"""minidl: parallel deep learning from scratch.

The learning side: `tensor` (the autograd engine), `functional` (differentiable operations), `nn` (layers and models),
`optim` (update rules and schedules), `data`, `amp` (activations in 16 bits); below it `kernels`, the arithmetic on
arrays. The cluster side: `cluster`, nodes that exchange messages, and `compress`, gradient compression. On both:
`parallel`, training on many nodes. On its own: `mini`, the core, the whole subject in at most 700 lines.

>>> from minidl import Tensor
>>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x**2).sum().backward()
>>> x.grad
array([2., 4., 6.], dtype=float32)
"""

import os

from minidl.instruction_set import use_avx512

use_avx512()  # before anything loads numpy
# Before numpy, too: after a product OpenBLAS's other threads spin, by default for 2^28 cycles or 100 ms. Meanwhile a
# compiled loop's second thread waits for a core. With 2^19, 200 us, they still get an MLP's next product in time.
# Measured on two cores of an Intel Xeon with AVX-512 (2026-11-30), steps with 2^28 and 2^19 beside other programs: GPT
# 56.4 and 51.8 ms, LeNet 4.5 and 3.7, an MLP of 784-512-512-10 2.7 and 2.6; on an idle machine both within 5 %.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "19")

from typing import TYPE_CHECKING  # noqa: E402

from minidl.from_pytorch import explain_missing_names, imports_of  # noqa: E402

if TYPE_CHECKING:  # else they are imported when they are first named: `minidl --help` needs no numpy
    from minidl import functional, kernels, nn
    from minidl.creation import (
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
    from minidl.functional.operation import operation
    from minidl.grad_mode import enable_grad, is_grad_enabled, no_grad
    from minidl.numerical_gradients import gradcheck
    from minidl.random import manual_seed
    from minidl.recomputation import checkpoint
    from minidl.tensor import Tensor, backward, grad
    from minidl.tensor.dependency_graph import dependency_graph, depth

__version__ = "0.1.0"
"""The version of this library; pyproject.toml reads it here."""

__all__ = [
    "Tensor",
    "__version__",
    "arange",
    "backward",
    "checkpoint",
    "dependency_graph",
    "depth",
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

explain_missing_names(
    __name__,
    __all__,
    elsewhere="functional",
    subpackages=("amp", "cluster", "compress", "data", "optim", "parallel", "plots", "roofline"),
    on_demand=imports_of(__file__),
)
