"""Bulk synchronous, stale synchronous, asynchronous: 8 workers with stragglers under a bound on the staleness.

Ho et al. (More effective distributed ML via a stale synchronous parallel parameter server, NIPS 2013) let a worker
that has made c updates go on as long as no other has made fewer than c - s: s = 0 is bulk synchronous, no bound
asynchronous. A bound compensates for stragglers that change: the others wait for a late worker only if it stays late.
It cannot compensate for a worker that is always slow: sooner or later the others must wait for it.

Here: an MLP 64-32-10 on 1,408 digits, minibatches of 16 a gradient, rate 0.1, 27 epochs: 297 clocks each. To compute a
gradient takes 1 s of virtual time, the server and the network take none. Random stragglers: each gradient takes 4 s
with probability 0.1, 3 seeds. A persistent one: worker 0 always takes 2.5 s. Formulas: in lockstep, 8 workers need on
average 1 + 3 (1 - 0.9^8) s per clock; independent ones 1.3 s. The pilot (plain numpy, 300 clocks) also had jitter, and
every worker made the same number of updates, so that only its ratios compare.

What must show: a worker that begins a clock is at most s ahead of the slowest, and gets that far; s = 0 equals, up to
rounding, Synchronous on the joint minibatch at 8 times the rate; with random stragglers the time falls with s, at
s = 10 to within 10 % of that without a bound, and the loss is as good; with a persistent one the time of an epoch, once
the fast workers have used up their lead, is the same for every bound to 1 %, and falls only without a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import job
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import Tensor, cluster, data, parallel
from minidl.data.loader import Batch
from minidl.parallel import Session
from minidl.plots import style

TITLE = "A bound on the staleness makes up for stragglers that change, not for one that stays"
WORKERS, EPOCHS, CLOCKS = 8, 27, 297
BOUNDS = (0, 1, 3, 10, None)
SEEDS = range(3)
PILOT = {"random": (864, 630, 502, 441, 451), "persistent": (788, 788, 788, 788, None)}
TARGET = 0.25  # a test loss, for the time to reach it


@dataclass(frozen=True)
class WithStragglers(parallel.ParameterServer):
    """A gradient takes a second, or longer: on every worker with some probability, or always on worker 0."""

    stragglers: str = "random"

    def run(self, session: Session) -> None:
        local_loss = session.local_loss

        def delayed(batch: Batch) -> Tensor:
            if self.stragglers == "random":
                seconds = 4.0 if session.comm.rng.random() < 0.1 else 1.0
            else:
                seconds = 2.5 if session.comm.rank == 0 else 1.0
            session.comm.compute(seconds=seconds, label="forward and backward")
            return local_loss(batch)

        session.local_loss = delayed  # type: ignore[method-assign]
        super().run(session)


def experiment(reproduction: Reproduction) -> None:
    """Every bound with both kinds of stragglers."""
    runs = {
        (kind, bound): [train(kind, bound, seed) for seed in (SEEDS if kind == "random" else (0,))]
        for kind in PILOT
        for bound in BOUNDS
    }
    columns = ["stragglers", "s", "formula", "pilot's s", "lead", "staleness", "s an epoch", "loss"]
    rows = [
        [
            f"{kind}, {name(bound)}",
            seconds(of),
            formula(kind, bound),
            PILOT[kind][BOUNDS.index(bound)] or "",
            lead(of),
            staleness(of),
            pace(of),
            loss(of),
            mean([time_to(report) for report in of]),
        ]
        for (kind, bound), of in runs.items()
    ]
    reproduction.table(
        [*columns, "s to loss"],
        rows,
        "lead: the most updates that a worker which begins one is ahead of the slowest; staleness: the mean; loss: of "
        f"the last epoch's training; s to loss: virtual seconds to a test loss of {TARGET}",
    )
    reproduction.picture(picture(runs))
    judge(reproduction, runs)


Runs = dict[tuple[str, int | None], list[parallel.Report]]


def judge(reproduction: Reproduction, runs: Runs) -> None:
    """Compare with what the paper says."""
    bounded = {key: lead(of) for key, of in runs.items() if key[1] is not None}
    reproduction.accept(
        all(found == bound for (_, bound), found in bounded.items()),
        f"under a bound the largest lead is the bound itself; without one it is {lead(runs['random', None])}",
    )
    difference = from_synchronous(runs["random", 0][0])
    reproduction.accept(difference < 1e-4, f"s = 0 equals Synchronous: largest difference of weights {difference:.0e}")
    times = [seconds(runs["random", bound]) for bound in BOUNDS]
    reproduction.accept(
        times[0] > times[1] > times[2] > times[3] and times[3] < 1.1 * times[4],
        f"random stragglers: {', '.join(f'{time:.0f}' for time in times[:4])} s for s = 0, 1, 3, 10, "
        f"{times[4]:.0f} without",
    )
    for bound in (0, None):
        off = abs(seconds(runs["random", bound]) / formula("random", bound) - 1)
        reproduction.accept(off < 0.05, f"with {name(bound)} that is within {100 * off:.1f} % of the formula")
    losses = [loss(runs["random", bound]) for bound in BOUNDS]
    reproduction.accept(
        max(losses) < 1.1 * min(losses), f"the training losses lie between {min(losses):.4f} and {max(losses):.4f}"
    )
    paces = [pace(runs["persistent", bound]) for bound in BOUNDS]
    apart = max(paces[:4]) / min(paces[:4]) - 1
    reproduction.accept(
        apart < 0.01 and paces[4] < 0.5 * paces[0],
        f"a slow worker: {paces[0]:.1f} s an epoch, within {100 * apart:.1f} % for all bounds; {paces[4]:.1f} without",
    )
    finite, unbounded = (time_to(runs["persistent", bound][0]) for bound in (0, None))
    reproduction.accept(
        unbounded < 0.6 * finite,
        f"to a test loss of {TARGET}: {finite:.0f} s in step, {unbounded:.0f} s without a bound",
    )


def settings() -> dict[str, Any]:
    train, test = data.digits()
    return {"data": data.Splits(data.Dataset(*train[:1408]), test), "epochs": EPOCHS}


def train(kind: str, bound: int | None, seed: int) -> parallel.Report:
    of = job((64, 32, 10), lr=0.1, batch_size=16, seed=seed, **settings())
    return parallel.train(
        of, WithStragglers(staleness=bound, stragglers=kind), WORKERS, cluster.Simulation(trace="ledger")
    )


def from_synchronous(report: parallel.Report) -> float:
    """The largest difference of a weight from that after synchronous training."""
    of = job((64, 32, 10), lr=0.1 * WORKERS, batch_size=16 * WORKERS, seed=report.job.seed, **settings())
    truth = parallel.train(of, parallel.Synchronous(), WORKERS, cluster.Simulation(trace="ledger"))
    pairs = zip(report.checkpoint.model.values(), truth.checkpoint.model.values(), strict=True)
    return max(float(np.abs(x - y).max()) for x, y in pairs)


def name(bound: int | None) -> str:
    return "no bound" if bound is None else f"s = {bound}"


def formula(kind: str, bound: int | None) -> Any:
    """Mean seconds of a run of CLOCKS clocks: in lockstep for bound 0, of independent workers for no bound."""
    if bound not in (0, None):
        return ""
    if kind == "random":
        return CLOCKS * (1 + 3 * (1 - 0.9**WORKERS) if bound == 0 else 1.3)
    return CLOCKS * (2.5 if bound == 0 else WORKERS / (WORKERS - 1 + 1 / 2.5))


def mean(values: list[float]) -> float:
    return float(np.mean(values))


def seconds(reports: list[parallel.Report]) -> float:
    return mean([report.history[-1]["seconds"] for report in reports])


def loss(reports: list[parallel.Report]) -> float:
    return mean([report.history[-1]["loss"] for report in reports])


def pace(reports: list[parallel.Report]) -> float:
    """Seconds an epoch over the second half of the run."""
    half = EPOCHS // 2
    return mean([(r.history[-1]["seconds"] - r.history[half]["seconds"]) / (EPOCHS - 1 - half) for r in reports])


def lead(reports: list[parallel.Report]) -> int:
    return max(max(report.recorded["lead"][WORKERS]) for report in reports)


def staleness(reports: list[parallel.Report]) -> float:
    return mean([sum(age * many for age, many in r.staleness.items()) / r.staleness.total() for r in reports])


def time_to(report: parallel.Report) -> float:
    """Virtual seconds until the first end of an epoch at which the target is reached."""
    return next((row["seconds"] for row in report.history if row["test_loss"] <= TARGET), float("inf"))


@style.applied()
def picture(runs: Runs) -> Figure:
    """Test loss against time, a panel for each kind of stragglers."""
    figure, panels = style.new_figure(9.6, 3.6, columns=2, sharey=True)
    titles = {"random": "Random: 1 gradient of 10 takes 4 s", "persistent": "Persistent: worker 0 takes 2.5 s"}
    for axes, (kind, title) in zip(panels, titles.items(), strict=True):
        for i, bound in enumerate(BOUNDS):
            rows = runs[kind, bound][0].history
            look: dict[str, Any] = {"color": style.SERIES[i], "ls": style.DASHES[i]}
            axes.plot([r["seconds"] for r in rows], [r["test_loss"] for r in rows], label=name(bound), **look)
        axes.set(title=title, xlabel="virtual time (s)", yscale="log")
        axes.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
        axes.minorticks_off()
        axes.grid(color="0.92", linewidth=0.6)
    panels[0].set_ylabel("test loss")
    panels[1].legend()
    style.label_source(figure, "simulated", "8 workers, MLP 64-32-10 on digits, a gradient takes 1 s")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
