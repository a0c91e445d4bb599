"""Calibration finds the network that messages went over; what it cannot explain stays visible."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from minidl import cluster
from minidl.cluster.calibrate import SIZES, WARM_UP, _measure, _medians, fit_line

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("pattern", ["ping-pong", "exchange"])
def test_on_a_simulated_network_it_finds_exactly_that_network(pattern: str) -> None:
    network = cluster.Network(alpha=3e-5, beta=2e-9, gamma=4e-10)
    found = cluster.calibrate(nodes=3, on="simulation", network=network, repetitions=2, pattern=pattern)
    assert (found.alpha, found.beta, found.gamma) == pytest.approx((3e-5, 2e-9, 4e-10), rel=1e-9)
    assert [nbytes for nbytes, _ in found.residuals] == list(SIZES)
    assert max(abs(residual) for _, residual in found.residuals) < 1e-9


def test_on_processes_it_measures_every_size_and_can_be_simulated_with() -> None:
    sizes = [0, 1000, 100_000, 1_000_000]
    network = cluster.calibrate(nodes=2, sizes=sizes, repetitions=5)
    assert network.alpha > 0
    assert min(network.beta, network.gamma) >= 0  # on a busy machine few repetitions may find no slope
    assert [nbytes for nbytes, _ in network.measured] == sizes
    for (nbytes, seconds), (_, residual) in zip(network.measured, network.residuals, strict=True):
        assert seconds == pytest.approx((network.alpha + network.beta * nbytes) * (1 + residual))

    def program(comm: cluster.Communicator) -> None:
        comm.send(np.zeros(1000, np.uint8), 1) if comm.rank == 0 else comm.recv(0)

    seconds = cluster.launch(program, nodes=2, on="simulation", network=network).seconds
    assert seconds == pytest.approx(network.alpha + 1000 * network.beta)


class BusyAtFirst:
    """A rank whose machine is busy in the first quarter of all operations: these take ten times as long."""

    rank, size = 0, 2

    def __init__(self, operations: int) -> None:
        self.seconds, self.done, self.busy = 0.0, 0, operations // 4

    def now(self) -> float:
        return self.seconds

    def barrier(self) -> None:
        pass

    def _take(self, seconds: float) -> None:
        self.done += 1
        self.seconds += seconds * (10 if self.done <= self.busy else 1)

    def send(self, x: np.ndarray, dst: int) -> None:
        self._take(1e-6 + x.nbytes * 1e-9)

    def recv(self, src: int, out: np.ndarray) -> None:
        self._take(1e-6 + out.nbytes * 1e-9)

    def reduce_into(self, a: np.ndarray, b: np.ndarray) -> None:
        self._take(a.nbytes * 1e-9)


def test_a_busy_moment_slows_all_sizes_alike_and_leaves_their_medians() -> None:
    sizes, repetitions = [0, 1000, 100_000], 10
    comm: Any = BusyAtFirst(operations=(2 * (len(sizes) + 1) + len(sizes)) * (WARM_UP + repetitions))
    messages, reductions = _measure(comm, sizes, repetitions, "ping-pong")
    assert dict(_medians(sizes, [messages])) == pytest.approx({n: 1e-6 + n * 1e-9 for n in sizes})
    assert dict(_medians(sizes, [reductions])) == pytest.approx({n: n * 1e-9 for n in sizes})


def test_the_fit_weighs_small_and_large_messages_alike_and_leans_to_neither_side() -> None:
    rng = np.random.default_rng(0)
    sizes = np.geomspace(10, 1e7, 400)
    times = (1e-5 + 1e-9 * sizes) * rng.uniform(0.5, 1.5, 400)
    alpha, beta = fit_line(list(zip(sizes.tolist(), times.tolist(), strict=True)))
    assert (alpha, beta) == pytest.approx((1e-5, 1e-9), rel=0.05)
    residuals = times / (alpha + beta * sizes) - 1
    assert residuals.sum() == pytest.approx(0, abs=1e-8)
    assert (residuals / (alpha + beta * sizes)).sum() == pytest.approx(0, abs=1e-3)  # nor small ones against large


def test_neither_parameter_becomes_negative() -> None:
    alpha, beta = fit_line([(1, 1.0), (2, 3.0)])  # the line through both begins below 0
    assert alpha == 0.0
    assert beta == pytest.approx((1 / 1 + 3 / 2) / 2)
    alpha, beta = fit_line([(1, 3.0), (2, 1.0)])
    assert alpha == pytest.approx(2.0)
    assert beta == 0.0
    assert fit_line([(1, 0.0), (2, 0.0)]) == (0.0, 0.0)
    assert fit_line([(0, 1.0), (2, 0.01), (3, 0.01)])[1] == 0.0


def test_the_fit_is_drawn_against_what_was_measured(tmp_path: Path) -> None:
    network = cluster.Network(1e-5, 1e-9, measured=((100, 1.2e-5), (1_000_000, 9e-4)))
    figure = cluster.plot_fit(network, tmp_path / "fit.png")
    assert isinstance(figure, Figure)
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    assert figure.get_supxlabel() == "measured and formula"
    residuals = figure.axes[1].lines[1].get_ydata()
    assert np.asarray(residuals) == pytest.approx([100 * residual for _, residual in network.residuals])
    with pytest.raises(ValueError, match="not fitted"):
        cluster.plot_fit(cluster.Network(1e-5, 1e-9))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": 1}, "nodes must be at least 2, got 1"),
        ({"sizes": [8]}, r"sizes must be two different sizes or more, got \[8\]"),
        ({"sizes": [-1, 8]}, r"each of sizes \(bytes\) must be at least 0, got -1"),
        ({"repetitions": 0}, "repetitions must be at least 1, got 0"),
        ({"pattern": "ping"}, "pattern must be 'ping-pong' or 'exchange', got 'ping'"),
    ],
)
def test_what_cannot_be_fitted_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cluster.calibrate(**given)  # type: ignore[arg-type]
