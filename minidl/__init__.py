"""minidl: parallel deep learning from scratch."""

from minidl import functional, kernels, nn
from minidl.random import manual_seed
from minidl.tape import enable_grad, is_grad_enabled, no_grad
from minidl.tensor import Tensor, grad

__all__ = ["Tensor", "enable_grad", "functional", "grad", "is_grad_enabled", "kernels", "manual_seed", "nn", "no_grad"]
