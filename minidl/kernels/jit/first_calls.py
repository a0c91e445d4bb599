"""Call every compiled kernel once, so that later calls, and processes forked from this one, find it ready."""

from __future__ import annotations

import numpy as np

from minidl.kernels import jit

ONCE = (1, 1)


def warm_up() -> None:
    """Compile all kernels for float32, or load them from the cache on disk.

    Measured: 24 s of processor time for the first time, 0.8 s from the cache.
    """
    rows, labels = np.ones((4, 4), dtype=np.float32), np.zeros(4, dtype=np.int64)
    for elementwise in (jit.exp, jit.relu, jit.gelu, jit.sigmoid, jit.softplus, jit.log_sigmoid):
        elementwise(rows)
    for derivative in (jit.relu_backward, jit.tanh_backward, jit.sigmoid_backward, jit.gelu_backward):
        derivative(rows, rows)
    jit.softplus_backward(rows, rows)
    jit.log_sigmoid_backward(rows, rows)

    for exponent in (3, -1, -2, 1.5):
        jit.power(rows, exponent)

    jit.sum_rows(rows)
    jit.embedding_backward(rows, labels, 1)

    for axis in (0, 1):
        jit.softmax_backward(rows, jit.softmax(rows, axis), axis)
        jit.log_softmax_backward(rows, jit.log_softmax(rows, axis), axis)
    jit.attention_softmax_backward(rows, jit.attention_softmax(rows.copy(), 1.0, True), 1.0)
    losses, probabilities = jit.cross_entropy(rows, labels)
    jit.cross_entropy_backward(losses, probabilities, labels)

    row = rows[0]
    jit.layer_norm_backward(rows, *jit.layer_norm(rows, row, row, 1e-5)[1:], row)
    mean, var = jit.channel_statistics(rows)
    _, normalized, inverse_std = jit.batch_norm(rows, mean, var, row, row, 1e-5)
    jit.batch_norm_backward(rows, normalized, inverse_std, row, True)

    image, filters = np.ones((1, 1, 4, 4), dtype=np.float32), np.ones((1, 1, 2, 2), dtype=np.float32)
    g = jit.conv2d(image, filters, None, ONCE, ONCE)
    jit.conv2d_backward_input(g, filters, image.shape, ONCE, ONCE)
    jit.conv2d_backward_weight(g, image, filters.shape, ONCE, ONCE)

    window, none = (2, 2), (0, 0)
    out, position = jit.max_pool2d(image, window, window, none)
    jit.max_pool2d_backward(out, position, image.shape, window, window, none)
    jit.avg_pool2d_backward(jit.avg_pool2d(image, window, window, none), image.shape, window, window, none)

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
    jit.sparse_logistic_epoch(row.copy(), row, np.arange(4, dtype=np.int32), np.array([0, 4]), row[:1], 0.1)
