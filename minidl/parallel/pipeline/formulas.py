"""Closed forms of the papers: the bubble and the peak memory of a schedule, without playing it.

    K, m, v      stages, micro-batches, chunks per stage
    TF, TI, TW   times of forward, and of backward for the inputs and for the weights, of a whole stage
    MB, MW       what forward of a whole stage keeps of a micro-batch, and what I leaves to W

    schedule     idle seconds of the idlest stage      peak memory of stage s
    naive        m (K - 1) (TF + TI + TW)              MB
    gpipe        (K - 1) (TF + TI + TW)                m MB
    1f1b         (K - 1) (TF + TI + TW)                min(m, K - s) MB
    interleaved  (K - 1) (TF + TI + TW) / v            min(m v, 2 (K - s - 1) + (v - 1) K + 1) MB / v
    zb-h1        (K - 1) (TF + TI - TW)                (K - s) MB + s MW
    zb-h2        (K - 1) (TF + TI - 2 TW)              (2 K - 2 s - 1) MB + 2 s MW
    zb-v         0                                     K MB

In zb-h2 and zb-v the stages end one after the other. The makespan of zb-h2 is (K - 1) max(TF, TF + TI - 2 TW) longer
than the computation of a stage, and that of zb-v (K - 1) TF / 2. Elsewhere the first stage begins first and ends last.

PipeDream waits as long as 1F1B, at its start and its end, and keeps as many activations. All take stages of equal
times, and messages that take none. Those of the zero-bubble schedules are for TW <= TF, TW <= TI and MW <= MB, with
m >= K micro-batches for zb-h1 and m >= 2 K - 1 for zb-h2; zb-v is for TF = TI = TW and m >= 2 K - 1. Others are
refused: `simulate` and `peak_memory` count any schedule.

Huang et al., GPipe (arXiv:1811.06965), section 2.3; Narayanan et al. (arXiv:2104.04473), section 2.2; Qi et al., Zero
Bubble Pipeline Parallelism (arXiv:2401.10241), table 2 and section 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from minidl.parallel.pipeline.clock import Times
from minidl.parallel.pipeline.schedule import Schedule


def idle_seconds(schedule: Schedule, times: Times | None = None) -> float:
    """Seconds in which the stage that takes longest waits, from its first forward to its last backward.

    Parameters
        times  of a whole stage, as numbers; default: 1 for F, I and W each

    Raises
        ValueError  no closed form is known for this schedule or these times

    >>> from minidl.parallel import pipeline
    >>> idle_seconds(pipeline.OneFOneB(stages=4, micro_batches=8))
    9.0
    """
    forward, inputs, weights = _times_of(times or Times())
    if schedule.is_asynchronous and times is not None and times.update:
        raise ValueError(
            f"{schedule.name}: the formula holds for updates that take no time, got update={times.update}: use simulate"
        )
    stages, m = schedule.stages, schedule.micro_batches
    whole = (stages - 1) * (forward + inputs + weights)
    match schedule.name:
        case "naive":
            return m * whole
        case "gpipe" | "1f1b" | "pipedream":
            return whole
        case "interleaved":
            return whole / schedule.chunks_per_stage
    _require_micro_batches(schedule)
    if schedule.name == "zb-v":
        if not (math.isclose(forward, inputs) and math.isclose(inputs, weights)):
            raise ValueError(f"zb-v: forward, input and weight must take equal times, got {times}: use simulate")
        return 0.0
    if weights > min(forward, inputs):
        raise ValueError(
            f"{schedule.name}: weight must not take longer than forward and input, got {times}: use simulate"
        )
    return (stages - 1) * (forward + inputs - (1 if schedule.name == "zb-h1" else 2) * weights)


def makespan(schedule: Schedule, times: Times | None = None) -> float:
    """Seconds from the first forward until the last stage is done.

    times, errors: as in `idle_seconds`.

    >>> from minidl.parallel import pipeline
    >>> makespan(pipeline.ZeroBubbleH2(stages=4, micro_batches=8))
    27.0
    """
    idle, others = idle_seconds(schedule, times), schedule.stages - 1
    forward, *_ = _times_of(times or Times())
    if schedule.name == "zb-h2":
        idle = max(idle, others * forward)
    elif schedule.name == "zb-v":
        idle = others * forward / 2
    return _ideal_seconds(schedule, times) + idle


def bubble_of_ideal(schedule: Schedule, times: Times | None = None) -> float:
    """Idle seconds relative to the seconds of a stage that computes without a pause (Narayanan et al.).

    times, errors: as in `idle_seconds`.

    >>> from minidl.parallel import pipeline
    >>> bubble_of_ideal(pipeline.GPipe(stages=4, micro_batches=8))
    0.375
    """
    return idle_seconds(schedule, times) / _ideal_seconds(schedule, times)


def bubble_of_total(schedule: Schedule, times: Times | None = None) -> float:
    """Idle seconds relative to all seconds (GPipe).

    times, errors: as in `idle_seconds`.

    >>> from minidl.parallel import pipeline
    >>> round(bubble_of_total(pipeline.GPipe(stages=4, micro_batches=8)), 3)
    0.273
    """
    idle = idle_seconds(schedule, times)
    return idle / (idle + _ideal_seconds(schedule, times))


def peak_of_stage(schedule: Schedule, stage: int, activation: float = 1.0, weight: float = 0.0) -> float:
    """The most that a stage keeps for backward at a time.

    Parameters
        activation, weight  MB and MW, in any unit

    Raises
        ValueError  no closed form is known for this schedule or these sizes

    >>> from minidl.parallel import pipeline
    >>> [peak_of_stage(pipeline.Interleaved(4, 8, chunks_per_stage=2), stage) for stage in range(4)]
    [5.5, 4.5, 3.5, 2.5]
    """
    stages, m, v = schedule.stages, schedule.micro_batches, schedule.chunks_per_stage
    match schedule.name:
        case "naive":
            return activation
        case "gpipe":
            return m * activation
        case "1f1b" | "pipedream":
            return min(m, stages - stage) * activation
        case "interleaved":
            return min(m * v, 2 * (stages - stage - 1) + (v - 1) * stages + 1) * activation / v
    _require_micro_batches(schedule)
    if weight > activation or (schedule.name == "zb-v" and weight):
        raise ValueError(f"{schedule.name}: weight is too large for the formula, got {weight:g}: use peak_memory")
    match schedule.name:
        case "zb-h1":
            return (stages - stage) * activation + stage * weight
        case "zb-h2":
            return (2 * (stages - stage) - 1) * activation + 2 * stage * weight
    return stages * activation


def _times_of(times: Times) -> tuple[float, float, float]:
    """TF, TI and TW."""
    if times.message:
        raise ValueError(f"formulas hold for messages that take no time, got message={times.message:g}: use simulate")
    numbers = []
    for name in ("forward", "input", "weight"):
        value = getattr(times, name)
        if isinstance(value, Sequence):
            raise ValueError(f"formulas hold for stages of equal times, got {name}={list(value)}: use simulate")
        numbers.append(float(value))
    return numbers[0], numbers[1], numbers[2]


def _ideal_seconds(schedule: Schedule, times: Times | None) -> float:
    return schedule.micro_batches * sum(_times_of(times or Times()))


def _require_micro_batches(schedule: Schedule) -> None:
    """Refuse schedules without a closed form, and zero-bubble schedules whose steady state is never reached."""
    fewest = {"zb-h1": schedule.stages, "zb-h2": 2 * schedule.stages - 1, "zb-v": 2 * schedule.stages - 1}
    if schedule.name not in fewest:
        raise ValueError(f"{type(schedule).__name__}: no formula is known for this schedule: use simulate, peak_memory")
    if schedule.micro_batches < fewest[schedule.name]:
        raise ValueError(
            f"{schedule.name}: the formula holds from {fewest[schedule.name]} micro-batches on, for "
            f"{schedule.stages} stages, got {schedule.micro_batches}: use simulate, peak_memory"
        )
