"""One step of each optimizer on one parameter, compiled to one pass over memory; the reference makes many.

The public functions compute what those of `reference/updates.py` compute. They pass C-contiguous float32 and float64
arrays to the compiled loops below, as flat views (`ravel`), and everything else to the reference. Each loop first casts
all scalars to the arrays' dtype: one float64 among float32 would make the whole loop run in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled
from minidl.kernels.jit.eligible import FLOAT32, FLOAT64, eligible
from minidl.kernels.jit.memory_order import BLOCK, in_shares

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

WORTH_A_THREAD = 1 << 19  # numbers; from the second cache a quarter of them takes SGD with momentum 30 us, Adam 90


def sgd(
    p: Array, g: Array, buffer: Array | None,
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool,
) -> None:  # fmt: skip
    if buffer is None:
        if _compilable(p, g):
            _run(_sgd, p.ravel(), g.ravel(), float(lr), float(weight_decay))
            return
    elif _compilable(p, g, buffer):
        _run(
            _sgd_momentum,
            p.ravel(),
            g.ravel(),
            buffer.ravel(),
            float(lr),
            float(momentum),
            float(dampening),
            float(weight_decay),
            bool(nesterov),
        )
        return
    reference.sgd(p, g, buffer, lr, momentum, dampening, weight_decay, nesterov)


def sgd_velocity(
    p: Array, g: Array, velocity: Array,
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool,
) -> None:  # fmt: skip
    if not _compilable(p, g, velocity):
        reference.sgd_velocity(p, g, velocity, lr, momentum, dampening, weight_decay, nesterov)
        return
    numbers = float(lr), float(momentum), float(dampening), float(weight_decay)
    _run(_sgd_velocity, p.ravel(), g.ravel(), velocity.ravel(), *numbers, bool(nesterov))


def adagrad(p: Array, g: Array, square_sum: Array, lr: float, eps: float, weight_decay: float) -> None:
    if _compilable(p, g, square_sum):
        _run(_adagrad, p.ravel(), g.ravel(), square_sum.ravel(), float(lr), float(eps), float(weight_decay))
    else:
        reference.adagrad(p, g, square_sum, lr, eps, weight_decay)


def rmsprop(
    p: Array, g: Array, square_avg: Array, grad_avg: Array | None, buffer: Array | None,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float,
) -> None:  # fmt: skip
    if _compilable(*(x for x in (p, g, square_avg, grad_avg, buffer) if x is not None)):
        _run(
            _rmsprop,
            p.ravel(),
            g.ravel(),
            square_avg.ravel(),
            None if grad_avg is None else grad_avg.ravel(),
            None if buffer is None else buffer.ravel(),
            float(lr),
            float(alpha),
            float(eps),
            float(weight_decay),
            float(momentum),
        )
    else:
        reference.rmsprop(p, g, square_avg, grad_avg, buffer, lr, alpha, eps, weight_decay, momentum)


def adam(
    p: Array, g: Array, exp_avg: Array, exp_avg_sq: Array,
    step: int, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled: bool,
) -> None:  # fmt: skip
    if _compilable(p, g, exp_avg, exp_avg_sq):
        _run(
            _adam,
            p.ravel(),
            g.ravel(),
            exp_avg.ravel(),
            exp_avg_sq.ravel(),
            lr / (1 - beta1**step),
            math.sqrt(1 - beta2**step),
            float(beta1),
            float(beta2),
            float(eps),
            0.0 if decoupled else float(weight_decay),
            1 - lr * weight_decay if decoupled else 1.0,
        )
    else:
        reference.adam(p, g, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay, decoupled)


def lars(p: Array, g: Array, velocity: Array, local_lr: float, momentum: float, weight_decay: float) -> None:
    if _compilable(p, g, velocity):
        _run(_lars, p.ravel(), g.ravel(), velocity.ravel(), float(local_lr), float(momentum), float(weight_decay))
    else:
        reference.lars(p, g, velocity, local_lr, momentum, weight_decay)


def lamb_direction(
    p: Array, g: Array, exp_avg: Array, exp_avg_sq: Array,
    step: int, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> Array:  # fmt: skip
    if not _compilable(p, g, exp_avg, exp_avg_sq):
        return reference.lamb_direction(p, g, exp_avg, exp_avg_sq, step, beta1, beta2, eps, weight_decay)
    direction = np.empty_like(p)
    _run(
        _lamb_direction,
        direction.ravel(),
        p.ravel(),
        g.ravel(),
        exp_avg.ravel(),
        exp_avg_sq.ravel(),
        1 - beta1**step,
        math.sqrt(1 - beta2**step),
        float(beta1),
        float(beta2),
        float(eps),
        float(weight_decay),
    )
    return direction


def l2_norm(x: Array) -> float:
    if not _compilable(x):
        return reference.l2_norm(x)
    return math.sqrt(_sum_of_squares(x.ravel()))


def _run(loop: Any, *arguments: Any) -> None:
    """Call the loop; with long arrays, in several threads."""
    in_shares(arguments[0].size // WORTH_A_THREAD, BLOCK, loop, *arguments)


def _compilable(p: Array, *others: Array) -> bool:
    """Return whether the loops accept the arrays: numpy, one supported dtype, one size, C-contiguous, writeable.

    The loops check no bounds, so that sizes are compared here; numpy reports arrays that do not fit.
    """
    if type(p) is not np.ndarray or p.dtype not in (FLOAT32, FLOAT64) or not p.flags.carray:
        return False
    dtype, size = p.dtype, p.size
    for x in others:
        if type(x) is not np.ndarray or x.dtype != dtype or x.size != size or not x.flags.carray:
            return False
    return True


# ---- the compiled loops ----


@compiled()
def _sgd(p: Array, g: Array, lr: float, weight_decay: float) -> None:
    scalar = p.dtype.type
    lr_, decay = scalar(lr), scalar(weight_decay)
    for i in range(p.size):
        p[i] -= lr_ * (g[i] + decay * p[i])


@compiled()
def _sgd_momentum(
    p: Array, g: Array, buffer: Array,
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool,
) -> None:  # fmt: skip
    scalar = p.dtype.type
    lr_, mu, share, decay = scalar(lr), scalar(momentum), scalar(1 - dampening), scalar(weight_decay)
    for i in range(p.size):
        gradient = g[i] + decay * p[i]
        average = mu * buffer[i] + share * gradient
        buffer[i] = average
        p[i] -= lr_ * (gradient + mu * average if nesterov else average)


@compiled()
def _sgd_velocity(
    p: Array, g: Array, velocity: Array,
    lr: float, momentum: float, dampening: float, weight_decay: float, nesterov: bool,
) -> None:  # fmt: skip
    scalar = p.dtype.type
    lr_, mu, share, decay = scalar(lr), scalar(momentum), scalar(1 - dampening), scalar(weight_decay)
    for i in range(p.size):
        gradient = g[i] + decay * p[i]
        v = mu * velocity[i] - lr_ * (share * gradient)
        velocity[i] = v
        p[i] += mu * v - lr_ * gradient if nesterov else v


@compiled()
def _adagrad(p: Array, g: Array, square_sum: Array, lr: float, eps: float, weight_decay: float) -> None:
    scalar = p.dtype.type
    lr_, eps_, decay = scalar(lr), scalar(eps), scalar(weight_decay)
    for i in range(p.size):
        gradient = g[i] + decay * p[i]
        total = square_sum[i] + gradient * gradient
        square_sum[i] = total
        p[i] -= lr_ * gradient / (math.sqrt(total) + eps_)


@compiled()
def _rmsprop(
    p: Array, g: Array, square_avg: Array, grad_avg: Array | None, buffer: Array | None,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float,
) -> None:  # fmt: skip
    # numba compiles one loop for each combination of arrays given: the branches on None cost nothing
    scalar = p.dtype.type
    lr_, keep, share, eps_ = scalar(lr), scalar(alpha), scalar(1 - alpha), scalar(eps)
    decay, mu, zero = scalar(weight_decay), scalar(momentum), scalar(0)
    for i in range(p.size):
        gradient = g[i] + decay * p[i]
        square = keep * square_avg[i] + share * gradient * gradient
        square_avg[i] = square
        if grad_avg is not None:
            mean = grad_avg[i] + share * (gradient - grad_avg[i])
            grad_avg[i] = mean
            square = square - mean * mean
            square = zero if square < zero else square
        scale = math.sqrt(square) + eps_
        if buffer is not None:
            average = mu * buffer[i] + gradient / scale
            buffer[i] = average
            p[i] -= lr_ * average
        else:
            p[i] -= lr_ * gradient / scale


@compiled()
def _adam(
    p: Array, g: Array, exp_avg: Array, exp_avg_sq: Array,
    step_size: float, root_correction: float, beta1: float, beta2: float, eps: float, weight_decay: float,
    shrink: float,
) -> None:  # fmt: skip
    scalar = p.dtype.type
    step_size_, root, eps_ = scalar(step_size), scalar(root_correction), scalar(eps)
    share1, keep2, share2 = scalar(1 - beta1), scalar(beta2), scalar(1 - beta2)
    decay, shrink_ = scalar(weight_decay), scalar(shrink)
    for i in range(p.size):
        value = shrink_ * p[i]
        gradient = g[i] + decay * value
        mean = exp_avg[i] + share1 * (gradient - exp_avg[i])
        square = keep2 * exp_avg_sq[i] + share2 * gradient * gradient
        exp_avg[i] = mean
        exp_avg_sq[i] = square
        p[i] = value - step_size_ * mean / (math.sqrt(square) / root + eps_)


@compiled()
def _lars(p: Array, g: Array, velocity: Array, local_lr: float, momentum: float, weight_decay: float) -> None:
    scalar = p.dtype.type
    lr, mu, decay = scalar(local_lr), scalar(momentum), scalar(weight_decay)
    for i in range(p.size):
        step = mu * velocity[i] + lr * (g[i] + decay * p[i])
        velocity[i] = step
        p[i] -= step


@compiled()
def _lamb_direction(
    direction: Array, p: Array, g: Array, exp_avg: Array, exp_avg_sq: Array,
    correction1: float, root_correction2: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> None:  # fmt: skip
    scalar = p.dtype.type
    correction, root, eps_, decay = scalar(correction1), scalar(root_correction2), scalar(eps), scalar(weight_decay)
    share1, keep2, share2 = scalar(1 - beta1), scalar(beta2), scalar(1 - beta2)
    for i in range(p.size):
        mean = exp_avg[i] + share1 * (g[i] - exp_avg[i])
        square = keep2 * exp_avg_sq[i] + share2 * g[i] * g[i]
        exp_avg[i] = mean
        exp_avg_sq[i] = square
        direction[i] = mean / correction / (math.sqrt(square) / root + eps_) + decay * p[i]


# In float64 the order of additions hardly changes the sum, so LLVM may compute several partial sums at once.
@compiled(REASSOCIATE)
def _sum_of_squares(x: Array) -> float:
    total = 0.0
    for i in range(x.size):
        total += np.float64(x[i]) * np.float64(x[i])
    return total


# ---- logistic regression on sparse rows: fetching the weights from memory takes most of a step's time ----


def sparse_logistic_epoch(
    weights: Array, values: Array, columns: Array, starts: Array, labels: Array, lr: float
) -> float:
    """One pass of SGD over sparse rows with labels of -1 or 1; see the reference."""
    indices = all(type(a) is np.ndarray and a.dtype.kind == "i" and a.flags.c_contiguous for a in (columns, starts))
    if not indices or not eligible(weights, values, labels):
        return reference.sparse_logistic_epoch(weights, values, columns, starts, labels, lr)
    return float(_sparse_logistic_epoch(weights, values, columns, starts, labels, float(lr)))


@compiled(REASSOCIATE)
def _sparse_logistic_epoch(weights: Any, values: Any, columns: Any, starts: Any, labels: Any, lr: float) -> float:
    total = 0.0
    for row in range(labels.size):
        first, last = starts[row], starts[row + 1]
        product = weights.dtype.type(0)
        for i in range(first, last):
            product += values[i] * weights[columns[i]]
        margin = float(labels[row] * product)
        other = math.exp(-abs(margin))
        total += max(-margin, 0.0) + math.log1p(other)
        slope = (other if margin > 0 else 1.0) / (1.0 + other)
        step = weights.dtype.type(slope * labels[row] * lr)
        for i in range(first, last):
            weights[columns[i]] += step * values[i]
    return total
