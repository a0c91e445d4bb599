"""predicted: what fills the memory of each rank while it trains, from shapes alone, before anything is allocated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.data.pairs import minibatch
from minidl.kept_arrays import KeptArrays
from minidl.kernels import Array, shapes
from minidl.nn import Module, Parameter, Stage, run_stages
from minidl.nn.checkpointing import CheckpointedForward
from minidl.nn.counts import nodes_of, without_contents
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.data_parallel.synchronous import Synchronous
from minidl.parallel.gradients.buckets import fill
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import mean_loss
from minidl.parallel.memory.node_memory import NodeMemory, Part
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.costs import costs_of_units, name_of
from minidl.parallel.pipeline.cuts import balanced_cuts
from minidl.parallel.pipeline.handover import separate, tensors_of
from minidl.parallel.pipeline.pipeline import Pipeline
from minidl.parallel.run.learner import shards_of
from minidl.parallel.sharded.scattered_gradients import IN_FLIGHT
from minidl.parallel.sharded.sharded import Sharded
from minidl.parallel.sharded.units import layout_of, places_of, segments_of
from minidl.parallel.strategy import Strategy
from minidl.parallel.tensor.hybrid import Hybrid, RankAndSize
from minidl.recomputation import checkpoint
from minidl.tensor import Tensor, backward

LOSS = "loss"
"""The name of what the loss keeps."""


def predicted(job: Job, strategy: Strategy | None = None, nodes: int = 1) -> list[NodeMemory]:
    """The memory of each rank at its peak within a step, by component and by stage of the model; nothing is allocated.

    Parameters
        job       what to train: its model, optimizer, loss, batch size, and one sample of its data are read
        strategy  Serial (the default), Synchronous, Sharded, Pipeline or Hybrid
        nodes     as for `train`

    Returns a NodeMemory for each rank. Ranks that differ in "dp" or "tp" alone have the same one: that of the first,
    whose shares are the longest.

    The model is executed with arrays without contents, stage by stage; what forward keeps is then counted, not
    estimated. The optimizer makes its state for such arrays too. Gradients, buckets and gathered weights follow from
    the strategy's schedule. The peak is the largest of these moments of a step after the first:

        "forward"   at the end of a forward pass
        "backward"  after the backward pass of a stage: activations before it, gradients from it on
        "reduce"    before the sums of the replicas' gradients are given to the parameters
        "update"    when the optimizer has the gradients

    Minibatches, and what an operation needs only while it computes, do not count. `overlap=None` counts as True, as
    where there is a network.

    Raises
        TypeError     a strategy is expected
        ValueError    the strategy cannot train the job, or is none of the above
        RuntimeError  a layer or the loss reads the numbers that it has computed, to decide by them

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(lambda: nn.models.MLP(64, 300, 10), data.digits, optim.Adam)
    >>> predicted(job)[0]
    NodeMemory(360,240 bytes in update; weights: 90,040, gradients: 90,040, optimizer: 180,160)
    """
    strategy = Serial() if strategy is None else strategy
    _check_known(strategy)
    with ExitStack() as stack:
        job = _without_contents(job, stack)
        strategy.check(job, nodes)
        if isinstance(strategy, Pipeline):
            strategy = _with_cuts(strategy, job, nodes)
        plan = strategy.plan(job, nodes)
        of_stage = [_Rank(job, strategy, nodes, stage).peak() for stage in range(plan.pp)]
    return [of_stage[plan.coordinates(rank)["pp"]] for rank in range(nodes)]
