"""First calls of compiled kernels, so that later calls, and processes forked from this one, need not compile.

warm_up()      what the models of `nn.models` and their optimizers call
call_all()     every kernel
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, jit
from minidl.kernels.jit import bfloat16, float16
from minidl.kernels.jit.convolution import MANY_FILTERS
from minidl.kernels.reference.windows import sliding_windows

ONCE = (1, 1)


def warm_up() -> None:
    """Compile the kernels that the models of `nn.models` call in training for float32, or load them from the cache.

    Measured: 21 s of processor time the first time, 0.4 s from the cache.
    """
    rows, labels = np.ones((4, 4), dtype=np.float32), np.zeros(4, dtype=np.int64)
    for elementwise in (jit.relu, jit.gelu):
        elementwise(rows)
    for derivative in (jit.relu_backward, jit.tanh_backward, jit.gelu_backward):
        derivative(rows, rows)

    jit.sum(rows, 0)
    jit.sum(rows)
    jit.mean(rows)
    jit.sum_rows(rows)
    jit.sum_channels(rows.reshape(1, 4, 2, 2))
    jit.embedding_backward(rows, labels, 1)
    jit.attention_softmax_backward(rows, jit.attention_softmax(rows.copy(), 1.0, True), 1.0)
    losses, probabilities = jit.cross_entropy(rows, labels)
    jit.cross_entropy_backward(losses, probabilities, labels)

    wide = np.ones((2, 32), dtype=np.float32)
    jit.layer_norm_backward(wide, *jit.layer_norm(wide, wide[0], wide[0], 1e-5)[1:], wide[0])
    _normalize(np.ones((2, 4, 64), dtype=np.float32))
    _convolve(np.ones((1, 1, 4, 4), dtype=np.float32))
    _update(rows[0])


def call_all(dtype: Any = np.float32) -> None:
    """Compile all kernels for numbers of this type, or load them from the cache on disk.

    Measured for float32: 40 s of processor time the first time, 0.8 s from the cache.
    """
    rows, labels = np.ones((4, 4), dtype=dtype), np.zeros(4, dtype=np.int64)
    for elementwise in (jit.exp, jit.relu, jit.gelu, jit.sigmoid, jit.softplus, jit.log_sigmoid):
        elementwise(rows)
    for derivative in (jit.relu_backward, jit.tanh_backward, jit.sigmoid_backward, jit.gelu_backward):
        derivative(rows, rows)
    jit.softplus_backward(rows, rows)
    jit.log_sigmoid_backward(rows, rows)

    for exponent in (3, -1, -2, 1.5):
        jit.power(rows, exponent)

    for axis in (0, 1, None):
        jit.sum(rows, axis)
        jit.mean(rows, axis)
        highest = jit.max(rows, axis, True)
        jit.extremum_backward(highest, rows, highest, axis)
        jit.min(rows, axis)
        jit.prod(rows, axis)
    jit.sum(rows.reshape(4, 2, 2), (0, 2))
    jit.cumsum(rows, 0)
    jit.remainder(rows, rows)
    jit.floor_divide(rows, rows)
    jit.embedding_backward(rows, labels, 1)
    jit.embedding_backward(np.ones((65, 1), dtype=dtype), np.zeros(65, dtype=np.int64), 1)

    for axis in (0, 1):
        jit.softmax_backward(rows, jit.softmax(rows, axis), axis)
        jit.log_softmax_backward(rows, jit.log_softmax(rows, axis), axis)
    jit.attention_softmax_backward(rows, jit.attention_softmax(rows.copy(), 1.0, True), 1.0)
    column = rows[:, :1].copy()
    jit.attention_block_backward(rows.copy(), rows.copy(), *jit.attention_block(rows.copy(), column, column, 1)[1:3], 1)
    losses, probabilities = jit.cross_entropy(rows, labels)
    jit.cross_entropy_backward(losses, probabilities, labels)

    row = rows[0]
    for wide in (rows, np.ones((2, 32), dtype=dtype)):
        jit.layer_norm_backward(wide, *jit.layer_norm(wide, wide[0], wide[0], 1e-5)[1:], wide[0])
    for samples in (rows, np.ones((2, 4, 64), dtype=dtype)):
        _normalize(samples)
        _, normalized, inverse_std = jit.group_norm(samples, 2, row, row, 1e-5)
        jit.group_norm_backward(samples, normalized, inverse_std, 2, row)

    gates = np.ones((4, 16), dtype=dtype)
    jit.lstm_cell_backward(rows, rows, gates, *jit.lstm_cell(gates, rows)[1:])

    single = np.ones(4, dtype=np.float32)
    half = float16.to_float16(single)
    float16.to_float32(half)
    float16._to_float16(single.view(np.uint32), single, half.view(np.uint16))  # where the processor has no instruction
    float16._to_float32(half.view(np.uint16), single.view(np.uint32))
    bfloat16.to_float32(bfloat16.to_bfloat16(single))

    _convolve(np.ones((1, 1, 4, 4), dtype=dtype))
    _update(row)
    jit.sparse_logistic_epoch(row.copy(), row, np.arange(4, dtype=np.int32), np.array([0, 4]), row[:1], 0.1)


def _normalize(samples: Array) -> None:
    row = np.ones(samples.shape[1], dtype=samples.dtype)
    mean, var = jit.channel_statistics(samples)
    _, normalized, inverse_std = jit.batch_norm(samples, mean, var, row, row, 1e-5)
    jit.batch_norm_backward(samples, normalized, inverse_std, row, True)


def _convolve(image: Array) -> None:
    for filters in (np.ones((count, 1, 2, 2), dtype=image.dtype) for count in (1, MANY_FILTERS)):  # both ways
        g = jit.conv2d(image, filters, None, ONCE, ONCE, ONCE, 1)
        jit.conv2d_backward_input(g, filters, image.shape, ONCE, ONCE, ONCE, 1)
        jit.conv2d_backward_weight(g, image, filters.shape, ONCE, ONCE, ONCE, 1)

    out, position = jit.max_pool2d(image, *[sliding_windows(4, 2, 2, 0)] * 2)
    jit.max_pool2d_backward(out, position, image.shape)
    for windows in ([sliding_windows(4, *sizes, 0)] * 2 for sizes in ((2, 1), (2, 2), (4, 4))):
        jit.avg_pool2d_backward(jit.avg_pool2d(image, *windows), image.shape, *windows)


def _update(row: Array) -> None:
    p, mean, squares = row.copy(), row.copy(), row.copy()
    jit.sgd(p, row, None, 0.1, 0.0, 0.0, 0.0, False)
    jit.sgd(p, row, mean, 0.1, 0.9, 0.0, 0.0, False)
    jit.sgd_velocity(p, row, mean, 0.1, 0.9, 0.0, 0.0, False)
    jit.adagrad(p, row, squares, 0.1, 1e-8, 0.0)
    jit.rmsprop(p, row, squares, None, None, 0.1, 0.99, 1e-8, 0.0, 0.0)
    jit.adam(p, row, mean, squares, 1, 0.1, 0.9, 0.999, 1e-8, 0.0, False)
    jit.lars(p, row, mean, 0.1, 0.9, 0.0)
    jit.lamb_direction(p, row, mean, squares, 1, 0.9, 0.999, 1e-8, 0.0)
    jit.l2_norm(row)
