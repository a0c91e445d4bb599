"""First calls of compiled kernels, so that later calls, and processes forked from this one, need not compile.

warm_up()      what one model of `nn.models`, or all of them, and their optimizers call
call_all()     every kernel

Where numba's cache lacks them, the steps below are first run in several processes at a time (`side_by_side.py`).
"""

from __future__ import annotations

import gc
import os
import queue
import sys
import threading
from collections.abc import Callable, Collection, Iterable

import numpy as np

from minidl.cores import cores
from minidl.kernels import Array, cache, jit
from minidl.kernels.jit import bfloat16, float16
from minidl.kernels.jit.compiled import KERNELS
from minidl.kernels.jit.convolution import MANY_FILTERS
from minidl.kernels.jit.side_by_side import Progress, compile_side_by_side
from minidl.kernels.reference.windows import sliding_windows

ONCE = (1, 1)

YOUNG_OBJECTS = 200_000
"""New objects between two collections of Python's garbage collector, while a process compiles; numba makes millions.
With Python's 700 the steps of `warm_up` in one process took an eighth longer, and a tenth less memory."""


def warm_up(progress: Progress = lambda done, steps: None, model: str = cache.ALL) -> None:
    """Compile the kernels that training calls for float32, or load them from the cache.

    Parameters
        progress  called after each step of the first compilation; never where the kernels are in the cache
        model     what is trained, a name of OF_MODEL; for any other name, what all models of `nn.models` call

    Measured on two cores of an AMD EPYC with AVX2, the first time: 5 s for the MLP, 9 for the GPT, 11 for LeNet, 13 for
    the ResNet, 21 for all (39 in one process); from the cache 1.3 s for all. With AVX-512 it was a third of that.
    """
    chosen = OF_MODEL.get(model, STEPS)
    _run([[name for name in family if name in chosen] for family in FAMILIES_OF_MODELS], "float32", progress)
    cache.note(model if model in OF_MODEL else cache.ALL)


def call_all(dtype: str = "float32", progress: Progress = lambda done, steps: None) -> None:
    """Compile all kernels for numbers of this type, or load them from the cache on disk; progress: as in `warm_up`.

    It takes about twice as long as `warm_up`.
    """
    _run(FAMILIES, dtype, progress)


def _run(families: Iterable[Collection[str]], dtype: str, progress: Progress) -> None:
    """Run steps here, from the cache, the last first; as soon as one compiles, first run those left side by side."""
    left = [list(family) for family in families if family]
    is_compiling = cores() == 1
    while left:
        before = _compiled_here()
        STEPS[left[-1].pop()](dtype)
        left = [family for family in left if family]
        if left and not is_compiling and _compiled_here() > before:
            is_compiling = True
            compile_side_by_side(left, dtype, cores(), progress)


