"""What a checkpointed model keeps, counted from live arrays: the closed form, and the peak that its costs predict."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from benchmarks.reproductions.activation_checkpointing import array_bytes
from minidl import kernels, nn, random
from minidl.grad_mode import recomputing
from minidl.nn import segments
from minidl.parallel.pipeline import costs_of
from tests.nn.test_checkpointing import MODELS, Counted, results, same
from tests.together import naming

STATE = 16
"""Bytes of the arrays in a copy of the random generator's state, of which each segment keeps one."""

WINDOWS = {"LeNet": 96}
"""Bytes of the geometry of pooling windows. Costs count it; it is made once, before what is measured here begins."""


@pytest.fixture
def _reference_kernels() -> Iterator[None]:
    random.generator()  # made at its first use, with arrays of its own
    random.manual_seed(0)  # a generator that the operating system seeds has a larger state
    gc.collect()
    gc.disable()
    with kernels.use("numpy"):
        yield
    gc.enable()


def kept_when_recomputed(model: nn.Module, chosen: Any, x: Any) -> int:
    """The most bytes of arrays that live after a segment has run, or has run again, but for gradients."""
    stages, seen = model.stages, list[int]()

    def traced(number: int, stage: nn.Stage) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            out = stage(x)
            if number in ends and not recomputing.get():
                seen.append(array_bytes() + out.data.nbytes)  # the copy that leaves the segment comes next
            elif number in ends:
                gradients = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
                seen.append(array_bytes() - gradients - out.data.nbytes)  # the gradient of this output
            return out

        return function

    vars(model)["stages"] = lambda: [nn.Stage(traced(i, stage)) for i, stage in enumerate(stages())]
    ends = {part.end - 1 for part in nn.checkpointing(model, chosen).forward.segments if part.recomputed}
    g = np.ones_like(nn.run_stages(stages(), x).numpy())
    tracemalloc.start()
    try:
        out = model(x)
        seen.append(array_bytes())
        out.backward(g)
    finally:
        tracemalloc.stop()
    return max(seen)


@pytest.mark.usefixtures("_reference_kernels")
def test_the_predicted_peak_of_a_model_is_what_lives():
    for choose, name in product([segments.least_peak, lambda costs: segments.equal(len(costs), 2)], MODELS):
        with naming(choose, name):
            counted = Counted(name)
            costs = nn.stage_costs(counted.model, counted.x)
            chosen = choose(costs)
            kept = kept_when_recomputed(counted.model, chosen, counted.x)
            parameters = dict(counted.model.named_parameters())
            waiting = sum(
                parameters[names[0]].data.nbytes for names in counted.model.ties()
            )  # a tied weight's first gradient
            tolerance = STATE * (len(chosen) + 1) + WINDOWS.get(name, 0)
            predicted = segments.peak(costs, chosen)
            assert predicted - tolerance <= kept <= predicted + waiting + tolerance


def test_measuring_costs_leaves_the_model_and_the_random_numbers_as_they_were():
    for name in MODELS:
        counted = Counted(name)
        truth = results(counted.model, counted.plain(), counted.x)
        random.manual_seed(2)
        again = Counted(name)
        nn.stage_costs(again.model, again.x)
        assert same(results(again.model, again.plain(), again.x), truth)


def test_stage_costs_are_the_forward_half_of_what_a_pipeline_counts():
    for name in MODELS:
        with naming(name):
            counted = Counted(name)
            costs, rows = nn.stage_costs(counted.model, counted.x), costs_of(counted.model, counted.x).rows
            assert costs == [(row.forward, row.kept, row.output) for row in rows]
