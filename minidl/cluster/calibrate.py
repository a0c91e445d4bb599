"""Calibration: fit a Network to the measured messages of this machine.

    t(n) = alpha + beta n      a message of n bytes: half of the round trip of a ping-pong, or an exchange
    r(n) = c + gamma n         the reduction of n bytes; the model leaves out c, the time of the call itself

The fit is least squares with relative weights: each residual is divided by the time itself, so the microseconds of
small messages count as much as the milliseconds of large ones. Each point is the median of many repetitions. Each
repetition measures every size, so a moment in which the machine is busy slows all sizes alike. Each repetition begins
with a message that is not counted, since the first one after the largest size takes twice as long.

A blocking ping-pong packs the message, passes it to the system, wakes the receiver (which sleeps until it arrives),
moves it through memory and unpacks it. On processes waking takes most of alpha. A collective pays for it
whenever a rank sleeps until its partner is ready, and pays less when the message is there first.

An exchange (both ranks send and receive at once, as in a ring) should take as long as one message on a full-duplex
network. Between processes on two cores it took 1.4 to 3 times as long. A likely reason is that ranks that take turns
can share one core, since one of them is always asleep; another is that large messages share the memory bus. So
calibrate with the pattern that you want to predict. With more ranks than cores, ranks also wait for a core; that time
belongs to the scheduler and to no network.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from minidl.arguments import one_of, whole_number
from minidl.cluster.comm import Communicator
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.protocol import EAGER_BYTES, Array, Engine
from minidl.cluster.launch import launch
from minidl.plots.scaling import draw_fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = tuple(64 * 4**k for k in range(9))  # 64 bytes to 4 MiB, on both sides of EAGER_BYTES
PATTERNS = ("ping-pong", "exchange")
WARM_UP = 5  # first messages of each size, not counted: they create and map segments and fill caches

Points = list[tuple[int, float]]  # bytes, seconds


def calibrate(
    nodes: int = 2,
    on: str | Engine = "processes",
    network: Network | str | None = None,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 100,
    pattern: str = "ping-pong",
    timeout: float = 60.0,
) -> Network:
    """Measure messages and reductions on an engine and return the Network that fits them best.

    Ranks 0 and 1, 2 and 3, ... send each other messages, all pairs at once.

    Parameters
        nodes, on, network, timeout   as in `launch`
        sizes         bytes of the messages, two different sizes or more
        repetitions   messages of each size
        pattern       "ping-pong", in turns; "exchange", both at once by `sendrecv`, as in a ring

    Returns
        the Network; `.measured` has (bytes, seconds) for each size, and `.residuals` measured / fitted - 1. Look at
        them, or at `plot_fit`, before you trust a prediction.

    Raises
        ValueError   fewer than 2 nodes, fewer than two sizes, no repetitions, or an unknown pattern

    >>> from minidl import cluster
    >>> network = cluster.calibrate(on="simulation", network=cluster.Network(1e-5, 1e-9), repetitions=1)
    >>> round(network.alpha, 12), round(network.beta, 12)
    (1e-05, 1e-09)

    Source: Hockney (1994), The communication challenge for MPP, Parallel Computing 20(3), section 2: the two parameters
    of a line through the times of a ping-pong.
    """
    whole_number("nodes", nodes, at_least=2)
    whole_number("repetitions", repetitions, at_least=1)
    one_of("pattern", pattern, PATTERNS)
    sizes = sorted({whole_number("each of sizes (bytes)", nbytes, at_least=0) for nbytes in sizes})
    if len(sizes) < 2:
        raise ValueError(f"sizes must be two different sizes or more, got {sizes}")
    run = launch(_measure, (sizes, repetitions, pattern), nodes=nodes, on=on, network=network, timeout=timeout)
    messages = _medians(sizes, [messages for messages, _ in run.results if messages])
    reductions = _medians(sizes, [reductions for _, reductions in run.results])
    alpha, beta = fit_line(messages)
    _, gamma = fit_line([(nbytes, seconds) for nbytes, seconds in reductions if nbytes > 0])
    return Network(alpha, beta, gamma, measured=tuple(messages))


def fit_line(points: Points) -> tuple[float, float]:
    """Return a, b >= 0 of the line t = a + b n through the points (n, t) with balanced residuals t / (a + b n) - 1.

    Least squares, repeated until the line no longer changes: each point is weighted by 1 / the time of the latest line,
    at first by 1 / its measured time. Then the relative residuals sum to zero. Weights from measured times alone would
    favour times that are too small. Source: McCullagh, Nelder (1989), Generalized Linear Models, section 2.5, iterative
    weighted least squares, for errors that grow with the mean (chapter 8).

    >>> a, b = fit_line([(0, 1.0), (10, 3.0), (20, 5.0)])
    >>> round(a, 9), round(b, 9)
    (1.0, 0.2)
    """
    n, t = np.array([point for point in points if point[1] > 0], dtype=np.float64).reshape(-1, 2).T
    if not len(t):
        return 0.0, 0.0
    line = t
    for _ in range(100):
        a, b = _weighted_line(n, t, 1 / line)
        before, line = line, a + b * n
        if not line.all() or np.allclose(line, before, rtol=1e-12, atol=0.0):
            break
    return float(a), float(b)


def _weighted_line(n: Array, t: Array, weights: Array) -> tuple[float, float]:
    """Return a, b >= 0 with the least sum of (weight (a + b n - t))^2."""
    columns, target = np.stack([weights, n * weights]), t * weights
    scale = np.linalg.norm(columns, axis=1)
    scale[scale == 0] = 1.0
    a, b = np.linalg.lstsq((columns.T / scale), target, rcond=None)[0] / scale
    if min(a, b) >= 0:
        return a, b
    alone = [float(column @ target / (column @ column)) for column in columns]  # the best a or b if the other is 0
    return (0.0, alone[1]) if a < 0 else (alone[0], 0.0)


def plot_fit(network: Network, path: str | os.PathLike[str] | None = None, source: str = "measured") -> Figure:
    """Draw measured times and the fitted line, and the residuals below.

    Parameters
        network   the result of `calibrate`
        path      file to save the figure to; None: do not save
        source    origin of the points for the caption, "measured" or "simulated"
    """
    if not network.measured:
        raise ValueError(f"{network!r} was not fitted to anything: make it with cluster.calibrate()")
    figure = draw_fit(
        network.measured,
        network.alpha,
        network.beta,
        source=source,
        limit=EAGER_BYTES,
        limit_name="eager | synchronous",
        title="One message",
    )
    if path is not None:
        figure.savefig(path)
    return figure


def _measure(
    comm: Communicator, sizes: Sequence[int], repetitions: int, pattern: str
) -> tuple[list[list[float]], list[list[float]]]:
    """Return the seconds of each message that this rank times (none if it only answers), and of each reduction."""
    partner = comm.rank ^ 1
    send_and_receive = _exchange if pattern == "exchange" else _half_ping_pong
    rounds = range(WARM_UP + repetitions)
    messages: list[list[float]] = []
    comm.barrier()
    if partner < comm.size:
        buffers = [(np.zeros(nbytes, np.uint8), np.empty(nbytes, np.uint8)) for nbytes in sizes]
        settle = buffers[0]  # not counted: after the largest message the partner is still busy, and caches are cold
        times = [[send_and_receive(comm, partner, x, out) for x, out in (settle, *buffers)][1:] for _ in rounds]
        if pattern == "exchange" or comm.rank < partner:  # the lower rank times a ping-pong's round trip
            messages = _by_size(times)
    comm.barrier()  # reductions on all ranks at once, as in a collective: they share the memory bus
    arrays = [(np.zeros(nbytes // 4, np.float32), np.ones(nbytes // 4, np.float32)) for nbytes in sizes]
    return messages, _by_size([[_reduction(comm, a, b) for a, b in arrays] for _ in rounds])


def _by_size(times: list[list[float]]) -> list[list[float]]:
    """The times of each size, one from each round after the warm-up."""
    return [list(of_a_size) for of_a_size in zip(*times[WARM_UP:], strict=True)]


def _reduction(comm: Communicator, a: Array, b: Array) -> float:
    began = comm.now()
    comm.reduce_into(a, b)
    return comm.now() - began


def _half_ping_pong(comm: Communicator, partner: int, x: Array, out: Array) -> float:
    began = comm.now()
    if comm.rank < partner:
        comm.send(x, partner)
        comm.recv(partner, out=out)
    else:
        comm.recv(partner, out=out)
        comm.send(x, partner)
    return (comm.now() - began) / 2


def _exchange(comm: Communicator, partner: int, x: Array, out: Array) -> float:
    began = comm.now()
    comm.sendrecv(x, partner, partner, out=out)
    return comm.now() - began


def _medians(sizes: Sequence[int], ranks: Sequence[list[list[float]]]) -> Points:
    """The median over all repetitions of all ranks, for each size."""
    return [
        (nbytes, float(np.median(np.concatenate([times[index] for times in ranks]))))
        for index, nbytes in enumerate(sizes)
    ]
