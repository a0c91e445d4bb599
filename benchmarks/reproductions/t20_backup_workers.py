"""Backup workers and partial sums: what is gained by not waiting for the last.

What the sources say. Synchronous training waits for the slowest of its workers; with b more workers than an update
needs, it waits for the N-th of N + b only and drops the rest (Chen, Monga, Bengio, Jozefowicz, Revisiting distributed
synchronous SGD, arXiv:1604.00981). Eager SGD waits for half of the workers or for the first one, and what comes late
counts in the next update (Li et al., Taming unbalanced training workloads with partial collective operations, PPoPP
2020).

What is done. First, the waiting alone: workers whose service takes a random, exponential time of mean 1 send to a
coordinator, all beginning anew in every round; the mean time until n of N are there must be H_N - H_(N-n), with the
harmonic numbers H. Second, what that buys for 8 gradients an update where a service also has a part of 1 that does not
vary, and workers are paid for: gradients used per worker and unit of time. Third, training an MLP 64-64-10 on the
digits for 10 epochs, 8 gradients of 16 samples an update; how long a node takes varies from one piece of work to the
next (log-normal, standard deviation 1 of the logarithm).

What must show. Waiting times within 3 % of the formula (10,000 rounds of 8, 9 and 10 workers, 500 rounds of 100: the
standard error is about 1 % or less); the best number of backups is neither 0 nor the largest; the loss after as many
updates does not change when 2 of 10 gradients are dropped (the mean of three seeds within 10 % of 8 workers without
backups; measured: 0.1 %), while an update takes less time. An epoch of 8 workers has 12 updates, the last one of 29
samples; with backups all updates are of about 128 samples, so that there are fewer: losses are compared at as many
updates, in between by a straight line. Eager updates are shown beside: they take less time still, and move the weights
less, since an update divides the sum of what has come by all workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions import digits
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import cluster, parallel
from minidl.cluster.comm import Communicator
from minidl.parallel import BackupWorkers, EagerSGD, Synchronous
from minidl.plots import style

TITLE = "Backup workers and eager SGD: not waiting for the last"

WAITING = ((8, 8, 2.718), (8, 9, 1.829), (8, 10, 1.429), (4, 8, None), (1, 8, None))  # n, N, pilot
WIDE = ((100, 5.187), (96, 3.104), (90, 2.258))  # n of 100, pilot
ROUNDS, WIDE_ROUNDS = 10_000, 500
BACKUPS = range(9)  # for N = 8
SEEDS, EPOCHS = 3, 10
SERVICE = cluster.Node(1e8, 1e8, jitter=1.0)


def rounds(comm: Communicator, count: int) -> np.ndarray:
    """In each round every worker works once and sends; rank 0 writes down when they come: mean time of the n-th."""
    workers, arrivals = comm.size - 1, np.zeros(comm.size - 1)
    for _ in range(count):
        if comm.rank:
            comm.compute(seconds=comm.rng.exponential())
            comm.send(None, 0)
            comm.recv(0)
        else:
            began = comm.now()
            for n in range(workers):
                comm.recv(cluster.ANY)
                arrivals[n] += comm.now() - began
            for worker in range(1, comm.size):
                comm.send(None, worker)
    return arrivals / count


def harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


def waiting_times(workers: int, count: int) -> np.ndarray:
    """Simulated: the mean time until the first, second, ..., last of the workers is there."""
    run = cluster.launch(
        rounds, (count,), nodes=workers + 1, on=cluster.Simulation(trace="ledger"), timeout=1e9, seed=1
    )
    return np.asarray(run.results[0])


def waiting_rows() -> list[list[Any]]:
    rows = []
    times = {workers: waiting_times(workers, ROUNDS) for workers in (8, 9, 10)}
    times[100] = waiting_times(100, WIDE_ROUNDS)
    for n, workers, pilot in (*WAITING, *((n, 100, pilot) for n, pilot in WIDE)):
        formula, simulated = harmonic(workers) - harmonic(workers - n), float(times[workers][n - 1])
        rows.append([f"{n} of {workers}", simulated, formula, pilot or "", 100 * (simulated / formula - 1)])
    return rows


def used_per_worker(backups: int, fixed: float = 1.0) -> float:
    """Gradients used, per worker and unit of time, if a service takes `fixed` and an exponential time of mean 1."""
    workers = 8 + backups
    return 8 / (workers * (fixed + harmonic(workers) - harmonic(backups)))


def trained(strategy: parallel.Strategy, nodes: int, batch_size: int) -> list[parallel.Report]:
    jobs = [digits.job(lr=0.2, batch_size=batch_size, epochs=EPOCHS, seed=seed) for seed in range(SEEDS)]
    engine = cluster.Simulation(node=SERVICE, trace="ledger")
    return [parallel.train(job, strategy, nodes, engine) for job in jobs]


def experiment(reproduction: Reproduction) -> None:
    waited = waiting_rows()
    headings = ["waiting for", "simulated", "H_N - H_(N-n)", "pilot", "off by %"]
    reproduction.table(headings, waited, note="in mean service times")

    runs = {
        "8 workers": trained(Synchronous(), 8, 8 * 16),
        "2 backups": trained(BackupWorkers(2), 10, 16),
        "eager: majority": trained(EagerSGD("majority"), 8, 16),
        "eager: solo": trained(EagerSGD("solo"), 8, 16),
    }
    rows, curves = [], {}
    for name, reports in runs.items():
        columns = ("steps", "seconds", "test_loss")
        tables = [[[row[key] for row in report.history] for report in reports] for key in columns]
        curves[name] = [np.mean(table, axis=0) for table in tables]
        steps, seconds, loss = (float(column[-1]) for column in curves[name])
        dropped = [sum(map(len, report.recorded.get("dropped", []))) for report in reports]
        stale = [sum(count for age, count in report.staleness.items() if age) for report in reports]
        error = 100 * np.mean([digits.error(report) for report in reports])
        rows.append(
            [name, steps, 1e6 * seconds / steps, loss, float(error), float(np.mean(dropped)), float(np.mean(stale))]
        )
    headings = ["strategy", "updates", "us an update", "test loss", "error %", "dropped", "late but used"]
    reproduction.table(headings, rows, note=f"digits, {EPOCHS} epochs, means of {SEEDS} seeds; times simulated")
    per_worker = [used_per_worker(backups) for backups in BACKUPS]
    reproduction.picture(picture(per_worker, curves))

    off = max(abs(row[-1]) for row in waited)
    reproduction.accept(off < 3, f"waiting times equal H_N - H_(N-n) to {off:.1f} % at most")
    best = int(np.argmax(per_worker))
    reproduction.accept(
        0 < best < BACKUPS[-1],
        f"with a fixed part, workers are used best with {best} backups for 8: {per_worker[best]:.3f} gradients per "
        f"worker and unit of time; {per_worker[0]:.3f} without, {per_worker[-1]:.3f} with {BACKUPS[-1]}",
    )
    plain, backup = rows[0], rows[1]
    steps, _, losses = curves["8 workers"]
    as_many = float(np.interp(backup[1], steps, losses))
    change = backup[3] / as_many - 1
    reproduction.accept(
        abs(change) < 0.1 and backup[5] > 0,
        f"after {backup[1]:.0f} updates the test loss is {backup[3]:.3f} with {backup[5]:.0f} gradients dropped, "
        f"{as_many:.3f} without backups ({100 * change:+.1f} %)",
    )
    reproduction.accept(
        backup[2] < plain[2], f"an update takes {backup[2]:.0f} us with backups, {plain[2]:.0f} without"
    )


def picture(per_worker: list[float], curves: dict[str, list[Any]]) -> Figure:
    """How many backups pay; the loss over updates and over time."""
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
