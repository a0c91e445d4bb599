"""Linear layers divided by columns and by rows: cases, the right shards, and what known mistakes give."""

from __future__ import annotations

from course.checks.tensor_parallelism.divided_runs import Array, Divided, Named, Rank, uneven_shards
from course.judging import Answer
from minidl.random import Purpose, stream

Case = tuple[int, int, int, int]
"""(p, B, m, n)"""

TINY = 1e-8
"""A factor of some numbers: what is small is not 0."""

GRADIENT_DIVIDED = "This is the right gradient divided by p. The ranks have different terms of one sum: it is no mean."
NO_BIAS = "The bias is missing."


def layer(p: int, B: int, m: int, n: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """x, w, b and g of a whole layer."""
    rng = stream(Purpose.MANUAL, seed, "linear layer", p, B, m, n)
    x, w, b, g = rng.normal(size=(B, m)), rng.normal(size=(m, n)), rng.normal(size=n), rng.normal(size=(B, n))
    g[0] *= TINY
    return x, w, b, g


def of_bias(g: Array, p: int) -> Named:
    return {
        "The bias has one element for each column of w: sum g over the samples.": g,
        "gb is the sum of g over the samples, not its mean.": g.mean(axis=0),
        "gb is all-reduced, but the ranks have the same g: it is added p times.": p * g.sum(axis=0),
        "This is the right gradient divided by p.": g.sum(axis=0) / p,
        "gb sums g over the samples, its rows, not over the columns.": g.sum(axis=1),
    }


def by_columns(answer: Answer, case: Case, seed: int) -> Divided:
    """`column_linear` on p ranks."""
    p, B, m, n = case
    x, w, b, g = layer(p, B, m, n, seed)
    gx, ranks = g @ w.T, []
    for own in uneven_shards(n, p, seed):
        v, e, h = w[:, own], b[own], g[:, own]
        partial = h @ v.T
        mistakes: dict[str, Named] = {
            "y": {
                NO_BIAS: x @ v,
                "y is divided by columns and complete on its rank: it is not summed over the ranks.": x @ v * p + e,
                "The bias is added p times.": x @ v + p * e,
                "This is whole y. Each rank returns its own columns.": x @ w + b,
            },
            "gx": {
                "This is a partial sum: the columns of the other ranks depend on x, too.": partial,
                GRADIENT_DIVIDED: gx / p,
            },
            "gw": {
                "This is the transposed gradient: gw has the shape of w.": h.T @ x,
                "gw is the sum over the samples, not the mean.": x.T @ h / B,
                "This is the right gradient divided by p.": x.T @ h / p,
                "This is the gradient of whole w. Each rank returns that of its own columns.": x.T @ g,
            },
            "gb": {k: v for k, v in of_bias(h, p).items() if "p times" not in k},
        }
        wanted = {"y": x @ v + e, "gx": gx, "gw": x.T @ h, "gb": h.sum(axis=0)}
        ranks.append(Rank({"x": x, "w": v.copy(), "b": e.copy(), "g": h.copy()}, wanted, mistakes))
    return Divided(answer, f"B={B}, m={m}, n={n}", ranks)


def by_rows(answer: Answer, case: Case, seed: int) -> Divided:
    """`row_linear` on p ranks."""
    p, B, m, n = case
    x, w, b, g = layer(p, B, m, n, seed)
    ranks = []
    for own in uneven_shards(m, p, seed):
        z, v = x[:, own], w[own]
        mistakes: dict[str, Named] = {
            "y": {
                "The bias is added p times: add it after the sum over the ranks.": x @ w + p * b,
                NO_BIAS: x @ w,
                "This is a partial sum: the other ranks have the rest of x and w.": z @ v + b,
                "This is a partial sum, and the bias is missing.": z @ v,
                "This is the mean over the ranks, not the sum.": x @ w / p + b,
                "The sum of the ranks, bias included, is divided by p.": (x @ w) / p + b / p,
            },
            "gx": {
                "gx is that of this rank's columns of x, and is complete: it is not summed over the ranks.": p
                * (g @ v.T),
                "This is the right gradient divided by p.": g @ v.T / p,
                "This is whole gx. Each rank returns the gradient of its own columns of x.": g @ w.T,
            },
            "gw": {
                "This is the transposed gradient: gw has the shape of w.": g.T @ z,
                "gw is the sum over the samples, not the mean.": z.T @ g / B,
                "g is whole on each rank already: it is not summed over the ranks.": p * (z.T @ g),
                "This is the right gradient divided by p.": z.T @ g / p,
                "This is the gradient of whole w. Each rank returns that of its own rows.": x.T @ g,
            },
            "gb": of_bias(g, p),
        }
        wanted = {"y": x @ w + b, "gx": g @ v.T, "gw": z.T @ g, "gb": g.sum(axis=0)}
        ranks.append(Rank({"x": z.copy(), "w": v.copy(), "b": b, "g": g}, wanted, mistakes))
    return Divided(answer, f"B={B}, m={m}, n={n}", ranks)
