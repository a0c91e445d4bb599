"""Floating-point operations of each kernel: one table, name -> formula.

The conventions:

* An addition, multiplication, division, maximum, square root or elementary function (exp, tanh, ...) is one flop, so a
  multiply-add is two, as for LINPACK and in PyTorch's FlopCounterMode. Others count a multiply-add as one: the 3.8
  billion of ResNet-50 in He et al. (arXiv:1512.03385, table 1) are 7.6 billion here. `PRODUCTS` counts as they do.
* A function of one number (relu, tanh, gelu and their derivatives) is one flop, however it is computed.
* Copies, comparisons and index arithmetic count nothing. Work per row or per channel (the logarithm of a sum) is
  neglected against work per element; a sum of n numbers is n flops.
* The formulas follow the textbook, not the implementation: both kernels count the same, and useless work (masked
  attention, products with the zeros of padding) counts as in the textbook's loops.

A formula is called with the kernel's result and the kernel's own arguments, in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minidl.kernels.reference.windows import Windows
    from minidl.kernels.selection import Array

Formula = Callable[..., int]


def max_pool2d(out: tuple[Array, Array], x: Array, rows: Windows, columns: Windows) -> int:
    """One comparison fewer than each window has pixels."""
    return _pixels(x.shape, rows, columns) - out[0].size


def avg_pool2d(out: Array, x: Array, rows: Windows, columns: Windows) -> int:
    """One addition fewer than each window has pixels, and a division."""
    return _pixels(x.shape, rows, columns)


def avg_pool2d_backward(out: Array, g: Array, shape: tuple[int, ...], rows: Windows, columns: Windows) -> int:
    """A division per element of g, and an addition per pixel of its window."""
    return g.size + _pixels(shape, rows, columns)


def _pixels(shape: tuple[int, ...], rows: Windows, columns: Windows) -> int:
    """Return the number of pixels in all windows, without padding."""
    return prod(shape[:2]) * rows.covered * columns.covered


def each(count: int) -> Formula:
    """Return a formula: `count` flops per element of the kernel's first argument."""
    return lambda out, first, *args: count * first.size


PRODUCTS: dict[str, Formula] = {
    # each number of a result sums as many products as a row of `a` or of the weight has, or a window of the group
    "matmul": lambda out, a, *others: out.size * a.shape[-1],
    "linear": lambda out, x, weight, bias: out.size * weight.shape[1],
    "conv2d": lambda out, x, weight, bias, *geometry: out.size * prod(weight.shape[1:]),
    "conv2d_backward_input": lambda out, g, weight, *geometry: g.size * prod(weight.shape[1:]),
    "conv2d_backward_weight": lambda out, g, x, shape, *geometry: g.size * prod(shape[1:]),
}
"""Kernels of matrix products and convolutions: their multiply-adds, which are two flops each."""


def product(name: str) -> Formula:
    return lambda out, *args: 2 * PRODUCTS[name](out, *args)


def with_bias(name: str) -> Formula:
    return lambda out, x, weight, bias, *args: (
        2 * PRODUCTS[name](out, x, weight, bias, *args) + (bias is not None) * out.size
    )


