"""Gradient clipping: a step may be long, but not longer than this."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, inf

from minidl.kernels import Array, array_module
from minidl.tensor import Tensor

_LEAST_LARGE = 1e15  # squares of such numbers, added up, come near the end of float32, 3.4e38


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> float:
    """Scale the gradients, in place and all by the same factor, so that their common norm is at most `max_norm`.

    With N = sqrt(sum of all squares), every gradient is multiplied by min(1, max_norm / (N + 1e-6)). Returns N, as it
    was before; parameters without a gradient are passed over. Entries that are inf or nan become nan.
    Errors: TypeError for a module, ValueError for a negative `max_norm`.
    Source: Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks (arXiv:1211.5063),
    section 3.2.

    >>> w = Tensor([3.0, 4.0], requires_grad=True)
    >>> w.grad = w.data.copy()
    >>> clip_grad_norm_([w], max_norm=1.0)
    5.0
    >>> w.grad.round(3)
    array([0.6, 0.8], dtype=float32)
    """
    if hasattr(parameters, "parameters"):
        raise TypeError(f"gradients are of parameters, not of a {type(parameters).__name__}: give model.parameters()")
    if not max_norm >= 0:
        raise ValueError(f"max_norm must be at least 0, got {max_norm}")
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total_norm = hypot(*map(_norm, gradients))
    factor = max_norm / (total_norm + 1e-6)
    if not factor >= 1:  # also where the norm is not a number, so that the gradients show it
        for gradient in gradients:
            gradient *= factor
    return total_norm


def _norm(gradient: Array) -> float:
    """The 2-norm, also where the squares are too large for the dtype."""
    module, flat = array_module(gradient), gradient.reshape(-1)
    largest = float(abs(flat).max()) if flat.size else 0.0
    if not _LEAST_LARGE < largest < inf:
        return float(module.linalg.norm(flat))
    return largest * float(module.linalg.norm(flat / largest))
