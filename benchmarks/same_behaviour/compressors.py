"""Every compressor: the bytes of its messages, what they decode to, error feedback, and sums over ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from minidl import cluster, compress, manual_seed
from minidl.cluster import Communicator

from .exact import events, exact, ledger

PLAIN: dict[str, compress.Compressor] = {
    "TopK": compress.TopK(0.1),
    "RandomK": compress.RandomK(0.1),
    "RandomK(unbiased)": compress.RandomK(0.3, unbiased=True, seed=4),
    "RandomK(own choices)": compress.RandomK(0.1, seed=None),
    "Threshold": compress.Threshold(1.0),
    "DGC": compress.DGC(0.1),
    "DGC(no masking)": compress.DGC(0.1, momentum=0.5, warmup=(), momentum_correction=False, masking=False),
    "QSGD": compress.QSGD(4),
    "QSGD(15 levels, bucket)": compress.QSGD(15, bucket=16),
    "QSGD(no bucket)": compress.QSGD(1, bucket=None),
    "OneBit": compress.OneBit(),
    "Sign": compress.Sign(),
    "Signum": compress.Signum(),
    "TernGrad": compress.TernGrad(),
    "TernGrad(clip)": compress.TernGrad(clip=2.5),
    "Half(fp16)": compress.Half(),
    "Half(bf16)": compress.Half("bf16"),
    "Lossless(QSGD, huffman)": compress.Lossless(compress.QSGD(7)),
    "Lossless(TernGrad, elias)": compress.Lossless(compress.TernGrad(), code="elias"),
    "PowerSGD": compress.PowerSGD(2),
    "PowerSGD(cold)": compress.PowerSGD(1, warm_start=False, seed=3),
    "QuantizedAllReduce(QSGD)": compress.QuantizedAllReduce(compress.QSGD(4)),
    "QuantizedAllReduce(TernGrad)": compress.QuantizedAllReduce(compress.TernGrad()),
}
WITH_FEEDBACK = (
    *("TopK", "RandomK", "RandomK(own choices)", "Threshold", "QSGD(15 levels, bucket)", "OneBit", "Sign"),
    *("Half(fp16)", "Half(bf16)", "PowerSGD"),
)
ON_RANKS: dict[str, compress.Compressor] = {
    **PLAIN,
    **{f"TopK({how})": compress.TopK(0.1, all_reduce=how) for how in ("recursive_doubling", "split")},
    **{f"Threshold({how})": compress.Threshold(0.5, all_reduce=how) for how in ("recursive_doubling", "split")},
}
SHAPES: dict[str, tuple[int, ...]] = {"matrix": (12, 9), "vector": (50,), "four axes": (4, 3, 3, 3), "one": (1,)}
JOINTLY = ("PowerSGD", "QuantizedAllReduce")  # no message of one rank stands for its array
STEPS = 20


def gradients(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Iterator[np.ndarray]:
    """One array a step, some of its entries zero."""
    random = np.random.default_rng([seed, len(shape)])
    for _ in range(STEPS):
        array = random.standard_normal(shape)
        yield np.where(random.random(shape) < 0.1, 0, array).astype(dtype)


def encoded(compressor: compress.Compressor, shape: tuple[int, ...], dtype: str) -> Any:
    """Message and decoded array of every step."""
    manual_seed(0)
    compressor = copy.deepcopy(compressor)
    results = []
    for array in gradients(shape, dtype):
        message = compressor.encode(array)
        results.append([message.data, message.nbytes, message.shape, str(message.dtype), compressor.decode(message)])
    return results


def fed_back(compressor: compress.Compressor, shape: tuple[int, ...]) -> Any:
    """The same with error feedback, and the residual after every step."""
    manual_seed(0)
    feedback = compress.ErrorFeedback(copy.deepcopy(compressor))
    results = []
    for array in gradients(shape, "float32"):
        message = feedback.encode(array)
        results.append([message.data, feedback.decode(message), feedback.residual])
    return results


def added_up(comm: Communicator, compressor: compress.Compressor, shape: tuple[int, ...]) -> list[Any]:
    """The sum over all ranks in every step."""
    compressor = copy.deepcopy(compressor)
    arrays = gradients(shape, "float32", seed=comm.rank)
    return [exact([compressor.begin_all_reduce(array, comm)(), comm.now()]) for array in arrays]


def over_ranks(compressor: compress.Compressor, nodes: int, shape: tuple[int, ...]) -> Any:
    """The sums, and what they cost."""
    args = (compressor, shape)
    run = cluster.launch(added_up, args=args, nodes=nodes, on="simulation", network="10gbe", seed=5, timeout=60.0)
    return {
        "results": run.results, "seconds": run.seconds, "ledger": ledger(run.trace), "events": events(run.trace)
    }  # fmt: skip


def bounds(compressor: compress.Compressor) -> Any:
    """What a compressor says of itself."""
    return {
        "text": repr(compressor),
        "squared error": [compressor.squared_error(size) for size in (None, 1, 10, 1000)],
        "bytes": [compressor.message_bytes(shape, np.dtype("float32")) for shape in SHAPES.values()],
    }


def feedback_around(compressor: compress.Compressor) -> Any:
    """Whether ErrorFeedback takes it, and by which error it does not."""
    return repr(compress.ErrorFeedback(compressor))


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for name, compressor in PLAIN.items():
        yield f"{name}: bounds", partial(bounds, compressor)
        yield f"{name}: ErrorFeedback", partial(feedback_around, compressor)
        if not name.startswith(JOINTLY):
            for text, shape in SHAPES.items():
                for dtype in ("float32", "float64"):
                    yield f"{name}: {text}, {dtype}", partial(encoded, compressor, shape, dtype)
    for name in WITH_FEEDBACK:
        for text in ("matrix", "vector"):
            if not name.startswith(JOINTLY):
                yield f"ErrorFeedback({name}): {text}", partial(fed_back, PLAIN[name], SHAPES[text])
    for name, compressor in ON_RANKS.items():
        for nodes in (1, 2, 3, 4):
            yield f"{name}: sum over {nodes}", partial(over_ranks, compressor, nodes, SHAPES["matrix"])
    for name in WITH_FEEDBACK:
        feedback = compress.ErrorFeedback(PLAIN[name])
        yield f"ErrorFeedback({name}): sum over 3", partial(over_ranks, feedback, 3, SHAPES["matrix"])
