"""Backup workers and partial sums: the gain from not waiting for the slowest worker.

What the sources say. Synchronous training waits for the slowest of its workers. With b more workers than an update
needs, it takes the first N of N + b gradients and drops the rest (Chen, Monga, Bengio, Jozefowicz, Revisiting
distributed synchronous SGD, arXiv:1604.00981). Eager SGD waits for half of the workers or for the first one; late
gradients count in a later update (Li et al., Taming unbalanced training workloads with partial collective operations,
PPoPP 2020).

What is done. First, the time of an update, measured in simulation: the strategies train a model of one weight, whose
loss takes an exponential time of mean 1 to compute. Second, the use of workers, in gradients used per worker and unit
of time, for 8 gradients per update, where each gradient takes a fixed time of 1 plus the exponential one. Third,
training an MLP 64-64-10 on the digits for 10 epochs, with 8 gradients of 16 samples per update; the time of a
computation varies (log-normal, standard deviation 1 of the logarithm).

The formulas of the first experiment. With the harmonic numbers H_n = 1 + 1/2 + ... + 1/n, the n-th of N gradients that
begin together comes after H_N - H_(N-n). Exponential times have no memory, so this holds for eager SGD, where every
worker's next gradient counts whenever it began, and for backup workers that abandon a minibatch as soon as it is
outdated. Where backup workers finish what they began, those that an update did not wait for are still busy with
outdated gradients, and it takes longer: see `finishing`. Eager SGD without a coordinator waits for the first worker, or
for one that is drawn, whose time has mean 1.

What must show. Times within 3 % of the formulas (20,000 gradients, 60,000 where the time varies most: standard errors
are about 1 % or less); the best number of backups is neither 0 nor the largest; the loss after the same number of
updates does not change when 2 of 10 gradients are dropped or abandoned (the mean of three seeds within 10 % of 8
workers without backups), and an update takes less time. An epoch of 8 workers has 12 updates, the last one of 29
samples; with backups all updates are of about 128 samples, so that there are fewer: losses are compared at equal
numbers of updates, by linear interpolation. Eager updates are also shown: they take even less time, and move the
weights less, since an update divides the sum of the gradients by the number of all workers.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions import digits
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import Tensor, cluster, data, nn, optim, parallel, random
from minidl.kernels import Array, counting
from minidl.parallel import BackupWorkers, EagerSGD, Synchronous
from minidl.plots import style

TITLE = "Backup workers and eager SGD: not waiting for the last"

GRADIENTS = 20_000
FLOPS = 1e12  # a mean computation, which takes 1 s; the model's own arithmetic is less than 1e-9 of it
BACKUPS = range(9)  # for N = 8
SEEDS, EPOCHS = 3, 10
SERVICE = cluster.Node(1e8, 1e8, jitter=1.0)


def harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


def together(needed: int, workers: int) -> float:
    """The mean time until `needed` of `workers` workers are ready; each takes an exponential time of mean 1."""
    return harmonic(workers) - harmonic(workers - needed)


def finishing(needed: int, workers: int) -> float:
    """The mean time of an update by fresh gradients only, where every worker finishes what it began.

    Right after an update, all workers that it did not wait for compute outdated gradients. The next of the `workers -
    fresh` busy workers is ready after 1 / (workers - fresh). If its gradient was outdated, it begins a fresh one.
    """

    @cache
    def remaining(fresh: int, outdated: int) -> float:
        if fresh == needed:
            return 0.0
        busy = workers - fresh
        time = 1 + (busy - outdated) * remaining(fresh + 1, outdated)
        if outdated:
            time += outdated * remaining(fresh, outdated - 1)
        return time / busy

    return remaining(0, workers - needed)


def exponential_loss(outputs: Tensor, labels: Array) -> Tensor:
    """A loss of zero; in a simulation it costs an exponential number of flops, of mean `FLOPS`."""
    counter = counting.active.get()
    if counter is not None:  # the evaluation after the run takes no simulated time
        counter.add(int(FLOPS * random.generator().exponential()), 0)
    return (outputs * 0.0).mean()


def seconds_an_update(strategy: parallel.Strategy, nodes: int, gradients: int = GRADIENTS) -> float:
    """Simulated seconds of an update: one sample per gradient, exponential computation times of mean 1 s."""
    dataset = data.Dataset(np.ones((gradients, 1), np.float32), np.zeros(gradients, np.int64))
    job = parallel.Job(
        model=lambda: nn.Linear(1, 1),
        data=data.Splits(dataset, data.Dataset(*dataset[:1])),
        optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
        loss=exponential_loss,
        batch_size=1,
        epochs=1,
        seed=1,
    )
    engine = cluster.Simulation(node=cluster.Node(FLOPS, float("inf")), trace="ledger")
    row = parallel.train(job, strategy, nodes, engine, timeout=1e9).history[-1]
    return float(row["seconds"] / row["steps"])


class Case(NamedTuple):
    """A strategy, what its updates wait for, and the time of an update in mean computation times."""

    strategy: parallel.Strategy
    nodes: int
    waits_for: str
    formula: float
    pilot: float | None = None
    gradients: int = GRADIENTS


def cases() -> list[Case]:
    """The strategies that are judged by the time of an update."""
    return [
        Case(BackupWorkers(0), 8, "8 of 8", together(8, 8), 2.718),
        Case(BackupWorkers(1, abandon=True), 9, "8 of 9", together(8, 9), 1.829),
        Case(BackupWorkers(2, abandon=True), 10, "8 of 10", together(8, 10), 1.429),
        Case(BackupWorkers(1), 9, "8 fresh of 9", finishing(8, 9), 2.03),
        Case(BackupWorkers(2), 10, "8 fresh of 10", finishing(8, 10), 1.73),
        Case(EagerSGD("majority"), 8, "4 of 8", together(4, 8)),
        Case(EagerSGD("solo"), 8, "1 of 8", together(1, 8)),
        Case(EagerSGD("majority", coordinator=False), 8, "one drawn of 8", 1.0, gradients=3 * GRADIENTS),
        Case(EagerSGD("solo", coordinator=False), 8, "1 of 8", together(1, 8)),
        Case(BackupWorkers(0), 100, "100 of 100", together(100, 100), 5.187, gradients=3 * GRADIENTS),
        Case(BackupWorkers(4, abandon=True), 100, "96 of 100", together(96, 100), 3.104),
        Case(BackupWorkers(10, abandon=True), 100, "90 of 100", together(90, 100), 2.258),
    ]


def update_rows() -> list[list[Any]]:
    """Strategy, what an update waits for, its simulated time, formula, pilot, deviation in %."""
    rows = []
    for case in cases():
        simulated = seconds_an_update(case.strategy, case.nodes, case.gradients)
        deviation = 100 * (simulated / case.formula - 1)
        rows.append([str(case.strategy), case.waits_for, simulated, case.formula, case.pilot or "", deviation])
    return rows


def used_per_worker(backups: int) -> float:
    """Gradients used, per worker and unit of time, if a gradient takes 1 and an exponential time of mean 1."""
    workers = 8 + backups
    return 8 / (workers * (1.0 + together(8, workers)))


def trained(strategy: parallel.Strategy, nodes: int, batch_size: int) -> list[parallel.Report]:
    jobs = [digits.job(lr=0.2, batch_size=batch_size, epochs=EPOCHS, seed=seed) for seed in range(SEEDS)]
    engine = cluster.Simulation(node=SERVICE, trace="ledger")
    return [parallel.train(job, strategy, nodes, engine) for job in jobs]


def experiment(reproduction: Reproduction) -> None:
    updates = update_rows()
    headings = ["strategy", "waits for", "simulated", "formula", "pilot", "off by %"]
    reproduction.table(headings, updates, note="time of an update, in mean computation times of a gradient")

    runs = {
        "8 workers": trained(Synchronous(), 8, 8 * 16),
        "2 backups": trained(BackupWorkers(2), 10, 16),
        "2 backups, abandoning": trained(BackupWorkers(2, abandon=True), 10, 16),
        "eager: majority": trained(EagerSGD("majority"), 8, 16),
        "eager: solo": trained(EagerSGD("solo"), 8, 16),
    }
    rows: list[list[Any]] = []
    curves: dict[str, list[Any]] = {}
    for name, reports in runs.items():
        columns = [digits.mean_column(reports, column) for column in ("steps", "seconds", "test_loss")]
        curves[name] = [np.array(column) for column in columns]
        steps, seconds, loss = (column[-1] for column in columns)
        unused = [
            sum(len(ages) for kind in ("dropped", "abandoned") for ages in report.recorded.get(kind, []))
            for report in reports
        ]
        stale = [sum(count for age, count in report.staleness.items() if age) for report in reports]
        error = 100 * np.mean([digits.error(report) for report in reports])
        rows.append(
            [name, steps, 1e6 * seconds / steps, loss, float(error), float(np.mean(unused)), float(np.mean(stale))]
        )
    headings = ["strategy", "updates", "us an update", "test loss", "error %", "dropped or abandoned", "late but used"]
    reproduction.table(headings, rows, note=f"digits, {EPOCHS} epochs, means of {SEEDS} seeds; times simulated")
    per_worker = [used_per_worker(backups) for backups in BACKUPS]
    reproduction.picture(picture(per_worker, curves))

    for kind in ("BackupWorkers", "EagerSGD"):
        off = max(abs(row[-1]) for row in updates if row[0].startswith(kind))
        reproduction.accept(off < 3, f"{kind}: the times of an update are off the formulas by {off:.1f} % at most")
    best = int(np.argmax(per_worker))
    reproduction.accept(
        0 < best < BACKUPS[-1],
        f"with a fixed part, workers are used best with {best} backups for 8: {per_worker[best]:.3f} gradients per "
        f"worker and unit of time; {per_worker[0]:.3f} without, {per_worker[-1]:.3f} with {BACKUPS[-1]}",
    )
    plain, *backups = rows[:3]
    steps, _, losses = curves["8 workers"]
    for backup in backups:
        as_many = float(np.interp(backup[1], steps, losses))
        change = backup[3] / as_many - 1
        reproduction.accept(
            abs(change) < 0.1 and backup[5] > 0,
            f"{backup[0]}: after {backup[1]:.0f} updates the test loss is {backup[3]:.3f} with {backup[5]:.0f} "
            f"gradients unused, {as_many:.3f} without backups ({100 * change:+.1f} %)",
        )
        reproduction.accept(
            backup[2] < plain[2], f"{backup[0]}: an update takes {backup[2]:.0f} us, {plain[2]:.0f} without backups"
        )


def picture(per_worker: list[float], curves: dict[str, list[Any]]) -> Figure:
    """The use of workers against the backups; the loss over updates and over time."""
    with style.applied():
        figure, (left, middle, right) = style.new_figure(11.0, 3.6, columns=3)
        left.plot(BACKUPS, per_worker, "o-", color=style.SERIES[0])
        left.set(xlabel="backups to 8 workers", ylabel="gradients used per worker\nand unit of time", ylim=(0, 0.4))
        left.set_title("How many pay (formula)")
        for i, (name, (steps, seconds, loss)) in enumerate(curves.items()):
            middle.plot(steps, loss, linestyle=style.DASHES[i], color=style.SERIES[i], label=name)
            right.plot(1e3 * seconds, loss, linestyle=style.DASHES[i], color=style.SERIES[i])
        middle.set(xlabel="updates", ylabel="test loss")
        middle.set_title("Per update")
        right.set(xlabel="time [ms]", ylabel="test loss")
        right.set_title("Over time")
        middle.legend(fontsize=7)
        style.label_source(figure, ["simulated", "formula"])
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