def _compiled_here() -> int:
    """How many kernels this process has compiled, rather than loaded."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in KERNELS)


# ---- steps, in two tables: each calls kernels that have most code in common ----


def losses(dtype: str) -> None:
    rows, labels = _rows(dtype)
    jit.linear(rows, rows, rows[0])
    values, probabilities = jit.cross_entropy(rows, labels)
    jit.cross_entropy_backward(values, probabilities, labels)


def sliding_convolutions(dtype: str) -> None:
    _convolve(dtype, filters=1)


def convolutions_by_product(dtype: str) -> None:
    _convolve(dtype, MANY_FILTERS)


def _convolve(dtype: str, filters: int) -> None:
    image, weight = np.ones((1, 1, 4, 4), dtype), np.ones((filters, 1, 2, 2), dtype)
    g = jit.conv2d(image, weight, None, ONCE, ONCE, ONCE, 1)
    jit.conv2d_backward_input(g, weight, image.shape, ONCE, ONCE, ONCE, 1)
    jit.conv2d_backward_weight(g, image, weight.shape, ONCE, ONCE, ONCE, 1)


def convolutions_of_pixels(dtype: str) -> None:
    images, weight, stride, padding = np.ones((2, 1, 4, 4), dtype), np.ones((1, 1, 1, 1), dtype), (2, 2), (0, 0)
    g = jit.conv2d(images, weight, None, stride, padding, ONCE, 1)
    jit.conv2d_backward_input(g, weight, images.shape, stride, padding, ONCE, 1)
    jit.conv2d_backward_weight(g, images, weight.shape, stride, padding, ONCE, 1)


def max_pooling(dtype: str) -> None:
    image = np.ones((1, 1, 4, 4), dtype)
    out, position = jit.max_pool2d(image, *[sliding_windows(4, 2, 2, 0)] * 2)
    jit.max_pool2d_backward(out, position, image.shape)


def average_pooling_of_tiles(dtype: str) -> None:
    _pool(dtype, (2, 2), (4, 4))


def average_pooling(dtype: str) -> None:
    _pool(dtype, (2, 1))


def _pool(dtype: str, *sizes: tuple[int, int]) -> None:
    image = np.ones((1, 1, 4, 4), dtype)
    for windows in ([sliding_windows(4, *each, 0)] * 2 for each in sizes):
        jit.avg_pool2d_backward(jit.avg_pool2d(image, *windows), image.shape, *windows)


def layer_norms(dtype: str) -> None:
    wide = np.ones((2, 32), dtype)
    jit.layer_norm_backward(wide, wide, *jit.layer_norm(wide, wide[0], wide[0], 1e-5)[1:], wide[0])


def batch_norms_of_images(dtype: str) -> None:
    _normalize(np.ones((2, 4, 64), dtype))


def batch_norms_of_rows(dtype: str) -> None:
    _normalize(_rows(dtype)[0])


def _normalize(samples: Array) -> None:
    row = np.ones(samples.shape[1], dtype=samples.dtype)
    mean, var = jit.channel_statistics(samples)
    _, inverse_std = jit.batch_norm(samples, mean, var, row, row, 1e-5)
    jit.batch_norm_backward(samples, samples, mean, inverse_std, row, True)


def attention(dtype: str) -> None:
    rows, labels = _rows(dtype)
    jit.attention_softmax_backward(rows, jit.attention_softmax(rows.copy(), 1.0, True), 1.0)
    jit.embedding_backward(rows, labels, 1)


def relu(dtype: str) -> None:
    rows, _ = _rows(dtype)
    jit.relu_backward(rows, jit.relu(rows))


def tanh(dtype: str) -> None:
    rows, _ = _rows(dtype)
    jit.tanh_backward(rows, rows)


def gelu(dtype: str) -> None:
    rows, _ = _rows(dtype)
    jit.gelu_backward(rows, jit.gelu(rows))


def sums(dtype: str) -> None:
    rows, _ = _rows(dtype)
    jit.sum(rows, 0)
    jit.sum(rows)


def sums_of_rows(dtype: str) -> None:
    rows, _ = _rows(dtype)
    jit.sum_rows(rows)
    jit.mean(rows)


def sums_of_channels(dtype: str) -> None:
    jit.sum_channels(np.ones((2, 4, 2, 2), dtype))


def updates(dtype: str) -> None:
    row = np.ones(4, dtype)
    p, mean = row.copy(), row.copy()
    jit.sgd(p, row, None, 0.1, 0.0, 0.0, 0.0, False)
    jit.sgd(p, row, mean, 0.1, 0.9, 0.0, 0.0, False)
    jit.sgd_velocity(p, row, mean, 0.1, 0.9, 0.0, 0.0, False)
    jit.l2_norm(row)


def adaptive_updates(dtype: str) -> None:
    row = np.ones(4, dtype)
    p, mean, squares = row.copy(), row.copy(), row.copy()
    jit.adagrad(p, row, squares, 0.1, 1e-8, 0.0)
    jit.rmsprop(p, row, squares, None, None, 0.1, 0.99, 1e-8, 0.0, 0.0)
    jit.adam(p, row, mean, squares, 1, 0.1, 0.9, 0.999, 1e-8, 0.0, False)
    jit.lars(p, row, mean, 0.1, 0.9, 0.0)
    jit.lamb_direction(p, row, mean, squares, 1, 0.9, 0.999, 1e-8, 0.0)


def embedding_of_few_rows(dtype: str) -> None:
    jit.embedding_backward(np.ones((65, 1), dtype), np.zeros(65, dtype=np.int64), 1)


def other_activations(dtype: str) -> None:
    rows, _ = _rows(dtype)
    for elementwise in (jit.exp, jit.sigmoid, jit.softplus, jit.log_sigmoid):
        elementwise(rows)
    for derivative in (jit.sigmoid_backward, jit.softplus_backward, jit.log_sigmoid_backward):
        derivative(rows, rows)


def powers_and_remainders(dtype: str) -> None:
    rows, _ = _rows(dtype)
    for exponent in (3, -1, -2, 1.5):
        jit.power(rows, exponent)
    jit.remainder(rows, rows)
    jit.floor_divide(rows, rows)


def reductions(dtype: str) -> None:
    rows, _ = _rows(dtype)
    for axis in (0, 1, None):
        jit.sum(rows, axis)
        jit.mean(rows, axis)
    jit.sum(rows.reshape(4, 2, 2), (0, 2))


def products_and_running_sums(dtype: str) -> None:
    rows, _ = _rows(dtype)
    for axis in (0, 1, None):
        jit.prod(rows, axis)
    jit.cumsum(rows, 0)


def extrema(dtype: str) -> None:
    rows, _ = _rows(dtype)
    for axis in (0, 1, None):
        highest = jit.max(rows, axis, True)
        jit.extremum_backward(highest, rows, highest, axis)
        jit.min(rows, axis)


def softmax(dtype: str) -> None:
    rows, _ = _rows(dtype)
    for axis in (0, 1):
        jit.softmax_backward(rows, jit.softmax(rows, axis), axis)


def log_softmax(dtype: str) -> None:
    rows, _ = _rows(dtype)
    for axis in (0, 1):
        jit.log_softmax_backward(rows, jit.log_softmax(rows, axis), axis)


def attention_in_blocks(dtype: str) -> None:
    rows, _ = _rows(dtype)
    column = rows[:, :1].copy()
    jit.attention_block_backward(rows.copy(), rows.copy(), *jit.attention_block(rows.copy(), column, column, 1)[1:3], 1)


def layer_norms_of_short_rows(dtype: str) -> None:
    rows, _ = _rows(dtype)
    jit.layer_norm_backward(rows, rows, *jit.layer_norm(rows, rows[0], rows[0], 1e-5)[1:], rows[0])


def group_norms(dtype: str) -> None:
    row = np.ones(4, dtype)
    for samples in (_rows(dtype)[0], np.ones((2, 4, 64), dtype)):
        _, mean, inverse_std = jit.group_norm(samples, 2, row, row, 1e-5)
        jit.group_norm_backward(samples, samples, mean, inverse_std, 2, row)


def lstm(dtype: str) -> None:
    rows, _ = _rows(dtype)
    gates = np.ones((4, 16), dtype)
    jit.lstm_cell_backward(rows, rows, gates, *jit.lstm_cell(gates, rows)[1:])


def sixteen_bits(dtype: str) -> None:
    single = np.ones(4, dtype=np.float32)
    half = float16.to_float16(single)
    float16.to_float32(half)
    float16._to_float16(single.view(np.uint32), single, half.view(np.uint16))  # where the processor has no instruction
    float16._to_float32(half.view(np.uint16), single.view(np.uint32))
    bfloat16.to_float32(bfloat16.to_bfloat16(single))


def sparse(dtype: str) -> None:
    row = np.ones(4, dtype)
    jit.sparse_logistic_epoch(row.copy(), row, np.arange(4, dtype=np.int32), np.array([0, 4]), row[:1], 0.1)


def _rows(dtype: str) -> tuple[Array, Array]:
    """Four rows of four numbers, and a label for each."""
    return np.ones((4, 4), dtype), np.zeros(4, dtype=np.int64)


def _by_name(*steps: Callable[[str], None]) -> dict[str, Callable[[str], None]]:
    return {step.__name__: step for step in steps}


FAMILIES_OF_MODELS = (
    _by_name(sliding_convolutions, convolutions_by_product, convolutions_of_pixels),
    _by_name(batch_norms_of_rows, layer_norms, batch_norms_of_images, sums_of_rows, sums_of_channels, sums),
    _by_name(average_pooling_of_tiles, average_pooling, max_pooling),
    _by_name(losses, adaptive_updates, attention, updates, embedding_of_few_rows, gelu, relu, tanh),
)
"""What training calls. The steps of a family have most code in common; what takes longest to compile comes first."""


def _with_layers(*steps: Callable[[str], None]) -> set[str]:
    """Steps, and those of every model: linear layers, the loss and SGD."""
    return set(_by_name(losses, sums_of_rows, updates, *steps))


OF_MODEL = {
    "mlp": _with_layers(relu),
    "lenet": _with_layers(sliding_convolutions, average_pooling_of_tiles, sums_of_channels, tanh),
    "resnet": _with_layers(
        sliding_convolutions, batch_norms_of_rows, batch_norms_of_images, convolutions_of_pixels, relu
    ),
    "gpt": _with_layers(layer_norms, attention, adaptive_updates, embedding_of_few_rows, gelu),
}
"""What training one model calls."""

OTHER_FAMILIES = (
    _by_name(group_norms, layer_norms_of_short_rows),
    _by_name(softmax, log_softmax, attention_in_blocks),
    _by_name(reductions, extrema, products_and_running_sums),
    _by_name(other_activations, powers_and_remainders, sixteen_bits, lstm, sparse),
)
"""What training the models of `nn.models` does not call."""

FAMILIES = (*OTHER_FAMILIES, *FAMILIES_OF_MODELS)
"""Every kernel."""

STEPS = dict(step for family in FAMILIES for step in family.items())


def main() -> None:
    """As one of several processes: read steps until there are no more; end at once when the caller has ended."""
    wanted: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            wanted.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    while True:
        name, dtype = wanted.get().split()
        STEPS[name](dtype)
        print(name, flush=True)


if __name__ == "__main__":
    main()
