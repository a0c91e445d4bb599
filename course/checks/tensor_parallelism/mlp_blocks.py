"""An MLP whose hidden units are divided: cases, the right results of each rank, and what known mistakes give."""

from __future__ import annotations

import numpy as np

from course.checks.tensor_parallelism.divided_runs import Array, Divided, Named, Rank, shards
from course.checks.tensor_parallelism.linear_layers import GRADIENT_DIVIDED, TINY, of_bias
from course.judging import Answer
from course.probes.tensor_parallelism import Stored
from minidl.random import Purpose, stream

Case = tuple[int, int, int, int]
"""(p, B, d, h)"""

SCALE = np.sqrt(2 / np.pi)


def gelu(z: Array) -> Array:
    """The GELU, as in the assignment."""
    return 0.5 * z * (1 + np.tanh(SCALE * (z + 0.044715 * z**3)))


def gelu_slope(z: Array) -> Array:
    """The derivative of gelu."""
    t = np.tanh(SCALE * (z + 0.044715 * z**3))
    return 0.5 * (1 + t) + 0.5 * z * (1 - t**2) * SCALE * (1 + 3 * 0.044715 * z**2)


def block(answer: Answer, case: Case, seed: int, *, is_limited: bool = False) -> Divided:
    """`mlp` on p ranks. is_limited: a rank reads its shards only, once."""
    p, B, d, h = case
    rng = stream(Purpose.MANUAL, seed, "MLP", p, B, d, h)
    x, g = rng.normal(size=(B, d)), rng.normal(size=(B, d))
    g[0] *= TINY
    w1, b1 = rng.normal(size=(d, h)), rng.normal(size=h)
    w2, b2 = rng.normal(size=(h, d)), rng.normal(size=d)
    z = x @ w1 + b1
    a, gz = gelu(z), g @ w2.T * gelu_slope(z)
    y, gx = a @ w2 + b2, gz @ w1.T
    partial_sums = [x[:, own] @ w1[own] for own in shards(d, p)]
    of_partial_sums = [sum(gelu(part + bias) for part in partial_sums) for bias in (0.0, b1)]
    ranks = []
    for own in shards(h, p):
        rows = np.zeros(w2.shape, bool)
        rows[own] = True
        file_1, file_2 = (
            Stored("w1", w1, rows.T if is_limited else None),
            Stored("w2", w2, rows if is_limited else None),
        )
        given: Named = {"x": x, "w1": file_1, "b1": b1, "w2": file_2, "b2": b2, "g": g}
        wanted: Named = {
            "y": y,
            "gx": gx,
            "gw1": x.T @ gz[:, own],
            "gb1": gz[:, own].sum(axis=0),
            "gw2": a[:, own].T @ g,
            "gb2": g.sum(axis=0),
        }
        ranks.append(Rank(given, wanted, mistakes_of(x, w1, b1, w2, b2, g, own, p, wanted, of_partial_sums)))
    return Divided(answer, f"B={B}, d={d}, h={h}", ranks)


def mistakes_of(
    x: Array,
    w1: Array,
    b1: Array,
    w2: Array,
    b2: Array,
    g: Array,
    own: slice,
    p: int,
    wanted: Named,
    of_partial_sums: list[Array],
) -> dict[str, Named]:
    """What known mistakes give on the rank with the hidden units `own`."""
    z = x @ w1 + b1
    a, slope = gelu(z), gelu_slope(z)
    without_b1, with_b1 = of_partial_sums
    y, gx = wanted["y"], wanted["gx"]
    straight = g @ w2.T
    complete = "This belongs to this rank's hidden units alone: it is not summed over the ranks."
    found: dict[str, Named] = {
        "y": {
            "The bias b2 is added p times: add it after the sum over the ranks.": y + (p - 1) * b2,
            "The bias b2 is missing.": y - b2,
            "This is a partial sum: the other ranks have the rest of the hidden units.": a[:, own] @ w2[own] + b2,
            "This is a partial sum, and b2 is missing.": a[:, own] @ w2[own],
            "This is the mean over the ranks, not the sum.": (y - b2) / p + b2,
            "The bias b1 is missing.": gelu(x @ w1) @ w2 + b2,
            "The GELU between the layers is missing.": z @ w2 + b2,
            "The GELU is computed of partial sums of the hidden units, and b1 is missing.": without_b1 @ w2 + b2,
            "The GELU is computed of partial sums of the hidden units, each with b1.": with_b1 @ w2 + b2,
            "The output has no GELU.": gelu(y),
        },
        "gx": {
            "This is a partial sum: all hidden units depend on x.": (straight * slope)[:, own] @ w1[:, own].T,
            GRADIENT_DIVIDED: gx / p,
            "The slope of the GELU is missing.": straight @ w1.T,
            "gelu_slope is taken of z, the input of the GELU, not of its output.": (straight * gelu_slope(a)) @ w1.T,
            "The gradient passes the GELU by its slope: multiply with gelu_slope(z), not with gelu(z).": (straight * a)
            @ w1.T,
        },
        "gw1": {
            "The slope of the GELU is missing.": x.T @ straight[:, own],
            "gelu_slope is taken of z, the input of the GELU, not of its output.": x.T
            @ (straight * gelu_slope(a))[:, own],
            "This is that of all hidden units. Each rank returns that of its own.": x.T @ (straight * slope),
        },
        "gb1": {
            "The slope of the GELU is missing.": straight[:, own].sum(axis=0),
            "This is that of all hidden units. Each rank returns that of its own.": (straight * slope).sum(axis=0),
            "gb1 is the sum over the samples.": (straight * slope)[:, own],
        },
        "gw2": {
            "The input of the second layer is gelu(z), not z.": z[:, own].T @ g,
            "This is that of all hidden units. Each rank returns that of its own.": a.T @ g,
        },
        "gb2": of_bias(g, p),
    }
    for name in ("gw1", "gb1", "gw2"):
        found[name][complete] = p * wanted[name]
        found[name]["This is the right gradient divided by p."] = wanted[name] / p
        if wanted[name].ndim == 2:
            found[name]["This is the transposed gradient."] = wanted[name].T
    return found
