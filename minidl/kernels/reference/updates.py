"""One step of each optimizer on one parameter, in readable numpy (or CuPy), in place.

`p` is the parameter, `g` its gradient (never written), the other arrays are the optimizer's state; all have one shape
and dtype. The order of operations is PyTorch's, so that the rounding agrees too. `optim/` cites the papers.
"""

from __future__ import annotations

import math

from minidl.kernels import Array, array_module

__all__ = ["adagrad", "adam", "l2_norm", "lamb_direction", "lars", "rmsprop", "sgd", "sgd_velocity"]


def sgd(
    p: Array,
    g: Array,
    buffer: Array | None,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> None:
    """b = mu b + (1 - dampening) g, then p -= lr b; without a buffer p -= lr g."""
    g = _with_decay(g, p, weight_decay)
    if buffer is not None:
        buffer *= momentum
        buffer += (1 - dampening) * g
        g = g + momentum * buffer if nesterov else buffer
    p -= lr * g


def sgd_velocity(
    p: Array,
    g: Array,
    velocity: Array,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> None:
    """v = mu v - (1 - dampening) lr g, then p += v; with Nesterov's momentum p += mu v - lr g."""
    g = _with_decay(g, p, weight_decay)
    velocity *= momentum
    velocity -= lr * ((1 - dampening) * g)
    p += momentum * velocity - lr * g if nesterov else velocity


def adagrad(p: Array, g: Array, square_sum: Array, lr: float, eps: float, weight_decay: float) -> None:
    """s += g^2, then p -= lr g / (sqrt(s) + eps)."""
    g = _with_decay(g, p, weight_decay)
    square_sum += g * g
    p -= lr * g / (array_module(p).sqrt(square_sum) + eps)


def rmsprop(
    p: Array,
    g: Array,
    square_avg: Array,
    grad_avg: Array | None,
    buffer: Array | None,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
) -> None:
    """s = alpha s + (1 - alpha) g^2, then p -= lr g / (sqrt(s) + eps).

    `grad_avg` (centered) replaces s by the variance s - mean^2; `buffer` adds momentum.
    """
    module = array_module(p)
    g = _with_decay(g, p, weight_decay)
    square_avg *= alpha
    square_avg += (1 - alpha) * g * g
    scale = square_avg
    if grad_avg is not None:
        grad_avg += (1 - alpha) * (g - grad_avg)
        scale = module.maximum(square_avg - grad_avg * grad_avg, 0)  # rounding may make a variance negative
    scale = module.sqrt(scale) + eps
    if buffer is not None:
        buffer *= momentum
        buffer += g / scale
        p -= lr * buffer
    else:
        p -= lr * g / scale


def adam(
    p: Array,
    g: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
) -> None:
    """Moments m and v, then p -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).

    `decoupled` decay shrinks p itself (AdamW); otherwise the decay is added to the gradient (Adam).
    """
    if decoupled:
        p *= 1 - lr * weight_decay
    else:
        g = _with_decay(g, p, weight_decay)
    _update_moments(g, exp_avg, exp_avg_sq, beta1, beta2)
    scale = array_module(p).sqrt(exp_avg_sq) / math.sqrt(1 - beta2**step) + eps
    p -= lr / (1 - beta1**step) * exp_avg / scale


def lars(p: Array, g: Array, velocity: Array, local_lr: float, momentum: float, weight_decay: float) -> None:
    """v = mu v + local_lr (g + decay p), then p -= v, with the rate inside the velocity."""
    velocity *= momentum
    velocity += local_lr * _with_decay(g, p, weight_decay)
    p -= velocity


def lamb_direction(
    p: Array,
    g: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    step: int,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> Array:
    """Update Adam's moments; return the direction m_hat / (sqrt(v_hat) + eps) + decay p, a new array."""
    _update_moments(g, exp_avg, exp_avg_sq, beta1, beta2)
    scale = array_module(p).sqrt(exp_avg_sq) / math.sqrt(1 - beta2**step) + eps
    return _with_decay(exp_avg / (1 - beta1**step) / scale, p, weight_decay)


def l2_norm(x: Array) -> float:
    """The square root of the sum of the squares of all elements, added in float64."""
    return math.sqrt(float((x.astype("float64") ** 2).sum()))


def _with_decay(g: Array, p: Array, weight_decay: float) -> Array:
    return g + weight_decay * p if weight_decay else g


def _update_moments(g: Array, exp_avg: Array, exp_avg_sq: Array, beta1: float, beta2: float) -> None:
    exp_avg += (1 - beta1) * (g - exp_avg)
    exp_avg_sq *= beta2
    exp_avg_sq += (1 - beta2) * g * g
