"""simulated_step: the time of one training step on many ranks, of which those that behave alike are played once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from minidl.arguments import whole_number
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.simulation.engine import Simulation
from minidl.cluster.engines.simulation.node import Core
from minidl.parallel.folded.charges import Charges
from minidl.parallel.folded.clock import Clock
from minidl.parallel.folded.folding import Folding
from minidl.parallel.folded.stage_program import ACTIVITIES, StageProgram, sizes_of
from minidl.parallel.job import Job, check_job
from minidl.parallel.memory import steps
from minidl.parallel.pipeline.pipeline import Pipeline
from minidl.parallel.strategy import check_strategy
from minidl.parallel.tensor.hybrid import Hybrid


@dataclass(frozen=True)
class SimulatedStep:
    """The time of one training step.

    Attributes
        seconds  from the first forward pass to the last update
        stages   for each stage of the pipeline, the mean seconds of its ranks by activity, whose sum is `seconds`:
                     forward, backward, input, weight   computation of F, B, I and W
                     tp, dp   collectives along these axes, with the waits in them
                     pp       transfers between stages that a rank waits for
                     update   the optimizer
                     bubble   waiting for another stage, and for the end of the step
        nbytes   bytes that all ranks send, by axis, without the number of each rank that `clip_norm` gathers
        played   number of ranks that were played
        ranks    number of ranks that they stand for
        why      which ranks behave alike
    """

    seconds: float
    stages: Sequence[Mapping[str, float]]
    nbytes: Mapping[str, int]
    played: int
    ranks: int
    why: str

    @property
    def activities(self) -> dict[str, float]:
        """The mean seconds of each activity over all ranks."""
        return {activity: sum(stage[activity] for stage in self.stages) / len(self.stages) for activity in ACTIVITIES}

    def __repr__(self) -> str:
        rows = [f"{seconds:12.6g} s  {activity}" for activity, seconds in self.activities.items() if seconds]
        sent = ", ".join(f"{axis} {nbytes:,}" for axis, nbytes in self.nbytes.items() if nbytes)
        head = f"{self.seconds:.6g} s a step, simulated"
        played = f"{self.played:,} of {self.ranks:,} ranks were played: {self.why}"
        return "\n".join([head, *rows, *([f"bytes sent: {sent}"] if sent else []), played])


def simulated_step(job: Job, strategy: Pipeline, nodes: int, on: Simulation) -> SimulatedStep:
    """Simulate one training step after the first, by shapes alone: equal to `train` on the simulation to rounding.

    Parameters
        job       what to train; its largest minibatch is taken
        strategy  Pipeline or Hybrid, without overlap of the sums over replicas with backward
        nodes     as for `train`
        on        the simulated cluster: its network and node

    Chunks of the model that differ are executed once for each size of a micro-batch, with arrays without contents. What
    they compute and send is then replayed for each action of the schedule, on a virtual clock with the simulation's
    ports and links. Ranks along "tp" do the same at the same time if their collectives are symmetric, such as rings of
    equal chunks, and so do replicas of as many samples: then one is played for all of them. In `Network.tree` it is so
    if all of them also share uplinks alike; in other topologies each rank is played.

    Above 64 ranks, chunks may differ by one number. All ranks then send the larger one: the step is longer by at most
    the time of a number in each round.

    Raises
        TypeError   no Pipeline or Hybrid, no Simulation
        ValueError  the strategy cannot train the job, or the step has what is not modelled; too many ranks that differ

    Korthikanti et al. (arXiv:2205.05198), section 6, for what is counted.

    >>> from minidl import cluster, data, nn, optim, parallel
    >>> job = parallel.Job(lambda: nn.models.MLP(64, 300, 300, 10), data.digits, optim.Adam, batch_size=96)
    >>> on = cluster.Simulation("10gbe", cluster.Node(flops_per_s=1e10, bytes_per_s=1e10))
    >>> simulated_step(job, parallel.Hybrid(pp=2, tp=4), 8, on)
    0.00230041 s a step, simulated
     0.000309054 s  forward
     0.000550116 s  backward
      0.00025216 s  tp
      0.00018304 s  pp
      4.2959e-05 s  update
     0.000963077 s  bubble
    bytes sent: tp 921,600, pp 230,400
    2 of 8 ranks were played: ranks along tp behave alike
    """
    nodes = whole_number("simulated_step: nodes", nodes, at_least=1)
    check_job(job)
    _check(job, strategy, nodes, on)
    network = Network.of(on.network)
    if network is not None:
        network.check(nodes)
    with ExitStack() as stack:
        job = steps.emptied(job, stack)
        strategy.check(job, nodes)
        strategy = strategy.prepared(job, nodes)
        plan, made = strategy.plan(job, nodes), strategy.made_schedule()
        batch = min(job.largest_batch, len(job.build_data().train))
        sizes = [sizes_of(batch, plan.dp, replica, made.micro_batches) for replica in range(plan.dp)]
        charges = Charges(job, strategy, sorted({size for mine in sizes for size in mine}))
    folding = Folding(plan, charges, network, on.node, sizes)
    clock, programs = Clock(folding.transport), list[StageProgram]()
    for rank, place in enumerate(folding.played.places):
        core = Core(on.node, rank, 1.0, 0)
        programs.append(
            StageProgram(
                rank,
                clock,
                folding,
                network,
                made,
                charges,
                sizes[place.dp],
                partial(core.seconds, 0.0) if on.node else lambda flops, nbytes: 0.0,
                core.factor * (network.gamma if network else 0.0),
            )
        )
    clock.play([program.run() for program in programs])
    seconds = max(program.ended for program in programs)
    for program in programs:
        program.activities["bubble"] += seconds - program.ended
    of_stage = [[program for program in programs if program.place.pp == stage] for stage in range(plan.pp)]
    return SimulatedStep(
        seconds,
        [{name: sum(one.activities[name] for one in mine) / len(mine) for name in ACTIVITIES} for mine in of_stage],
        {axis: sum(one.sent[axis] for one in programs) * nodes // len(programs) for axis in ("tp", "pp", "dp")},
        len(programs),
        nodes,
        folding.why,
    )


def _check(job: Job, strategy: Any, nodes: int, on: Any) -> None:
    """Raise TypeError or ValueError unless the step can be simulated."""
    check_strategy("simulated_step: strategy", strategy)
    name = type(strategy).__name__
    if type(strategy) not in (Pipeline, Hybrid):
        raise TypeError(f"simulated_step knows Pipeline and Hybrid, not {name}: give a Hybrid")
    if not isinstance(on, Simulation):
        raise TypeError(f"simulated_step: on must be a cluster.Simulation, got {type(on).__name__}")
    unknown = {
        "an asynchronous schedule: choose another, such as 1f1b": strategy.made_schedule().is_asynchronous,
        "the gather of shards: leave out shard": getattr(strategy, "shard", None) is not None,
        "tiles: leave out spatial": isinstance(strategy, Hybrid) and strategy._tiles > 1,
        "slices of samples: leave out sample_slices": getattr(strategy, "sample_slices", False),
        "sums over replicas during backward: give overlap=False": strategy.overlap is not False
        and strategy.plan(job, nodes).dp > 1,
        "an all-reduce of your own: give the name of an algorithm": callable(strategy.algorithm),
        "the norm of all gradients along tp if messages share links: leave out clip_norm": job.clip_norm is not None
        and getattr(strategy, "tp", 1) > 1
        and getattr(Network.of(on.network), "topology", None) is not None,
        'a loss scale: leave out precision="float16"': job.precision == "float16",
        "a second tier of memory: leave out memory": on.memory is not None,
        "random times: leave out the jitter of the node": on.node is not None and on.node.jitter > 0,
    }
    for what, is_there in unknown.items():
        if is_there:
            raise ValueError(f"simulated_step does not model {what}, or measure a run with parallel.train")
