"""L-BFGS on vectors that are known by their names alone, so that they may lie anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from minidl.arguments import real_number, whole_number
from minidl.parallel.servers.store import Store
from minidl.parallel.servers.vectors import Vectors

DECREASE = 1e-4  # c1 of the Wolfe conditions


class Pair(NamedTuple):
    """The names of a step s and of the change y of the gradient over it, and their scalar product, above 0."""

    s: str
    y: str
    product: float


def direction(vectors: Vectors | Store, pairs: Sequence[Pair], gradient: str = "g", result: str = "d") -> None:
    """The two-loop recursion: make `result` the quasi-Newton direction -H g, from pairs, the oldest first.

    H approximates the inverse of the Hessian: it starts as (s y / y y) I of the newest pair and is updated by each pair
    (BFGS). Without pairs, H = I. Two scalar products and two axpy a pair, and one scalar product more.

    References
        Nocedal, Updating quasi-Newton matrices with limited storage (Mathematics of Computation 35, 1980);
        Nocedal and Wright, Numerical optimization (2006), algorithm 7.4.
    """
    vectors.copy(gradient, result)
    vectors.scale(-1.0, result)
    alphas = []
    for pair in reversed(pairs):
        alphas.append(vectors.dot(pair.s, result) / pair.product)
        vectors.axpy(-alphas[-1], pair.y, result)
    if pairs:
        vectors.scale(pairs[-1].product / vectors.dot(pairs[-1].y, pairs[-1].y), result)
    for pair, alpha in zip(pairs, reversed(alphas), strict=True):
        vectors.axpy(alpha - vectors.dot(pair.y, result) / pair.product, pair.s, result)


class LBFGS:
    """Minimises a function by limited-memory BFGS, a step at a time.

        w       changes by t d, for d = -H g by the two-loop recursion from the last `history` steps
        t       1, doubled while it is too short, then bisected between the longest that was too short and the shortest
                that was too long, until the loss falls by at least 1e-4 t |slope| and the slope along d is at most
                `curvature` times as steep as at the beginning (the strong Wolfe conditions)

    Parameters
        vectors    `Vectors` or a `Store`, in which the point is "w"; the others (g, d, s0, y0, ...) are created there
        evaluate   function that returns the loss at the point "trial", and leaves its gradient there as "trial g"
        history    number of pairs (s, y) that are kept; each costs two vectors
        curvature  below 1, default 0.9. Nearly 0 makes the line search exact, so that n steps minimise a quadratic
                   function of n variables

    Attributes
        loss    at "w"; nan before the first step
        length  t of the last step
        pairs   the last steps, the oldest first

    The slope condition makes every product s y positive, as H needs. The first trial along a gradient alone is
    min(1, 1 / |g|).

    >>> import numpy as np
    >>> from minidl.parallel.servers.vectors import Vectors
    >>> vectors, scales = Vectors({"w": np.array([3.0, -2.0])}), np.array([1.0, 10.0])
    >>> def evaluate():
    ...     x = vectors.arrays["trial"]
    ...     vectors.arrays["trial g"] = scales * x
    ...     return float(scales @ x**2) / 2
    >>> lbfgs = LBFGS(vectors, evaluate)
    >>> while lbfgs.step():
    ...     pass
    >>> bool(lbfgs.loss < 1e-20)
    True

    References
        Liu and Nocedal, On the limited memory BFGS method for large scale optimization (1989); Nocedal and Wright
        (2006), equation 3.7. The bisection: Lewis and Overton, Nonsmooth optimization via quasi-Newton methods
        (Mathematical Programming 141, 2013), algorithm 2.6, there for the weak conditions.
    """

    def __init__(
        self, vectors: Vectors | Store, evaluate: Callable[[], float], history: int = 10, curvature: float = 0.9
    ) -> None:
        self.vectors, self.evaluate = vectors, evaluate
        self.history = whole_number("LBFGS: history", history, at_least=1)
        self.curvature = real_number("LBFGS: curvature", curvature, at_least=0, below=1)
        self.loss, self.length = math.nan, 0.0
        self.pairs: list[Pair] = []
        self._slots = 0

    def step(self, most: int = 30) -> bool:
        """Make a step by at most that many evaluations; return whether another call may go on from there.

        If no length satisfies the conditions, "w" stays, and the next step begins without pairs. False: there were
        none, so "w" is a minimum up to rounding, or `most` was too few. Raises ValueError if the loss is not finite
        where the first step begins; a trial where loss or slope are not finite is too long.
        """
        vectors, most = self.vectors, whole_number("LBFGS: most", most, at_least=1)
        if math.isnan(self.loss):
            vectors.copy("w", "trial")
            loss, most = self.evaluate(), most - 1
            if not math.isfinite(loss):
                raise ValueError(f'the loss is {loss} at the first "w": begin where it is finite')
            self.loss = loss
            vectors.copy("trial g", "g")
        direction(vectors, self.pairs)
        slope = vectors.dot("g", "d")
        length = 1.0 if self.pairs else min(1.0, 1 / math.sqrt(-slope)) if slope < 0 else 0.0
        low, high = 0.0, math.inf
        for _ in range(most if slope < 0 else 0):
            vectors.copy("w", "trial")
            vectors.axpy(length, "d", "trial")
            loss = self.evaluate()
            is_lower = math.isfinite(loss) and loss <= self.loss + DECREASE * length * slope
            steepness = vectors.dot("trial g", "d") / slope if is_lower else -math.inf
            if steepness < -self.curvature or not math.isfinite(steepness):
                high = length
            elif steepness > self.curvature:
                low = length
            else:
                self._accept(loss, length)
                return True
            length = (low + high) / 2 if high < math.inf else 2 * length
        had_pairs = bool(self.pairs)
        self.pairs.clear()
        return had_pairs

    def _accept(self, loss: float, length: float) -> None:
        vectors, slot = self.vectors, self._slots % self.history
        s, y = f"s{slot}", f"y{slot}"
        for new, old, change in (("trial", "w", s), ("trial g", "g", y)):
            vectors.copy(new, change)
            vectors.axpy(-1.0, old, change)
            vectors.copy(new, old)
        self.pairs = [*self.pairs, Pair(s, y, vectors.dot(s, y))][-self.history :]
        self._slots += 1
        self.loss, self.length = loss, length
