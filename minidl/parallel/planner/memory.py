"""memory: what the fullest rank of an arrangement holds, in closed form, by component."""

from __future__ import annotations

from minidl.parallel.memory.node_memory import NodeMemory, Part
from minidl.parallel.pipeline.formulas import peak_of_stage
from minidl.parallel.pipeline.schedule import Schedule
from minidl.parallel.planner.arrangement import Arrangement
from minidl.parallel.planner.costs import PlannedModel, StageMemory


def memory(model: PlannedModel, arrangement: Arrangement) -> NodeMemory:
    """What the fullest rank holds when it holds most, in bytes by component.

    In 16 bits with Adam, for each number: 2 of its weight, 2 of its gradient, 12 of the optimizer's state with the
    weight in 32 bits. `shard` divides them among replicas; with several micro-batches gradients stay whole. The
    activations are those of the micro-batches in flight, by the closed form of the schedule.

    Raises
        ValueError  the model cannot be divided so; no closed form is known for the schedule

    >>> from minidl.parallel.planner import Transformer
    >>> gpt = Transformer(layers=24, width=2304, heads=24, context=2048)
    >>> memory(gpt, Arrangement(batch=512, dp=32, micro_batch=16, recompute="full")).by_component["weights"]
    3304461312
    """
    model.check(arrangement)
    made = arrangement.made_schedule()
    first: dict[StageMemory, int] = {}  # of equal stages the first one has most micro-batches in flight
    for number, stage in enumerate(model.stages(arrangement)):
        first.setdefault(stage, number)
    stages = ((number, stage) for stage, number in first.items())
    return max((_of_stage(model, arrangement, made, *each) for each in stages), key=lambda each: each.total)


def _of_stage(
    model: PlannedModel, arrangement: Arrangement, made: Schedule, number: int, stage: StageMemory
) -> NodeMemory:
    dp, shard, m = arrangement.dp, arrangement.shard, arrangement.micro_batches
    numbers = stage.weights + stage.experts
    own = stage.weights / dp + stage.experts * arrangement.ep / dp  # the share of a replica
    weights = 2 * (own if shard == 3 else numbers)
    optimizer = 12 * (own if shard else numbers)
    gradients = 2 * (own if shard >= 2 and m == 1 else numbers)
    defers = made.name in ("zb-h1", "zb-h2")  # what the weight gradient needs stays as long as all of it, at most
    in_flight = peak_of_stage(made, number, 1.0, 1.0 if defers else 0.0) if arrangement.pp > 1 else 1.0
    activations = in_flight * stage.kept + stage.once
    buffers = 2 * 2 * stage.unit if shard == 3 else 0.0  # gathered: this unit, and the next one
    buffers += 2 * model.message(arrangement) / (arrangement.tp if arrangement.sequence else 1) * (arrangement.pp > 1)
    if m > 1:
        parts = {"gradients": gradients, "activations": activations, "buffers": buffers}
        moment = "backward"
    elif activations + buffers > gradients:  # gradients come as activations go
        parts, moment = {"activations": activations, "buffers": buffers}, "forward"
    else:
        parts, moment = {"gradients": gradients}, "update"
    parts = {"weights": weights, "optimizer": optimizer, **parts}
    name = f"stage {number}" if arrangement.pp > 1 else "model"
    return NodeMemory([Part(name, component, round(nbytes)) for component, nbytes in parts.items()], moment)