OPERATIONS: dict[str, Formula] = {
    "matmul": product("matmul"),
    "linear": with_bias("linear"),
    "conv2d": with_bias("conv2d"),
    "conv2d_backward_input": product("conv2d_backward_input"),
    "conv2d_backward_weight": product("conv2d_backward_weight"),
    "max_pool2d": max_pool2d,
    "max_pool2d_backward": each(1),  # every element of g is added once
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_backward": avg_pool2d_backward,
    "channel_statistics": each(4),  # mean 1, minus 1, squares 1, their mean 1
    "batch_norm": each(4),  # minus mean, times 1 / std, times weight, plus bias
    # weight and bias 3; x 4, or 1 where mean and std are constants; xhat is forward's
    "batch_norm_backward": lambda out, g, x, mean, inverse_std, weight, training: (7 if training else 4) * g.size,
    # mean 1, minus 1, variance 2, times 1 / std 1, times weight 1, plus bias 1
    "layer_norm": lambda out, x, weight, bias, eps: (6 + (bias is not None)) * x.size,
    "layer_norm_backward": each(11),  # weight and bias 3; g weight 1; two means 3; subtracting them 3; 1 / std 1
    "group_norm": each(7),  # as layer norm
    "group_norm_backward": each(11),
    "softmax": each(5),  # maximum, minus, exp, sum, division
    "softmax_backward": each(4),  # out (g - sum(g out))
    "log_softmax": each(5),  # maximum, minus, exp, sum, minus
    "log_softmax_backward": each(4),  # g - exp(out) sum(g)
    "cross_entropy": each(5),  # the softmax
    "cross_entropy_backward": lambda out, g, probabilities, labels: probabilities.size,
    "attention_softmax": each(6),  # the softmax, and the scale
    "attention_softmax_backward": each(5),
    "attention_block": each(4),  # maximum, minus, exp, sum
    "attention_block_backward": each(4),  # minus and exp again; probability (g - mean)
    **{name: each(1) for name in ("sum", "mean", "max", "min", "prod", "cumsum")},
    "extremum_backward": lambda out, g, x, extremum, axis: x.size,
    "lstm_cell": lambda out, gates, c: 9 * c.size,  # 4 gates, f c + i g 3, tanh and its product with o 2
    "lstm_cell_backward": each(23),  # 4 a gate, tanh 1, the cell's gradient 5 + 1
    "sum_rows": each(1),
    "sum_channels": each(1),
    "embedding": lambda *args: 0,
    "embedding_backward": each(1),
    "index_add": each(1),
    **{name: lambda out, x, y: out.size for name in ("power", "remainder", "floor_divide")},
    **{name: each(1) for name in ("exp", "log", "relu", "relu_backward", "tanh", "tanh_backward")},
    **{name: each(1) for name in ("sigmoid", "sigmoid_backward", "gelu", "gelu_backward")},
    **{name: each(1) for name in ("softplus", "softplus_backward", "log_sigmoid", "log_sigmoid_backward")},
}
"""Kernels of differentiable operations."""


def _decay(weight_decay: float) -> int:
    """The flops of weight decay for each number: a product and a sum, or none."""
    return 2 if weight_decay else 0


UPDATES: dict[str, Formula] = {
    # p - lr g is 2; the buffer mu b + (1 - dampening) g 3; g + mu b of Nesterov's 2
    "sgd": lambda out, p, g, buffer, lr, mu, dampening, decay, nesterov: (
        (2 + 3 * (buffer is not None) + 2 * nesterov + _decay(decay)) * p.size
    ),
    # the velocity mu v - (1 - dampening) lr g is 4, p + v 1; mu v - lr g of Nesterov's 2
    "sgd_velocity": lambda out, p, g, velocity, lr, mu, dampening, decay, nesterov: (
        (5 + 2 * nesterov + _decay(decay)) * p.size
    ),
    # the sum of squares 2, its root plus eps 2, the step 3
    "adagrad": lambda out, p, g, square_sum, lr, eps, decay: (7 + _decay(decay)) * p.size,
    # the mean square 4, its root plus eps 2, the step 3; the mean and the variance from it 6; the buffer 2
    "rmsprop": lambda out, p, g, square_avg, grad_avg, buffer, lr, alpha, eps, decay, mu: (
        (9 + 6 * (grad_avg is not None) + 2 * (buffer is not None) + _decay(decay)) * p.size
    ),
    # the moments 3 + 4, the corrected root plus eps 3, the step 3; decoupled decay is one product
    "adam": lambda out, p, g, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, decay, decoupled: (
        (13 + (_decay(decay) // 2 if decoupled else _decay(decay))) * p.size
    ),
    "lars": lambda out, p, g, velocity, local_lr, mu, decay: (4 + _decay(decay)) * p.size,
    # the moments 3 + 4, the corrected root plus eps 3, the quotient 2
    "lamb_direction": lambda out, p, g, exp_avg, exp_avg_sq, step, beta1, beta2, eps, decay: (
        (12 + _decay(decay)) * p.size
    ),
    "l2_norm": each(2),
    # for each element of the rows 2 for the product with the weights, and 2 for the step
    "sparse_logistic_epoch": lambda out, weights, values, columns, starts, labels, lr: 4 * int(starts[-1] - starts[0]),
}
"""Kernels of optimizers, which belong to no operation. p is the parameter."""

WRITTEN: dict[str, tuple[str, ...]] = {
    "sgd": ("p", "buffer"),
    "sgd_velocity": ("p", "velocity"),
    "adagrad": ("p", "square_sum"),
    "rmsprop": ("p", "square_avg", "grad_avg", "buffer"),
    "adam": ("p", "exp_avg", "exp_avg_sq"),
    "lars": ("p", "velocity"),
    "lamb_direction": ("exp_avg", "exp_avg_sq"),
    "sparse_logistic_epoch": ("weights",),
}
"""Arguments that a kernel reads and writes in place."""
