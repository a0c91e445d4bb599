"""Synchronous data parallelism equals the serial run, and four ways to get it wrong.

What the paper says. Goyal et al., Accurate, large minibatch SGD (arXiv:1706.02677), section 3, remarks 1 to 4: with
common bugs training still learns, but differs from the serial run. (1) Scaling the loss is not scaling the rate: weight
decay stays unscaled. (2) Momentum with the rate inside the velocity needs a correction when the rate changes. (3) The
gradients must be normalised by the whole minibatch of k n samples, not by a worker's n. (4) The workers must share one
shuffle.

What is done. An MLP 64-64-10 on the digits, 100 minibatches of 72 samples (the last of each epoch has 69, so that
shards are unequal), momentum 0.9, weight decay 1e-3, the rate divided by ten after 60 steps; on P = 1, 2, 3, 4 and 8
simulated nodes, gradients summed by a ring all-reduce. Then each bug is planted, and compared with its correct form.

What must show. The weights of P nodes differ from the serial run's by less than 1e-10 in float64 and 1e-4 in float32,
and all nodes have the same bits; each bug makes them differ by more than 1e-3, its correct form by less than 1e-10.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.kernels import Array
from minidl.parallel import Serial, Session, Synchronous
from minidl.plots import style

TITLE = "Synchronous data parallelism equals the serial run, and four ways to get it wrong"

NODES = (1, 2, 3, 4, 8)
RATE, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 1e-3
STEPS, DROP = 100, 60
K = 4  # nodes on which the bugs are planted


def digits(dtype: str) -> Splits:
    train, test = splits = data.digits()
    return replace(splits, train=Dataset(train.x.astype(dtype), train.y), test=Dataset(test.x.astype(dtype), test.y))


def job(dtype: str = "float64", optimizer: Any = None, lr: float = RATE) -> parallel.Job:
    """100 steps in five epochs of 20."""
    plain = partial(optim.SGD, lr=lr, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    return parallel.Job(
        model=lambda: nn.models.MLP(64, 64, 10).to(dtype),
        data=partial(digits, dtype),
        optimizer=optimizer or plain,
        schedule=lambda optimizer, steps: optim.StepLR(optimizer, step_size=DROP, gamma=0.1),
        batch_size=72,
        epochs=5,
    )


@dataclass(frozen=True)
class Weighted(Synchronous):
    """Each node's loss is multiplied by `factor`, and without `is_mean` also by the number of nodes."""

    factor: float = 1.0
    is_mean: bool = True

    def run(self, session: Session) -> None:
        right = session.loss
        factor = self.factor * (1 if self.is_mean else session.nodes)
        session.loss = lambda batch: right(batch) * factor  # type: ignore[method-assign]
        super().run(session)


class OwnShuffle(Synchronous):
    """Every node shuffles the training set with a seed of its own, and takes its shard of that order."""

    def run(self, session: Session) -> None:
        session.job = replace(session.job, seed=session.job.seed + session.comm.rank)
        super().run(session)


class RateInVelocity(optim.SGD):
    """v = m v + lr g, w = w - v; with `is_corrected`, v is multiplied by lr/lr' when the rate changes to lr'."""

    is_corrected = False

    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr = group["lr"]
        before = float(state.get("lr", lr))
        correction = lr / before if self.is_corrected else 1.0
        velocity = state.get("velocity", np.zeros_like(data)) * (group["momentum"] * correction)
        velocity += lr * (gradient + group["weight_decay"] * data)
        state.update(lr=np.array(lr), velocity=velocity)
        data -= velocity


class Corrected(RateInVelocity):
    is_corrected = True


def difference(report: parallel.Report, truth: parallel.Report) -> float:
    """The largest absolute difference of any weight."""
    pairs = zip(report.checkpoint.model.values(), truth.checkpoint.model.values(), strict=True)
    return max(float(np.abs(a - b).max()) for a, b in pairs)


