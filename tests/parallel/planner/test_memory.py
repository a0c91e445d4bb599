"""The planner's memory against `parallel.memory.predicted`, which executes the model's shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from minidl import nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel.pipeline.formulas import peak_of_stage
from minidl.parallel.planner import Arrangement, CountedModel, Transformer, memory
from tests.tiers import exhaustively

GPT = Transformer(layers=8, width=96, heads=6, context=64, vocabulary=204, fused=False)
FEW = (
    Arrangement(24, dp=2, micro_batch=6, shard=3),
    Arrangement(24, dp=2, pp=2, tp=2, micro_batch=3),
)
MORE = (
    Arrangement(24, micro_batch=6),
    Arrangement(24, dp=2, micro_batch=12),
    *(Arrangement(24, dp=2, micro_batch=12, shard=shard) for shard in (1, 2, 3)),
    *(Arrangement(24, tp=2, micro_batch=3, sequence=sequence) for sequence in (False, True)),
    *(Arrangement(24, tp=2, micro_batch=3, sequence=sequence, recompute="selective") for sequence in (False, True)),
    Arrangement(24, pp=4, micro_batch=3),
    Arrangement(24, pp=2, micro_batch=3, schedule="interleaved", chunks=2),
    Arrangement(24, pp=2, tp=2, micro_batch=3, schedule="interleaved", chunks=4, recompute="full", sequence=True),
    Arrangement(24, micro_batch=6, recompute="full"),
    Arrangement(24, pp=2, micro_batch=3, recompute="full"),
    Arrangement(24, pp=2, micro_batch=3, schedule="interleaved", chunks=2, recompute="full"),
)


def job_of(gpt: Transformer, arrangement: Arrangement, minibatches: int = 1) -> parallel.Job:
    tokens = np.broadcast_to(np.zeros((1, gpt.context), np.int64), (minibatches * arrangement.batch, gpt.context))
    dataset = Dataset(tokens, tokens)
    return parallel.Job(
        lambda: nn.models.GPT(gpt.vocabulary, gpt.context, gpt.layers, gpt.heads, gpt.width),
        lambda: Splits(dataset, dataset),
        optim.AdamW,
        batch_size=arrangement.batch,
        precision="bfloat16",
    )


def predicted(gpt: Transformer, arrangement: Arrangement) -> list[parallel.memory.NodeMemory]:
    return parallel.memory.predicted(job_of(gpt, arrangement), arrangement.strategy(), arrangement.world)


def fullest(ranks: list[parallel.memory.NodeMemory]) -> parallel.memory.NodeMemory:
    return max(ranks, key=lambda each: each.total)


@pytest.mark.parametrize("arrangement", [*FEW, *exhaustively(*MORE)], ids=str)
def test_memory_is_within_two_percent_of_what_the_models_shapes_say(arrangement):
    expected, found = fullest(predicted(GPT, arrangement)), memory(GPT, arrangement)
    assert found.total == pytest.approx(expected.total, rel=0.02)
    for component in ("weights", "gradients", "optimizer"):
        assert found.by_component[component] == pytest.approx(expected.by_component[component], rel=0.01)
    activations = expected.by_component["activations"]
    assert found.by_component["activations"] == pytest.approx(activations, rel=0.03, abs=0.02 * expected.total)


@pytest.mark.parametrize("schedule", ["zb-h1", *exhaustively("zb-h2")])
def test_what_weight_gradients_wait_for_is_counted_as_if_all_activations_stayed(schedule):
    arrangement = Arrangement(24, pp=4, micro_batch=3, schedule=schedule)
    ranks, found = predicted(GPT, arrangement), memory(GPT, arrangement)
    assert found.total == pytest.approx(fullest(ranks).total, rel=0.02)
    stage = ranks[int(found.parts[0].name.removeprefix("stage "))].by_component
    assert stage["activations"] < found.by_component["activations"] < 1.2 * stage["activations"]
    assert found.by_component["weights"] == stage["weights"]


def test_the_fullest_stage_may_be_any_one():
    model = CountedModel.of(nn.models.MLP(10, 20, 3001, 2999, 30, 40, 10), np.zeros((1, 10), np.float32))
    held = memory(model, Arrangement(48, pp=6)).by_component
    numbers = 3001 * 2999 + 2999
    assert (held["weights"], held["gradients"], held["optimizer"]) == (2 * numbers, 2 * numbers, 12 * numbers)


def test_stages_hold_the_parameters_once_but_for_the_matrix_of_embedding_and_head():
    stages = GPT.stages(Arrangement(24, pp=4))
    assert sum(stage.weights for stage in stages) == GPT.parameters + GPT.vocabulary * GPT.width


def test_long_sequences_keep_no_matrix():
    gpt = Transformer(layers=3, width=96, heads=6, context=1024, vocabulary=204)
    arrangement = Arrangement(2, tp=2)
    assert memory(gpt, arrangement).total == pytest.approx(fullest(predicted(gpt, arrangement)).total, rel=0.02)


@pytest.mark.parametrize(
    ("pp", "schedule", "chunks"), [(2, "1f1b", 1), *exhaustively((3, "1f1b", 1), (2, "interleaved", 3))]
)
def test_with_full_recomputation_a_stage_holds_the_live_arrays_that_are_counted(pp: int, schedule: str, chunks: int):
    """What differs: on the last stage the head's activations are gone when a block is computed again; there is one
    gradient of an output or of an input at that time, not both.
    """
    gpt = Transformer(layers=6, width=42, heads=3, context=19, vocabulary=53, fused=False)
    plan = Arrangement(12, pp=pp, micro_batch=2, schedule=schedule, chunks=chunks, recompute="full")
    per_chunk = gpt.layers // (pp * chunks)
    strategy = replace(plan.strategy(), cuts=range(1 + per_chunk, 1 + gpt.layers, per_chunk))
    ranks = parallel.memory.live(job_of(gpt, plan, minibatches=3), strategy, pp)
    found, expected = memory(gpt, plan).by_component, ranks[0].by_component  # the first stage is the fullest
    message = gpt.message(plan)
    assert found["activations"] == pytest.approx(expected["activations"], abs=64)  # a loss, a random state
    assert found["buffers"] - expected["buffers"] == message == expected["buffers"]
    head = 2 * message + gpt.message(plan) / gpt.width * gpt.vocabulary
    last = plan.made_schedule().place(pp * chunks - 1)
    stage = gpt.stages(plan)[last]
    in_flight = peak_of_stage(plan.made_schedule(), last, 1.0)
    counted = in_flight * stage.kept + stage.once - head
    assert ranks[last].by_component["activations"] == pytest.approx(counted, abs=64)
