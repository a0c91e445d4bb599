"""step_time: the seconds of a training step in closed form, by what takes them, and the traffic of each axis."""

from __future__ import annotations

from dataclasses import dataclass, fields

from minidl.cluster.cost import formulas
from minidl.parallel.pipeline.clock import Times
from minidl.parallel.pipeline.formulas import idle_seconds, makespan
from minidl.parallel.planner.arrangement import Arrangement
from minidl.parallel.planner.costs import PlannedModel, StageMemory
from minidl.parallel.planner.machine import Machine

NUMBER = 2
"""Bytes of a gradient, and of a weight that is sent."""

UPDATED = 44
"""Bytes for each weight that an update with Adam reads and writes: gradient to 32 bits 6, its norm 4, scaling and Adam
28, and the weight in 16 bits 6."""


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step by what takes them, on the stage of the pipeline that takes longest.

    products, elementwise, tensor, experts  as in `costs.Seconds`, of all micro-batches
    pipeline                                messages along "pp", and of weights that its ends share
    bubble                                  waiting for other stages
    data                                    messages along "dp" that nothing hides
    optimizer                               the update
    """

    products: float
    elementwise: float
    tensor: float
    experts: float
    pipeline: float
    bubble: float
    data: float
    optimizer: float

    @property
    def total(self) -> float:
        """Seconds of the step."""
        return float(sum(getattr(self, each.name) for each in fields(self)))

    @property
    def shares(self) -> dict[str, float]:
        """What each takes of the total, the largest first."""
        shares = {each.name: getattr(self, each.name) / self.total for each in fields(self)}
        return dict(sorted(shares.items(), key=lambda each: -each[1]))


def step_time(model: PlannedModel, arrangement: Arrangement, machine: Machine) -> StepTime:
    """The seconds of a training step of the model, divided so, on this machine.

        m micro-batches on the slowest stage + bubble of the schedule + gradients + update

    The bubble is the closed form of the schedule, for the mean of the other stages: the last one has the head, too,
    and sets the beat. Where the first stage and the last one share a matrix, the first one waits for the last one's
    gradient. Messages between stages and along "tp" take their time; those along "dp" are
    hidden behind the last backward pass with `overlap`, those of shard=3 behind the pass of their unit.

    Raises
        ValueError  the model cannot be divided so; no closed form is known for the schedule

    >>> from minidl.parallel.planner import MACHINES, Transformer
    >>> gpt = Transformer(layers=24, width=2304, heads=24, context=2048)
    >>> time = step_time(gpt, Arrangement(batch=512, dp=32, micro_batch=16, recompute="full"), MACHINES["a100x8"])
    >>> next(iter(time.shares))
    'products'
    """
    model.check(arrangement)
    m, pp = arrangement.micro_batches, arrangement.pp
    stages = model.passes(arrangement, machine)
    totals = [each.total for each in stages]
    slowest = max(range(pp), key=totals.__getitem__)
    passes = stages[slowest]
    message = _message(model, arrangement, machine)
    bubble = 0.0
    if pp > 1:
        others = (sum(totals) - totals[slowest]) / (pp - 1) / totals[slowest]
        forward, weight = others * passes.forward.total + message, others * passes.weight.total
        backward = others * (passes.again.total + passes.input.total) + message
        made, times = arrangement.made_schedule(), Times(forward, backward, weight)
        ends_share = model.tied(arrangement) > 0  # the first stage waits until the last one is done
        bubble = makespan(made, times) - m * (forward + backward + weight) if ends_share else idle_seconds(made, times)
    busy = passes.forward.plus(passes.again).plus(passes.input).plus(passes.weight)
    data, optimizer = _shared(model, arrangement, machine, passes.forward.total, passes.total - passes.forward.total)
    products, elementwise, tensor, experts = (m * each for each in busy)
    pipeline = m * 2 * message + _tied(model, arrangement, machine)
    return StepTime(products, elementwise, tensor, experts, pipeline, bubble, data, optimizer)


def _message(model: PlannedModel, arrangement: Arrangement, machine: Machine) -> float:
    """Seconds of the messages of a micro-batch from a stage to the next, for all its chunks.

    Each shard sends its slice; where the next stage needs all of them, it gathers them along "tp" (Narayanan et al.,
    section 4.1).
    """
    if arrangement.pp == 1:
        return 0.0
    nbytes, t = model.message(arrangement), arrangement.tp
    latency, beta = machine.link(arrangement.stride["pp"], arrangement.pp)
    seconds = latency + nbytes / t * beta
    if not arrangement.sequence:
        link = machine.link(arrangement.stride["tp"], t)
        seconds += formulas.all_gather(t, int(nbytes), *link, itemsize=1)
    return seconds * _crossings(arrangement)


def _tied(model: PlannedModel, arrangement: Arrangement, machine: Machine) -> float:
    """Seconds in which the first and the last stage add up the gradient of what they share."""
    if arrangement.pp == 1:
        return 0.0
    link = machine.link(arrangement.stride["pp"], arrangement.pp)
    return formulas.ring(2, int(model.tied(arrangement)), *link, gamma=0.0, itemsize=1)


def _crossings(arrangement: Arrangement) -> int:
    """How often a micro-batch comes to each stage."""
    return arrangement.made_schedule().chunks_per_stage


def _shared(
    model: PlannedModel, arrangement: Arrangement, machine: Machine, forward: float, backward: float
) -> tuple[float, float]:
    """Seconds along "dp" that nothing hides, and those of the update, on the stage with most weights.

    forward, backward: seconds of a micro-batch
    """
    stage = max(model.stages(arrangement), key=lambda each: each.weights + each.experts)
    dp, m = arrangement.dp, arrangement.micro_batches
    scatter, gather = _along_dp(arrangement, machine, stage)
    if arrangement.shard == 3:
        hidden = (forward, backward) if arrangement.overlap else (0.0, 0.0)
        data = m * max(gather - hidden[0], 0) + (m - 1) * max(gather - hidden[1], 0)
        data += max(gather + scatter - hidden[1], 0)  # the last backward pass hides the sum of gradients, too
    else:
        summed = scatter if arrangement.shard else scatter + gather
        data = max(summed - backward * arrangement.overlap, 0) + (gather if arrangement.shard else 0)
    shares = (dp, dp // arrangement.ep) if arrangement.shard else (1, 1)
    numbers = stage.weights / shares[0] + stage.experts / shares[1]
    return data, machine.memory_seconds(UPDATED * numbers)


def _along_dp(arrangement: Arrangement, machine: Machine, stage: StageMemory) -> tuple[float, float]:
    """Seconds of one reduce-scatter of the gradients of a stage, and of one all-gather of its weights."""
    dp, ep, stride = arrangement.dp, arrangement.ep, arrangement.stride["dp"]
    scatter = gather = 0.0
    groups = [(stage.weights, dp, stride), (stage.experts, dp // ep, stride * ep)]
    for numbers, size, apart in groups[: 1 + (stage.experts > 0)]:
        link, nbytes = machine.link(apart, size), int(NUMBER * numbers)
        scatter += formulas.reduce_scatter(size, nbytes, *link, itemsize=1)
        gather += formulas.all_gather(size, nbytes, *link, itemsize=1)
    return scatter, gather


def traffic(model: PlannedModel, arrangement: Arrangement) -> dict[str, float]:
    """Bytes that a rank sends in a step along each axis: on a middle stage; along "dp" on the one with most weights."""
    dp, m = arrangement.dp, arrangement.micro_batches
    sent = {axis: m * nbytes for axis, nbytes in model.traffic(arrangement).items()}
    if arrangement.pp > 1:
        messages = 2 * _crossings(arrangement) - (arrangement.pp == 2)  # the ends send in one direction once less
        sent["pp"] = m * messages * model.message(arrangement) / arrangement.tp
    stage = max(model.stages(arrangement), key=lambda each: each.weights + each.experts)
    times, group = (2 * m + 1 if arrangement.shard == 3 else 2), dp // arrangement.ep
    sent["dp"] = times * NUMBER * (stage.weights * (dp - 1) / dp + stage.experts * (group - 1) / group)
    return {axis: nbytes for axis, nbytes in sent.items() if nbytes}


def utilisation(model: PlannedModel, arrangement: Arrangement, machine: Machine, seconds: float) -> float:
    """The model's own floating-point operations, without those that are done again, as a share of the peak (MFU)."""
    return model.flops(arrangement.batch) / (seconds * arrangement.world * machine.flops_per_s)
