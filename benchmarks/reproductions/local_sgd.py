"""Local SGD: averaging models every H steps, or once, instead of gradients after every step.

Stich (arXiv:1805.09767) proves that p nodes which average their models every H steps converge as minibatch SGD does,
with fewer rounds of communication by up to the square root of the number of steps. Zinkevich et al. (NIPS 2010) average
once, at the end. Both assume that all nodes draw their samples from the same distribution.

Here: an MLP 64-64-10 on the 1,437 digits, 8 nodes of 8 samples each, rate 0.2, no momentum, 40 epochs, hence T = 920
steps; means of 3 seeds. Each node keeps its shard. Shards are random, or sorted by label: then a node sees one or two
of the ten classes. The pilot made T = 880 steps and 3 rounds at H = 256, so its numbers at large H need not equal
ours.

It must show: T/H rounds, rounded up; H = 1 equals minibatch SGD; on random shards the error at H = 16, with a sixteenth
of the communication, is within a point of that at H = 1, and up to H = 256 (4 rounds) hardly more; averaging once costs
over a point. On sorted shards the error rises with every step from H = 4 on, and averaging once fails: worse than a
third wrong (measured: 62 %, single seeds deviate by 6 points).

A trap: with a new shuffle in every epoch, as data loaders have it, each node sees all samples in time. Averaging once
then costs nothing here (the last row): the effect needs fixed shards.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.digits import error, job, train
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import parallel
from minidl.plots import style

TITLE = "Local SGD: fewer rounds cost little, unless shards differ (Stich 2018, Zinkevich et al. 2010)"

NODES, EPOCHS, STEPS = 8, 40, 40 * ceil(1437 / 64)
PERIODS = (1, 4, 16, 64, 256)
ONCE = "once"
SEEDS = range(3)
PILOT = {  # error in %, an independent implementation in plain numpy
    ("fixed", 1): "2.96 to 3.5",
    ("fixed", 4): "2.96 to 3.5",
    ("fixed", 16): "2.96 to 3.5",
    ("fixed", 64): "2.96 to 3.5",
    ("fixed", 256): "2.96 to 3.5",
    ("fixed", ONCE): 5.2,
    ("by_label", 1): 2.96,
    ("by_label", 4): 2.87,
    ("by_label", 16): 3.89,
    ("by_label", 64): 8.8,
    ("by_label", 256): 23.7,
    ("by_label", ONCE): 45.5,
}
WORDS = {"fixed": "random, kept", "by_label": "sorted by label", "shuffled": "random, dealt anew"}

Row = tuple[int, float, float, float]  # rounds, MB that a node sends, error in %, its deviation over the seeds


def experiment(reproduction: Reproduction) -> None:
    """Train with every period on random and on sorted shards."""
    settings = [(shards, period) for shards in ("fixed", "by_label") for period in (*PERIODS, ONCE)]
    settings.append(("shuffled", ONCE))
    rows = {setting: run(*setting) for setting in settings}
    reproduction.table(
        ["shards", "averaged every H steps", "rounds", "MB sent by a node", "error %", "deviation", "pilot's error %"],
        [[WORDS[shards], period, *row, PILOT.get((shards, period), "")] for (shards, period), row in rows.items()],
    )
    reproduction.picture(draw(rows))
    accept(reproduction, rows)


def run(shards: str, period: int | str) -> Row:
    """The means over the seeds."""
    reports = []
    for seed in SEEDS:
        if period == ONCE:
            of = job(lr=0.2, batch_size=8, epochs=EPOCHS, shards=shards, seed=seed)
            reports.append(train(of, parallel.OneShotAveraging(), NODES))
        else:
            of = job(lr=0.2, batch_size=8 * NODES, epochs=EPOCHS, shards=shards, seed=seed)
            reports.append(train(of, parallel.LocalSGD(int(period)), NODES))
    errors = [100 * error(report) for report in reports]
    last = reports[-1]
    assert last is not None, "a run at a rate of 0.2 has diverged"
    megabytes = last.trace.ledger()[0]["all_reduce"].nbytes / 1e6
    return len(last.recorded["rounds"][0]), megabytes, float(np.mean(errors)), float(np.std(errors))


def accept(reproduction: Reproduction, rows: dict[tuple[str, int | str], Row]) -> None:
    """What must show."""
    rounds = [rows["fixed", period][0] for period in PERIODS]
    reproduction.accept(
        rounds == [ceil(STEPS / period) for period in PERIODS] and rows["fixed", ONCE][0] == 1,
        f"{STEPS} steps need {', '.join(map(str, rounds))} rounds for H = {', '.join(map(str, PERIODS))}, "
        "and averaging once needs one",
    )
    apart = difference_from_minibatch()
    reproduction.accept(
        apart < 1e-5, f"after an epoch with H = 1 no weight differs from minibatch SGD's by {apart:.1g}"
    )
    fixed = {period: rows["fixed", period][2] for period in (*PERIODS, ONCE)}
    reproduction.accept(
        abs(fixed[16] - fixed[1]) < 1,
        f"on random shards the error is {fixed[1]:.2f} % with H = 1 and {fixed[16]:.2f} % with H = 16",
    )
    reproduction.accept(
        fixed[ONCE] > fixed[1] + 1,
        f"averaging once costs over a point: {fixed[ONCE]:.2f} % rather than {fixed[1]:.2f} %",
    )
    ordered = [rows["by_label", period][2] for period in (4, 16, 64, 256, ONCE)]
    reproduction.accept(
        ordered == sorted(ordered) and ordered[-1] > 100 / 3,
        f"on sorted shards it rises with H = 4, 16, 64, 256, T: {', '.join(f'{e:.1f}' for e in ordered)} %",
    )


def difference_from_minibatch() -> float:
    """The largest difference between the weights of Synchronous and of H = 1 after one epoch, in float32."""
    of = job(lr=0.2, batch_size=8 * NODES, epochs=1, shards="by_label")
    first, second = (train(of, strategy, NODES) for strategy in (parallel.Synchronous(), parallel.LocalSGD(1)))
    assert first is not None
    assert second is not None
    return max(float(np.abs(first.checkpoint.model[name] - w).max()) for name, w in second.checkpoint.model.items())


def draw(rows: dict[tuple[str, int | str], Row]) -> Figure:
    """The error against the steps between two rounds."""
    with style.applied():
        figure, (axes,) = style.new_figure(7, 3.8)
        for i, shards in enumerate(("by_label", "fixed")):
            errors = [rows[shards, period][2] for period in (*PERIODS, ONCE)]
            axes.plot(
                (*PERIODS, STEPS),
                errors,
                color=style.SERIES[i],
                linestyle=style.DASHES[i],
                marker="os"[i],
                label=f"shards {WORDS[shards]}",
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks((*PERIODS, STEPS), [*map(str, PERIODS), f"{STEPS}: once"])
        axes.set_yticks((3, 5, 10, 20, 50), ["3", "5", "10", "20", "50"])
        axes.minorticks_off()
        axes.set_xlabel(f"steps between two averagings, H (of {STEPS} in all)")
        axes.set_ylabel("test error, %")
        axes.set_title("8 nodes with models of their own, averaged every H steps")
        axes.legend(loc="upper left")
        style.label_source(figure, "measured", f"digits, means of {len(SEEDS)} seeds")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
