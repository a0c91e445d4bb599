"""Gradient clipping: limit the norm of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, inf

from minidl import kernels
from minidl.arguments import real_number
from minidl.from_pytorch import explains_options
from minidl.kernels import Array
from minidl.tensor import Tensor

_LEAST_LARGE = 1e15  # sums of squares of such numbers approach the limit of float32, 3.4e38


@explains_options
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients in place by one factor, so that their total norm is at most `max_norm`.

    Parameters
        parameters    tensor or tensors whose gradients are scaled; those without a gradient are skipped
        max_norm      largest total norm, at least 0; math.inf only measures a finite norm

    Returns
        the norm before scaling, N = sqrt(sum of all squares)

    Every gradient is multiplied by min(1, max_norm / (N + 1e-6)). If N is inf, infinite elements become nan and finite
    ones 0; if N is nan, all elements become nan.

    Raises
        TypeError     a module or arrays instead of parameters
        ValueError    a negative max_norm

    References
        Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks (arXiv:1211.5063),
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
    real_number("max_norm", max_norm, at_least=0, at_most=inf)
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    try:
        gradients = [parameter.grad for parameter in given if parameter.grad is not None]
    except AttributeError:
        wrong = next(one for one in given if not isinstance(one, Tensor))
        raise TypeError(
            f"clip_grad_norm_ takes parameters, which hold their gradients, such as model.parameters(), not "
            f"{type(wrong).__name__}"
        ) from None
    total_norm = get_total_norm(gradients)
    clip_grads_with_norm_(given, max_norm, total_norm)
    return total_norm


def get_total_norm(gradients: Iterable[Array]) -> float:
    """Return the 2-norm of all these arrays together; 0.0 of none."""
    return hypot(*map(_norm, gradients))


def clip_grads_with_norm_(parameters: Iterable[Tensor], max_norm: float, total_norm: float) -> None:
    """Scale gradients in place as `clip_grad_norm_` does, by a norm that is known, such as that of many ranks."""
    factor = max_norm / (total_norm + 1e-6)
    if not factor >= 1:  # also for a norm of nan, so that the gradients show it
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad *= factor


def _norm(gradient: Array) -> float:
    """Return the 2-norm, even if the squares are too large for the dtype."""
    norm, flat = kernels.uncounted("l2_norm"), gradient.reshape(-1)
    largest = float(abs(flat).max()) if flat.size else 0.0
    if not _LEAST_LARGE < largest < inf:
        return norm(flat)
    return largest * norm(flat / largest)
