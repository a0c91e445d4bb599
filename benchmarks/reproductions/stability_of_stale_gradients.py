"""Stale gradients: how large a step may be when every gradient is tau updates old.

On a parabola of curvature 1, gradient descent with gradients that are tau updates old is x <- x - c x', where x' is
what x was tau updates ago and c the rate times the curvature. It converges if and only if
c < 2 sin(pi / (2 (2 tau + 1))): 2 without staleness, about pi / (2 tau) with much of it. Hence the rule of thumb that
the rate must fall in proportion to the number of asynchronous workers.

Here the limit is found by bisection on the roots of the recurrence, with and without momentum, and then the real
parameter server trains one weight with tau + 1 simulated workers, 5 % below the limit and 5 % above it.

What must show: bisection and formula agree to 1e-6; the limit with momentum m is at most (1 - m) times the one without,
and not less than 0.7 times that (for tau = 1 it is exactly 1 - m times); the parameter server follows the recurrence
and converges below the limit, not above it.
"""

from __future__ import annotations

from functools import partial
from math import pi, sin, sqrt
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.elastic_averaging import Point, half_square
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster, optim, parallel
from minidl.data import Dataset, Splits
from minidl.plots import style

TITLE = "The largest stable rate falls with the staleness"
PUBLISHED = {0: 2.0, 1: 1.0, 2: 0.61803, 3: 0.44504, 4: 0.34730, 8: 0.18454, 16: 0.09516}
MOMENTA = (0.0, 0.5, 0.9)
UPDATES, SAMPLES = 1000, 100


def formula(tau: int) -> float:
    return 2 * sin(pi / (2 * (2 * tau + 1)))


def limit(tau: int, momentum: float = 0.0) -> float:
    """The largest c for which x' = x + momentum (x - x_before) - c x_(tau updates ago) converges, by bisection."""
    low, high = 0.0, 8.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if growth(middle, tau, momentum) < 1 else (low, middle)
    return low


def growth(c: float, tau: int, momentum: float = 0.0) -> float:
    """The factor by which x finally grows per update: the largest root of the recurrence's polynomial."""
    polynomial = np.zeros(tau + 3)
    polynomial[:3] = 1.0, -1 - momentum, momentum
    polynomial[tau + 1] += c
    return float(abs(np.roots(polynomial)).max())


def recurrence(c: float, tau: int) -> float:
    """|x| after UPDATES updates from x = 1; gradients older than the start are those of x = 1."""
    x = [1.0] * (tau + 1)
    for _ in range(UPDATES):
        x.append(x[-1] - c * x[-1 - tau])
    return abs(x[-1])


def trained(c: float, tau: int) -> float:
    """|x| after UPDATES updates by a parameter server with tau + 1 workers that take turns."""
    points = Dataset(np.ones((SAMPLES, 1)), np.zeros((SAMPLES, 1)))
    job = parallel.Job(
        model=Point,
        data=Splits(points, Dataset(points.x[:1], points.y[:1])),
        optimizer=partial(optim.SGD, lr=c),
        loss=half_square,
        batch_size=1,
        epochs=UPDATES // SAMPLES,
    )
    report = parallel.train(job, parallel.ParameterServer(), tau + 1, cluster.Simulation(trace="ledger"))
    return sqrt(2 * report.history[-1]["test_loss"])


def experiment(reproduction: Reproduction) -> None:
    limits = {tau: [limit(tau, momentum) for momentum in MOMENTA] for tau in PUBLISHED}
    reproduction.table(
        ["staleness", "known limit", "formula", "bisection", *(f"momentum {m}: limit / limit" for m in MOMENTA[1:])],
        [
            [tau, PUBLISHED[tau], formula(tau), found[0], *(x / found[0] for x in found[1:])]
            for tau, found in limits.items()
        ],
    )
    worst = max(abs(found[0] - formula(tau)) for tau, found in limits.items())
    reproduction.accept(worst < 1e-6, f"bisection and formula agree to 1e-6: largest difference {worst:.0e}")
    ratios = [
        x / found[0] / (1 - m) for tau, found in limits.items() if tau for m, x in zip(MOMENTA, found, strict=True) if m
    ]
    reproduction.accept(
        min(ratios) > 0.7 and max(ratios) < 1 + 1e-6,
        f"under staleness momentum m shrinks the limit to {min(ratios):.2f} to {max(ratios):.2f} times 1 - m",
    )
    rows = []
    for tau in (0, 1, 2, 4, 8, 16):
        for share in (0.95, 1.05):
            c = share * formula(tau)
            rows.append([tau, share, growth(c, tau), recurrence(c, tau), trained(c, tau)])
    reproduction.table(["staleness", "rate / limit", "growth an update", "recurrence", "parameter server"], rows)
    off = max(abs(server / expected - 1) for *_, expected, server in rows)
    reproduction.accept(
        off < 1e-6, f"the parameter server follows the recurrence: largest relative difference {off:.0e}"
    )
    reproduction.accept(
        all((server > 1) == (share > 1) for _, share, _, _, server in rows),
        f"after {UPDATES} updates the weight is below 1 at 0.95 of the limit, above it at 1.05, for every staleness",
    )
    reproduction.picture(picture())


@style.applied()
def picture() -> Figure:
    """The limit against the number of workers that take turns, one line per momentum."""
    figure, (axes,) = style.new_figure(6.5, 3.8)
    workers = np.arange(2, 33)
    axes.plot(workers, [formula(int(p) - 1) for p in workers], color=style.SERIES[0], label="formula, no momentum")
    for i, momentum in enumerate(MOMENTA):
        found = [limit(int(p) - 1, momentum) for p in workers]
        look: dict[str, Any] = {"ls": "none", "marker": "osD"[i], "ms": 3, "color": style.SERIES[i]}
        axes.plot(workers, found, **look, label=f"bisection, momentum {momentum:g}")
    axes.plot(workers[1:], pi / 2 / (workers[1:] - 1), ls=style.DASHES[1], color="0.5", label="pi / (2 staleness)")
    axes.set(xscale="log", yscale="log", xlabel="workers that take turns (staleness + 1)")
    axes.set(ylabel="largest stable rate x curvature", title="The largest stable rate")
    axes.set_xticks([2, 4, 8, 16, 32], ["2", "4", "8", "16", "32"])
    axes.minorticks_off()
    axes.grid(color="0.92", linewidth=0.6)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    style.label_source(figure, "formula", "roots of the recurrence of a parabola")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
