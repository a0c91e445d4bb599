"""Weight stashing: without a flush, backward needs the weights of its forward, or deep pipelines fail to train.

Harlap et al. (arXiv:1806.03377) and Narayanan et al. (PipeDream, SOSP 2019) let the stages of a pipeline update after
each backward instead of waiting for each other. At its backward, a minibatch then finds weights that others have
updated since its forward. Weight stashing keeps the weights of each forward until its backward: stage s of K, from 0,
keeps K - s versions. Vertical sync goes further: all stages compute with as many updates as stage 0 had made.

Here: an MLP of 8 layers, 64-48x7-10 with the initial weights of He et al., on the digits, one layer on each of 8
stages; minibatches of 32, plain SGD, 12 epochs, at the end of each of which the pipeline is flushed. The stages are
those of `parallel.Pipeline(schedule="pipedream")` on a simulated cluster; "synchronous" is one node. The pilot's values
come from an independent implementation at rate 0.1 without flushes, whose minibatch is unknown.

What must show: (1) with stashing and with vertical sync, each gradient of the first epoch that a stage applies is that
of the whole model, at the versions of the stages' weights that the formula names, to 1e-10; without stashing it is not.
(2) The versions kept are K - s, K and 1, and their bytes as many times those of a stage's weights. (3) At rate 0.15,
with stashing the mean error is within 3 points of synchronous training. Without it, the mean and most seeds end more
than 20 points above. Vertical sync fails as well: its gradients are consistent, but on all stages as old as those of
stage 0.

Measured: without stashing 17 of 20 seeds end more than 20 points above the mean with stashing, nearly all of them at
90 %, which is guessing; with vertical sync all do. At rate 0.1, 2 of 10 do without stashing, 9 with vertical sync.

What does not show: a difference at half the depth. On 4 stages of 2 layers, training without stashing succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions import digits
from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, nn, parallel
from minidl.parallel import Session
from minidl.parallel.run.minibatches import common_minibatches
from minidl.plots import style

TITLE = "PipeDream: weight stashing keeps a deep asynchronous pipeline training (Narayanan et al. 2019)"

SIZES, STAGES = (64, *[48] * 7, 10), 8
RULES = {"stashing": "stashing", "vertical_sync": "vertical sync", "latest": "no stashing"}
SEEDS = {0.1: range(10), 0.15: range(20)}  # by rate
SYNCHRONOUS = "synchronous"
PILOT = {SYNCHRONOUS: 3.4, "stashing": 4.1, "latest": 68.9, "vertical_sync": 65.0}

Errors = dict[tuple[float, str], list[float]]
"""The test error in % of each seed, by rate and rule."""


def experiment(reproduction: Reproduction) -> None:
    versions = gradients_and_versions(reproduction)
    errors = training(reproduction)
    reproduction.picture(draw(versions, errors))


def pipeline(rule: str, stages: int = STAGES) -> parallel.Pipeline:
    return parallel.Pipeline(stages=stages, schedule="pipedream", weight_versions=rule)


# Gradients and versions


@dataclass(frozen=True)
class Recorded(parallel.Pipeline):
    """Each stage records its gradient at every update, and its weights before the first one and after each."""

    def run(self, session: Session) -> None:
        held = {name: p for name, p in session.model.named_parameters() if p.held}
        update = session.update

        def recorded() -> None:
            session.record("gradients", {name: np.array(p.grad) for name, p in held.items()})
            update()
            session.record("weights", {name: p.numpy().copy() for name, p in held.items()})

        session.record("weights", {name: p.numpy().copy() for name, p in held.items()})
        session.update = recorded  # type: ignore[method-assign, assignment]
        super().run(session)


def double_mlp() -> nn.Module:
    return digits.he_mlp(*SIZES).double()


def double_digits() -> data.Splits:
    train, test = (data.Dataset(each.x.astype(np.float64), each.y) for each in data.digits())
    return data.Splits(train, test)


def gradients_and_versions(reproduction: Reproduction) -> dict[str, list[int]]:
    """Compare the gradients of an epoch with those of the whole model; returns the versions kept by each stage."""
    job = digits.job(lr=0.15, model=double_mlp, data=double_digits, batch_size=32, epochs=1)
    all_stages = range(STAGES)
    formula = {"stashing": [STAGES - s for s in all_stages], "vertical_sync": [STAGES] * STAGES, "latest": [1] * STAGES}
    versions, sizes = {}, [0] * STAGES
    for rule, name in RULES.items():
        report = digits.train(job, Recorded(stages=STAGES, schedule="pipedream", weight_versions=rule), STAGES)
        assert report is not None
        difference = largest_difference(job, report, rule)
        reproduction.accept(
            difference > 0.01 if rule == "latest" else difference < 1e-10,
            f"{name}: gradients differ from those of the whole model, at the versions of the forward, by at most "
            f"{difference:.1e} of their largest number",
        )
        versions[rule] = [counts[0] for counts in report.recorded["weight versions"]]
        nbytes = [counts[0] for counts in report.recorded["bytes of weight versions"]]
        sizes = [sum(array.nbytes for array in weights[0].values()) for weights in report.recorded["weights"]]
        reproduction.accept(
            versions[rule] == formula[rule] and nbytes == [v * n for v, n in zip(versions[rule], sizes, strict=True)],
            f"{name}: stages 0 to {STAGES - 1} keep {', '.join(map(str, versions[rule]))} versions, together "
            f"{sum(nbytes) / sum(sizes):.2f} times the bytes of the model",
        )
    rows = [[s, size, *(versions[rule][s] for rule in RULES)] for s, size in enumerate(sizes)]
    columns = ["stage", "bytes of its weights", *(f"versions, {name}" for name in RULES.values())]
    reproduction.table(columns, rows, "float64")
    return versions


def largest_difference(job: parallel.Job, report: parallel.Report, rule: str) -> float:
    """Between the gradients that were applied and those of the whole model, relative to their largest number."""
    model, largest = job.build_model(), 0.0
    loader = common_minibatches(job, job.build_data().train, replicas=1, replica=0, epoch=0)
    for m, batch in enumerate(loader):
        for s, weights in enumerate(report.recorded["weights"]):
            delay = STAGES - 1 if rule == "vertical_sync" else STAGES - 1 - s
            model.load_state_dict(weights[max(0, m - delay)], strict=False)
        model.zero_grad()
        job.loss(model(batch.x), batch.y).backward()
        applied = {name: array for stage in report.recorded["gradients"] for name, array in stage[m].items()}
        for name, parameter in model.named_parameters():
            gradient = np.asarray(parameter.grad)
            difference = np.abs(gradient - applied[name]).max() / np.abs(gradient).max()
            largest = max(largest, float(difference))
    return largest


# Training


def training(reproduction: Reproduction) -> Errors:
    """Train by each rule at each rate with each seed."""
    errors = {
        (rate, rule): [error(rule, rate, seed) for seed in seeds]
        for rate, seeds in SEEDS.items()
        for rule in (SYNCHRONOUS, *RULES)
    }
    shallow = {rule: [error(rule, 0.15, seed, stages=4) for seed in range(5)] for rule in ("stashing", "latest")}
    rows: list[list[Any]] = [
        [STAGES, rate, name_of(rule), *summary(values), PILOT[rule] if rate == 0.1 else ""]
        for (rate, rule), values in errors.items()
    ]
    rows += [[4, 0.15, name_of(rule), *summary(values), ""] for rule, values in shallow.items()]
    columns = ["stages", "rate", "weights", "seeds", "error, %", "lowest", "highest", "above 20 %", "pilot, %"]
    reproduction.table(columns, rows, "test error after 12 epochs; a loss that is not finite counts as 90 %")

    mean = {rule: float(np.mean(errors[0.15, rule])) for rule in (SYNCHRONOUS, *RULES)}
    reproduction.accept(
        abs(mean["stashing"] - mean[SYNCHRONOUS]) < 3,
        f"rate 0.15: with stashing {mean['stashing']:.1f} %, synchronous {mean[SYNCHRONOUS]:.1f} % (3 points apart)",
    )
    for rule in ("latest", "vertical_sync"):
        above = sum(value > mean["stashing"] + 20 for value in errors[0.15, rule])
        reproduction.accept(
            mean[rule] > mean["stashing"] + 20 and above > len(SEEDS[0.15]) / 2,
            f"rate 0.15: {RULES[rule]} {mean[rule]:.1f} %; {above} seeds of {len(SEEDS[0.15])} are more than 20 points "
            "above stashing",
        )
    return errors


def error(rule: str, rate: float, seed: int, stages: int = STAGES, epochs: int = 12) -> float:
    """The test error in % after training."""
    job = digits.job(lr=rate, model=partial(digits.he_mlp, *SIZES), batch_size=32, epochs=epochs, seed=seed)
    if rule == SYNCHRONOUS:
        return 100 * digits.error(digits.train(job))
    return 100 * digits.error(digits.train(job, pipeline(rule, stages), stages))


def name_of(rule: str) -> str:
    return RULES.get(rule, rule)


def summary(values: Sequence[float]) -> list[float]:
    """How many, their mean, the lowest, the highest, how many are above 20 %."""
    return [len(values), float(np.mean(values)), min(values), max(values), sum(value > 20 for value in values)]


# The picture


@style.applied()
def draw(versions: dict[str, list[int]], errors: Errors) -> Figure:
    """The error of each seed by rate and rule, and the versions that each stage keeps."""
    figure, (left, right) = style.new_figure(9.6, 3.6, columns=2)
    for tone, rule in enumerate((SYNCHRONOUS, *RULES)):
        for place, rate in enumerate(SEEDS):
            values = sorted(errors[rate, rule])
            across = place + 0.2 * tone - 0.3 + np.linspace(-0.06, 0.06, len(values))
            label = name_of(rule) if place == 0 else None
            left.plot(across, values, "os^D"[tone], color=style.SERIES[tone], ms=3.5, fillstyle="none", label=label)
    left.set(yscale="log", ylabel="test error (%)", title="Each seed, 8 stages")
    left.set_xticks(range(len(SEEDS)), [f"rate {rate}" for rate in SEEDS])
    left.set_yticks([2, 5, 10, 20, 50, 90], ["2", "5", "10", "20", "50", "90"])
    left.minorticks_off()
    left.legend(loc="center left", bbox_to_anchor=(0, 0.6), fontsize=8)
    for tone, (rule, name) in enumerate(RULES.items(), start=1):
        look: dict[str, Any] = {"color": style.SERIES[tone], "ls": style.DASHES[tone], "marker": "os^D"[tone], "ms": 4}
        right.plot(range(STAGES), versions[rule], label=name, **look)
    right.set(title="Memory", xlabel="stage", ylabel="versions of the weights", ylim=(0, STAGES + 1))
    right.legend(loc="upper right", bbox_to_anchor=(1, 0.85))
    style.label_source(figure, "simulated", "MLP 64-48x7-10 on digits, minibatches of 32, 12 epochs")
    return figure


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