def bugs() -> list[tuple[str, parallel.Job, Synchronous, parallel.Job, Synchronous]]:
    """For each bug: its name, the job and strategy with it, and those without it."""
    settings: dict[str, Any] = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": WEIGHT_DECAY}
    rate_inside, corrected = (job(optimizer=partial(rule, **settings)) for rule in (RateInVelocity, Corrected))
    right = Synchronous(algorithm="ring")
    return [
        ("1: the loss scaled, not the rate", job(lr=RATE / K), Weighted(factor=K), job(), right),
        ("2: momentum not corrected", rate_inside, right, corrected, right),
        ("3: normalised by n, not by k n", job(), Weighted(is_mean=False), job(), Weighted()),
        ("4: a shuffle a node", job(), OwnShuffle(), job(), right),
    ]


def experiment(reproduction: Reproduction) -> None:
    run = partial(parallel.train, on="simulation")
    rows: list[list[Any]] = []
    for dtype in ("float64", "float32"):
        truth = run(job(dtype), Serial())
        assert truth.history[-1]["steps"] == STEPS
        for nodes in NODES:
            report = run(job(dtype), Synchronous(algorithm="ring"), nodes)
            rows.append([dtype, nodes, difference(report, truth), len(set(report.digests)), report.accuracy])
    reproduction.table(["dtype", "nodes", "largest difference", "different models", "accuracy"], rows)

    truth = run(job(), Serial())
    planted: list[list[Any]] = []
    for name, wrong_job, wrong, right_job, right in bugs():
        report, good = run(wrong_job, wrong, K), run(right_job, right, K)
        planted.append([name, difference(report, truth), difference(good, truth), report.accuracy, truth.accuracy])
    columns = ["bug (remark of the paper)", "differs by", "done right", "accuracy", "serial"]
    reproduction.table(columns, planted, note=f"on {K} nodes, float64")
    reproduction.picture(picture(rows, planted))

    worst = {dtype: max(row[2] for row in rows if row[0] == dtype) for dtype in ("float64", "float32")}
    reproduction.accept(worst["float64"] < 1e-10, f"float64: at most {worst['float64']:.0e} from serial")
    reproduction.accept(worst["float32"] < 1e-4, f"float32: at most {worst['float32']:.0e} from serial")
    reproduction.accept(all(row[3] == 1 for row in rows), "all nodes have the same bits, in every run")
    least, most = min(row[1] for row in planted), max(row[2] for row in planted)
    reproduction.accept(least > 1e-3, f"every bug moves a weight by at least {least:.2g}")
    reproduction.accept(most < 1e-10, f"done right, by at most {most:.0e}")


def picture(rows: list[list[Any]], planted: list[list[Any]]) -> Figure:
    """All differences from the serial run, on one scale."""
    with style.applied():
        figure, (axes,) = style.new_figure(8.0, 3.8)
        names = [f"{dtype}, {nodes} node{'s' * (nodes > 1)}" for dtype, nodes, *_ in rows]
        values = [max(row[2], 1e-18) for row in rows]
        positions = range(len(rows) + len(planted))
        colours = [style.SERIES[0 if row[0] == "float64" else 2] for row in rows] + [style.SERIES[1]] * len(planted)
        axes.barh(positions, [*values, *(row[1] for row in planted)], color=colours, left=1e-18)
        axes.set_yticks(positions, [*names, *(f"bug {row[0]}" for row in planted)])
        axes.invert_yaxis()
        axes.set(xscale="log", xlim=(1e-18, 10), xlabel="largest difference of a weight from the serial run's")
        axes.axvline(1e-10, color="0.5", linewidth=0.8, linestyle="--")
        axes.axvline(1e-3, color="0.5", linewidth=0.8, linestyle="--")
        axes.set_title("Right to rounding, or wrong")
        style.label_source(figure, "measured", "100 steps; dashed: 1e-10 and 1e-3")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
