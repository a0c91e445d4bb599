"""Activation memory of pipeline stages, counted from the order of their actions."""

from __future__ import annotations

from collections.abc import Iterable

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule


def levels(actions: Iterable[Action], activation: float = 1.0, weight: float = 0.0) -> list[float]:
    """The memory that a stage holds after each of its actions.

    F keeps the activations of a micro-batch for backward. B frees them; I frees all but those that W needs, and W frees
    the rest.

    Parameters
        activation  what F keeps for one micro-batch and one chunk, in any unit
        weight      the share of it that I leaves for W, in the same unit

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
    """The peak memory of each stage.

    Parameters
        activation  what F of a whole stage keeps for one micro-batch: M_B in Qi et al. (arXiv:2401.10241), table 2
        weight      what I of a whole stage leaves for W: M_W there; 0 counts only the activations that I needs, a value
                    equal to activation counts what W needs, from F on. Both are divided evenly among a stage's chunks
        input       input of a chunk for one micro-batch, with `Pipeline(recompute=True)`: F keeps only that, and the
                    activations of one chunk exist while F, and later B or I, computes. None: nothing is recomputed

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
