"""What each stage keeps for backward, counted from the order of its actions."""

from __future__ import annotations

from collections.abc import Iterable

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule


def levels(actions: Iterable[Action], activation: float = 1.0, weight: float = 0.0) -> list[float]:
    """What a stage keeps after each of its actions.

    F keeps the activations of a micro-batch for backward. B frees them; I frees them but for what W needs, which W
    frees.

    Parameters
        activation, weight  of one micro-batch and one chunk: what F keeps, and what I leaves to W; in any unit

    >>> from minidl.parallel import pipeline
    >>> levels(pipeline.OneFOneB(stages=2, micro_batches=3).actions(0))
    [1.0, 2.0, 1.0, 2.0, 1.0, 0.0, 0.0]
    """
    change = {"F": activation, "B": -activation, "I": weight - activation, "W": -weight, "U": 0.0}
    kept, now = [], 0.0
    for action in actions:
        now += change[action.kind]
        kept.append(now)
    return kept


def peak_memory(
    schedule: Schedule, activation: float = 1.0, weight: float = 0.0, input: float | None = None
) -> list[float]:
    """The most that each stage keeps at a time.

    Parameters
        activation  what F of a whole stage keeps of one micro-batch: M_B in Qi et al. (arXiv:2401.10241), table 2
        weight      what I of a whole stage leaves to W: M_W there, 0 to count the activations that I needs, or as much
                    as activation to count what W still needs from F on. A chunk has its share of both
        input       what a chunk begins with, of one micro-batch, for `Pipeline(recompute=True)`: F keeps only that, and
                    the activations of one chunk live while F, and later B or I, computes. None: nothing is recomputed

    >>> from minidl.parallel import pipeline
    >>> peak_memory(pipeline.GPipe(4, 8)), peak_memory(pipeline.OneFOneB(4, 8))
    ([8.0, 8.0, 8.0, 8.0], [4.0, 3.0, 2.0, 1.0])
    >>> peak_memory(pipeline.GPipe(4, 8), activation=1.0, input=0.125)
    [2.0, 2.0, 2.0, 2.0]
    >>> peak_memory(pipeline.ZeroBubbleH1(4, 8)), peak_memory(pipeline.ZeroBubbleH1(4, 8), weight=1.0)
    ([4.0, 3.0, 2.0, 1.0], [4.0, 4.0, 4.0, 4.0])
    """
    activation, weight = activation / schedule.chunks_per_stage, weight / schedule.chunks_per_stage
    peaks = []
    for stage in range(schedule.stages):
        actions = list(schedule.actions(stage))
        if input is None:
            most = levels(actions, activation, weight)
        else:
            after = levels(actions, input, weight)
            most = [
                (now if action.kind == "F" else before) + activation * (action.kind in "FBI")
                for action, before, now in zip(actions, [0.0, *after], after, strict=False)
            ]
        peaks.append(max(most, default=0.0))
    return peaks
