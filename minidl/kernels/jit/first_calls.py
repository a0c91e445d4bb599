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
from typing import Any

import numpy as np

from minidl.cores import cores
from minidl.kernels import Array, cache, jit
from minidl.kernels.jit import conversions, few_bits, few_entries
from minidl.kernels.jit.compiled import KERNELS
from minidl.kernels.jit.convolution import MANY_FILTERS, add_products
from minidl.kernels.jit.side_by_side import Progress, compile_side_by_side
from minidl.kernels.reference.windows import sliding_windows

ONCE = (1, 1)


def warm_up(progress: Progress = lambda done, steps: None, model: str = cache.ALL) -> None:
    """Compile the kernels that training calls for float32, or load them from the cache.

    Parameters
        progress  called after each step of the first compilation; never where the kernels are in the cache
        model     a name in OF_MODEL; for any other name, compile what all models of `nn.models` call

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
    """Run the steps, the last first; if one is not in the cache, first compile those left in several processes."""
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


# ---- steps: each calls kernels that have most code in common ----


def _convolve(dtype: str, filters: int) -> None:
    image, weight = np.ones((1, 1, 4, 4), dtype), np.ones((filters, 1, 2, 2), dtype)
    g = jit.conv2d(image, weight, None, ONCE, ONCE, ONCE, 1)
    jit.conv2d_backward_input(g, weight, image.shape, ONCE, ONCE, ONCE, 1)
    jit.conv2d_backward_weight(g, image, weight.shape, ONCE, ONCE, ONCE, 1)


def _convolve_by_loops(dtype: str) -> None:
    ones = np.ones((1, 1, 1, 1), dtype)
    add_products(ones, ones, ones.copy(), ONCE, (0, 0), ONCE, 1)


def _convolve_pixels(dtype: str) -> None:
    images, weight, stride, padding = np.ones((2, 1, 4, 4), dtype), np.ones((1, 1, 1, 1), dtype), (2, 2), (0, 0)
    g = jit.conv2d(images, weight, None, stride, padding, ONCE, 1)
    jit.conv2d_backward_input(g, weight, images.shape, stride, padding, ONCE, 1)
    jit.conv2d_backward_weight(g, images, weight.shape, stride, padding, ONCE, 1)


def _max_pool(dtype: str) -> None:
    image = np.ones((1, 1, 4, 4), dtype)
    out, position = jit.max_pool2d(image, *[sliding_windows(4, 2, 2, 0)] * 2)
    jit.max_pool2d_backward(out, position, image.shape)


def _avg_pool(dtype: str, *sizes: tuple[int, int]) -> None:
    image = np.ones((1, 1, 4, 4), dtype)
    for windows in ([sliding_windows(4, *each, 0)] * 2 for each in sizes):
        jit.avg_pool2d_backward(jit.avg_pool2d(image, *windows), image.shape, *windows)


def _batch_norm(samples: Array) -> None:
    row = np.ones(samples.shape[1], dtype=samples.dtype)
    mean, var = jit.channel_statistics(samples)
    _, inverse_std = jit.batch_norm(samples, mean, var, row, row, 1e-5)
    jit.batch_norm_backward(samples, samples, mean, inverse_std, row, True)


def _layer_norm(rows: Array) -> None:
    jit.layer_norm_backward(rows, rows, *jit.layer_norm(rows, rows[0], rows[0], 1e-5)[1:], rows[0])


def _group_norm(dtype: str) -> None:
    row = np.ones(4, dtype)
    for samples in (_rows(dtype), np.ones((2, 4, 64), dtype)):
        _, mean, inverse_std = jit.group_norm(samples, 2, row, row, 1e-5)
        jit.group_norm_backward(samples, samples, mean, inverse_std, 2, row)


def _losses(rows: Array) -> None:
    labels = np.zeros(len(rows), dtype=np.int64)
    jit.linear(rows, rows, rows[0])
    values, probabilities = jit.cross_entropy(rows, labels)
    jit.cross_entropy_backward(values, probabilities, labels)


def _attention(rows: Array) -> None:
    jit.attention_softmax_backward(rows, jit.attention_softmax(rows.copy(), 1.0, True), 1.0)
    jit.embedding_backward(rows, np.zeros(len(rows), dtype=np.int64), 1)


def _attention_in_blocks(rows: Array) -> None:
    column = rows[:, :1].copy()
    jit.attention_block_backward(rows.copy(), rows.copy(), *jit.attention_block(rows.copy(), column, column, 1)[1:3], 1)


def _updates(row: Array) -> None:
    p, mean = row.copy(), row.copy()
    jit.sgd(p, row, None, 0.1, 0.0, 0.0, 0.0, False)
    jit.sgd(p, row, mean, 0.1, 0.9, 0.0, 0.0, False)
    jit.sgd_velocity(p, row, mean, 0.1, 0.9, 0.0, 0.0, False)
    jit.l2_norm(row)


def _adam(row: Array) -> None:
    jit.adam(row.copy(), row, row.copy(), row.copy(), 1, 0.1, 0.9, 0.999, 1e-8, 0.0, False)


def _adaptive_updates(row: Array) -> None:
    p, mean, squares = row.copy(), row.copy(), row.copy()
    jit.adagrad(p, row, squares, 0.1, 1e-8, 0.0)
    jit.rmsprop(p, row, squares, None, None, 0.1, 0.99, 1e-8, 0.0, 0.0)
    jit.lars(p, row, mean, 0.1, 0.9, 0.0)
    jit.lamb_direction(p, row, mean, squares, 1, 0.9, 0.999, 1e-8, 0.0)


def _other_activations(rows: Array) -> None:
    for elementwise in (jit.exp, jit.sigmoid, jit.softplus, jit.log_sigmoid):
        elementwise(rows)
    for derivative in (jit.sigmoid_backward, jit.softplus_backward, jit.log_sigmoid_backward):
        derivative(rows, rows)


def _powers_and_remainders(rows: Array) -> None:
    for exponent in (3, -1, -2, 1.5):
        jit.power(rows, exponent)
    jit.remainder(rows, rows)
    jit.floor_divide(rows, rows)


def _reductions(rows: Array) -> None:
    for axis in (0, 1, None):
        jit.sum(rows, axis)
        jit.mean(rows, axis)
    jit.sum(rows.reshape(4, 2, 2), (0, 2))


def _products_and_running_sums(rows: Array) -> None:
    for axis in (0, 1, None):
        jit.prod(rows, axis)
    jit.cumsum(rows, 0)


def _extrema(rows: Array) -> None:
    for axis in (0, 1, None):
        highest = jit.max(rows, axis, True)
        jit.extremum_backward(highest, rows, highest, axis)
        jit.min(rows, axis)


def _lstm(rows: Array) -> None:
    gates = np.ones((4, 16), rows.dtype)
    jit.lstm_cell_backward(rows, rows, gates, *jit.lstm_cell(gates, rows)[1:])


def _sixteen_bits() -> None:
    single = np.ones(4, dtype=np.float32)
    half = conversions.to_float16(single)
    conversions.from_float16(half)
    conversions._to_float16(single.view(np.uint32), single, half.view(np.uint16))  # if the processor has no instruction
    conversions._from_float16(half.view(np.uint16), single.view(np.uint32))
    conversions.from_bfloat16(conversions.to_bfloat16(single))


def _sparse(row: Array) -> None:
    jit.sparse_logistic_epoch(row.copy(), row, np.arange(4, dtype=np.int32), np.array([0, 4]), row[:1], 0.1)


def _compress(row: Array) -> None:
    few_entries.candidates(row, 1)
    few_entries.larger_than(row, 0.5)
    few_entries.add_velocity(row.copy(), row.copy(), row, 0.9)
    few_bits.partial_sums(row, row.size, True)
    few_bits.sums_by_sign(row, row.size)
    symbols = few_bits.levels_at_random(row, np.ones(1), row.size, 1, np.ones(row.size))
    few_bits.numbers_of_levels(symbols, row[:1], row.size, 1)
    few_bits.two_values(symbols, np.ones((2, 1), row.dtype))
    few_bits.unpack_pairs(few_bits.pack_pairs(symbols), symbols.size)
    few_bits.unpack_trits(few_bits.pack_trits(symbols), symbols.size)


def _rows(dtype: str) -> Array:
    return np.ones((4, 4), dtype)


Family = dict[str, Callable[[str], Any]]

FAMILIES_OF_MODELS: tuple[Family, ...] = (
    {
        "sliding_convolutions": lambda dtype: _convolve(dtype, filters=1),
        "convolutions_by_product": lambda dtype: _convolve(dtype, MANY_FILTERS),
        "convolutions_of_pixels": _convolve_pixels,
    },
    {
        "batch_norms_of_rows": lambda dtype: _batch_norm(_rows(dtype)),
        "layer_norms": lambda dtype: _layer_norm(np.ones((2, 32), dtype)),
        "batch_norms_of_images": lambda dtype: _batch_norm(np.ones((2, 4, 64), dtype)),
        "sums_of_rows": lambda dtype: (jit.sum_rows(_rows(dtype)), jit.mean(_rows(dtype))),
        "sums_of_channels": lambda dtype: jit.sum_channels(np.ones((2, 4, 2, 2), dtype)),
        "sums": lambda dtype: (jit.sum(_rows(dtype), 0), jit.sum(_rows(dtype))),
    },
    {
        "average_pooling_of_tiles": lambda dtype: _avg_pool(dtype, (2, 2), (4, 4)),
        "average_pooling": lambda dtype: _avg_pool(dtype, (2, 1)),
        "max_pooling": _max_pool,
    },
    {
        "losses": lambda dtype: _losses(_rows(dtype)),
        "adaptive_updates": lambda dtype: _adaptive_updates(np.ones(4, dtype)),
        "adam": lambda dtype: _adam(np.ones(4, dtype)),
        "attention": lambda dtype: _attention(_rows(dtype)),
        "updates": lambda dtype: _updates(np.ones(4, dtype)),
        "embedding_of_few_rows": lambda dtype: jit.embedding_backward(
            np.ones((65, 1), dtype), np.zeros(65, dtype=np.int64), 1
        ),
        "gelu": lambda dtype: jit.gelu_backward(_rows(dtype), jit.gelu(_rows(dtype))),
        "relu": lambda dtype: jit.relu_backward(_rows(dtype), jit.relu(_rows(dtype))),
        "tanh": lambda dtype: jit.tanh_backward(_rows(dtype), _rows(dtype)),
    },
)
"""What training calls. The steps of a family have most code in common; what takes longest to compile comes first."""

OF_EVERY_MODEL = {"losses", "sums_of_rows", "updates"}  # linear layers, the loss and SGD
OF_MODEL = {
    "mlp": OF_EVERY_MODEL | {"relu"},
    "lenet": OF_EVERY_MODEL | {"sliding_convolutions", "average_pooling_of_tiles", "sums_of_channels", "tanh"},
    "resnet": OF_EVERY_MODEL
    | {"sliding_convolutions", "batch_norms_of_rows", "batch_norms_of_images", "convolutions_of_pixels", "relu"},
    "gpt": OF_EVERY_MODEL | {"layer_norms", "attention", "adam", "embedding_of_few_rows", "gelu"},
}
"""What training one model calls."""

OTHER_FAMILIES: tuple[Family, ...] = (
    {
        "group_norms": _group_norm,
        "layer_norms_of_short_rows": lambda dtype: _layer_norm(_rows(dtype)),
    },
    {
        "softmax": lambda dtype: [
            jit.softmax_backward(_rows(dtype), jit.softmax(_rows(dtype), axis), axis) for axis in (0, 1)
        ],
        "log_softmax": lambda dtype: [
            jit.log_softmax_backward(_rows(dtype), jit.log_softmax(_rows(dtype), axis), axis) for axis in (0, 1)
        ],
        "attention_in_blocks": lambda dtype: _attention_in_blocks(_rows(dtype)),
    },
    {
        "reductions": lambda dtype: _reductions(_rows(dtype)),
        "extrema": lambda dtype: _extrema(_rows(dtype)),
        "products_and_running_sums": lambda dtype: _products_and_running_sums(_rows(dtype)),
    },
    {
        "other_activations": lambda dtype: _other_activations(_rows(dtype)),
        "powers_and_remainders": lambda dtype: _powers_and_remainders(_rows(dtype)),
        "sixteen_bits": lambda dtype: _sixteen_bits(),
        "convolution_by_loops": _convolve_by_loops,
        "lstm": lambda dtype: _lstm(_rows(dtype)),
        "sparse": lambda dtype: _sparse(np.ones(4, dtype)),
    },
    {
        "compressors": lambda dtype: _compress(np.ones(4, dtype)),
    },
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
    gc.disable()  # softmax and layer norms: 4 % less time than with a collection for 200,000 objects, 270 MB not 249
    while True:
        name, dtype = wanted.get().split()
        STEPS[name](dtype)
        print(name, flush=True)


if __name__ == "__main__":
    main()
