"""One step of each optimizer on one parameter, in place, and a pass of SGD over sparse rows: numpy (or CuPy).

`p` is the parameter, `g` its gradient (never written), the other arrays are the optimizer's state; all have one shape
and dtype. The order of operations is PyTorch's, so that the rounding agrees too. `optim/` cites the papers.
"""

from __future__ import annotations

import math

from minidl.kernels import Array, array_module

__all__ = [
    "adagrad",
    "adam",
    "l2_norm",
    "lamb_direction",
    "lars",
    "rmsprop",
    "sgd",
    "sgd_velocity",
    "sparse_logistic_epoch",
]


def sgd(
    p: Array, g: Array, buffer: Array | None,
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool,
) -> None:  # fmt: skip
    """b = mu b + (1 - dampening) g, then p -= lr b; without a buffer p -= lr g."""
    g = _with_decay(g, p, weight_decay)
    if buffer is not None:
        buffer *= momentum
        buffer += (1 - dampening) * g
        g = g + momentum * buffer if nesterov else buffer
    p -= lr * g


def sgd_velocity(
    p: Array, g: Array, velocity: Array,
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool,
) -> None:  # fmt: skip
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
    p: Array, g: Array, square_avg: Array, grad_avg: Array | None, buffer: Array | None,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float,
) -> None:  # fmt: skip
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
    p: Array, g: Array, exp_avg: Array, exp_avg_sq: Array,
    step: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool,
) -> None:  # fmt: skip
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
    p: Array, g: Array, exp_avg: Array, exp_avg_sq: Array,
    step: int, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> Array:  # fmt: skip
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


def sparse_logistic_epoch(
    weights: Array, values: Array, columns: Array, starts: Array, labels: Array, lr: float
) -> float:
    """Run one pass of SGD over sparse rows x with labels y of -1 or 1, one row per step; return the sum of the losses.

    weights (d,) is updated in place. Row i has the numbers `values[starts[i]:starts[i + 1]]` in the columns
    `columns[starts[i]:starts[i + 1]]` (CSR); rows i to j - 1 are passed as `starts[i:j + 1]` and `labels[i:j]`.

    The loss of a row, log(1 + exp(-y x.w)), is computed before its step, w += lr y / (1 + exp(y x.w)) x. A step reads
    and writes the row's columns only, without a lock, so that several processes may train the same weights. With lr = 0
    the weights do not change, and the sum is their loss.
    """
    module = array_module(weights)
    total = 0.0
    for row in range(len(labels)):
        own = slice(int(starts[row]), int(starts[row + 1]))
        margin = labels[row] * (values[own] * weights[columns[own]]).sum()
        other = module.exp(-abs(margin))  # never overflows
        total += float(module.maximum(-margin, 0.0) + module.log1p(other))
        slope = (other if margin > 0 else 1.0) / (1.0 + other)  # 1 / (1 + exp(margin))
        module.add.at(weights, columns[own], (values[own] * (slope * labels[row] * lr)).astype(weights.dtype))
    return total
