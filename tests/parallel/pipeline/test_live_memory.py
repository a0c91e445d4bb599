"""The arrays that stages keep are as many as the ledger of the schedule says."""

from __future__ import annotations

from functools import partial

import pytest

from minidl import nn, optim
from minidl.parallel import Job, Pipeline, pipeline, train
from tests.parallel.pipeline.watched_layers import WIDTH, WatchedLayer, samples
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(120)

STAGES, MICRO_BATCHES = 4, 8


class Recording(Pipeline):
    """Records what the layers of this rank have counted, in the order of the chunks."""

    def run(self, session):
        super().run(session)
        for name in ("calls", "most_inputs", "most_outputs"):
            layers = [layer for layer in session.model if layer.linear.weight.held]
            session.record(name, [getattr(layer, name) for layer in layers])


def counted(kind: str, on: str, name: str, epochs: int = 2, **settings) -> list[list[int]]:
    """For each stage, the count of each of its chunks."""
    chunks = pipeline.schedule(kind, STAGES, MICRO_BATCHES).chunks
    job = Job(
        lambda: nn.Sequential(*[WatchedLayer(WIDTH) for _ in range(chunks)]),
        samples,
        partial(optim.SGD, lr=0.01),
        batch_size=32,
        epochs=epochs,
    )
    strategy = Recording(STAGES, MICRO_BATCHES, kind, cuts=range(1, chunks), **settings)
    return [rank[-1] for rank in train(job, strategy, STAGES, on=on).recorded[name]]


def most_of_chunks(kind: str, weight: float) -> list[list[int]]:
    """From the list of actions: for each stage and chunk, the most micro-batches of which something is kept.

    weight: 1 if W needs it, 0 if I releases it.
    """
    schedule = pipeline.schedule(kind, STAGES, MICRO_BATCHES)
    found = []
    for stage in range(STAGES):
        of_stage = []
        for chunk in schedule.chunks_of(stage):
            mine = [action for action in schedule.actions(stage) if action.chunk == chunk]
            of_stage.append(round(max(pipeline.memory.levels(mine, 1.0, weight))))
        found.append(of_stage)
    return found


SYNCHRONOUS = [kind for kind in pipeline.SCHEDULES if kind != "pipedream"]
KINDS_AND_ENGINES = [
    *((kind, "simulation") for kind in SYNCHRONOUS),
    ("zb-h1", "processes"),
    *exhaustively(*((kind, "processes") for kind in SYNCHRONOUS if kind != "zb-h1")),
]


@pytest.mark.parametrize(("kind", "on"), KINDS_AND_ENGINES)
def test_outputs_are_released_by_the_backward_for_the_inputs(kind: str, on: str):
    assert counted(kind, on, "most_outputs") == most_of_chunks(kind, 0)


@pytest.mark.parametrize(("kind", "on"), KINDS_AND_ENGINES)
def test_inputs_are_released_by_the_backward_for_the_weights(kind: str, on: str):
    found, expected = counted(kind, on, "most_inputs"), most_of_chunks(kind, 1)
    assert [stage[1:] for stage in found[:1]] + found[1:] == [stage[1:] for stage in expected[:1]] + expected[1:]


@pytest.mark.parametrize("kind", ["1f1b", "gpipe", "zb-h1"])
def test_the_ledger_of_a_stage_is_the_sum_of_its_chunks(kind: str):
    schedule = pipeline.schedule(kind, STAGES, MICRO_BATCHES)
    assert [sum(chunks) for chunks in most_of_chunks(kind, 0)] == pipeline.peak_memory(schedule)


@pytest.mark.parametrize("kind", ["1f1b", "gpipe", "zb-h1"])
def test_each_chunk_computes_exactly_once_more(kind: str):
    evaluation = 64 // 256 + 1  # minibatches
    plain, twice = (counted(kind, "simulation", "calls", epochs=1, recompute=flag) for flag in (False, True))
    steps = 64 // 32
    assert plain == [[steps * MICRO_BATCHES + evaluation]] * STAGES
    assert twice == [[2 * steps * MICRO_BATCHES + evaluation]] * STAGES


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_only_inputs_and_the_activations_of_one_micro_batch_are_kept(on: str):
    """GPipe's stages keep the activations of all micro-batches; computing again, all inputs and those of one."""
    assert counted("gpipe", on, "most_outputs") == [[MICRO_BATCHES]] * STAGES
    assert counted("gpipe", on, "most_outputs", recompute=True) == [[1]] * STAGES
    assert counted("gpipe", on, "most_inputs", recompute=True)[1:] == [[MICRO_BATCHES]] * (STAGES - 1)
