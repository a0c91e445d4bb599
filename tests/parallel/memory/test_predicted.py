"""predicted: published numbers, bytes of a block, micro-batches in flight; nothing is allocated; what it refuses."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import compress, data, nn, optim
from minidl.kernels.shapes import NoContents
from minidl.parallel import Gossip, Hybrid, Job, Offload, Pipeline, Serial, Sharded, Strategy, Synchronous
from minidl.parallel.memory import MemoryPlan, NodeMemory, Part, predicted

BATCH, POSITIONS, WIDTH, HEADS = 6, 15, 24, 3


def text_job(batch_size: int = BATCH, positions: int = POSITIONS, precision: str | None = None, **sizes: int) -> Job:
    """A GPT by AdamW, whose data takes the memory of a sample."""
    tokens = np.broadcast_to(np.zeros((1, positions), np.int64), (batch_size, positions))
    dataset = data.Dataset(tokens, tokens)
    usual = {"vocab_size": 31, "block_size": positions, "n_layer": 5, "n_head": HEADS, "n_embd": WIDTH, "dropout": 0.1}
    model = partial(nn.models.GPT, **(usual | sizes))
    splits = data.Splits(dataset, dataset)
    return Job(model, splits, optim.AdamW, batch_size=batch_size, precision=precision)


def rows() -> data.Splits:
    """Rows of 64 numbers and one of 10 classes."""
    dataset = data.Dataset(np.zeros((70, 64), np.float32), np.arange(70) % 10)
    return data.Splits(dataset, dataset)


def test_the_published_bytes_of_zero_are_those_at_the_update():
    large = text_job(64, 1024, "float16", vocab_size=50257, n_layer=37, n_head=32, n_embd=4096)  # 7.66e9 parameters
    parameters = sum(each.numel() for each in large.build_held(lambda model: ()).parameters())
    ways = (Synchronous(), Sharded(1), Sharded(2), Sharded(3))
    gigabytes = [predicted(large, way, 64, "update")[0].total / parameters * 7.5 for way in ways]
    assert gigabytes == pytest.approx([120, 31.4, 16.6, 1.88], rel=0.003)  # arXiv:1910.02054, figure 1


@pytest.mark.parametrize(("precision", "nbytes"), [(None, 4), ("bfloat16", 2)])
def test_a_block_keeps_the_activations_of_its_formula(precision: str | None, nbytes: int):
    job = text_job(precision=precision)
    core = HEADS * BATCH * POSITIONS**2 * nbytes
    rest = BATCH * POSITIONS * WIDTH * (16 * nbytes + 2)  # 34 in Korthikanti et al., with 2-byte numbers
    for recompute, formula in ((False, rest + core), ("selective", rest)):
        memory = predicted(job, Hybrid(recompute=recompute), moment="forward")[0]
        kept = {part.name: part.nbytes for part in memory.parts if part.component == "activations"}
        statistics = 4 * BATCH * POSITIONS * 4  # mean and deviation of two norms, in float32
        assert abs(kept["transformer.h.2"] - formula) <= statistics


def test_equal_blocks_are_counted_once_and_sum_up_to_what_nn_count_counts():
    job = text_job()
    for model in (job.build_model(), nn.models.MLP(19, 40, 40, 40, 40, 40, 40, 11)):
        x = (
            np.zeros((BATCH, POSITIONS), np.int64)
            if isinstance(model, nn.models.GPT)
            else np.ones((BATCH, 19), np.float32)
        )
        labels = x if x.ndim == 2 and x.dtype == np.int64 else np.zeros(BATCH, np.int64)
        dataset = data.Dataset(x, labels)
        mine = replace(job, model=model, data=data.Splits(dataset, dataset))
        parts = predicted(mine, moment="forward")[0].parts
        kept = sum(part.nbytes for part in parts if part.component == "activations" and part.name != "loss")
        assert kept == nn.count(model, x).activation_bytes


def test_the_first_stage_of_1f1b_keeps_as_many_micro_batches_as_there_are_stages():
    job = text_job(batch_size=32)
    one = Pipeline(stages=4, micro_batches=8, cuts=(2, 3, 4))
    of_stages = [memory.by_component["activations"] for memory in predicted(job, one, 4, "forward")]
    of_gpipe = [
        memory.by_component["activations"] for memory in predicted(job, replace(one, schedule="gpipe"), 4, "forward")
    ]
    single = [kept / 8 for kept in of_gpipe]
    assert [kept / each for kept, each in zip(of_stages, single, strict=True)] == [4, 3, 2, 1]


def test_a_model_of_175_billion_parameters_takes_some_megabytes():
    job = text_job(1536, 2048, vocab_size=51200, n_layer=6, n_head=384, n_embd=49152)
    tracemalloc.start()
    plan = Hybrid(dp=3, pp=4, tp=8, micro_batches=512, sequence=True, recompute="selective", shard=1)
    ranks = predicted(job, plan, 96)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert sum(ranks[rank].by_component["weights"] for rank in range(32)) == pytest.approx(
        179.8e9 * 4, rel=0.001
    )  # the tied one twice


def test_optimizer_states_are_those_that_the_optimizer_makes():
    makers = {optim.Adam: 8, partial(optim.SGD, lr=0.1): 0, partial(optim.SGD, lr=0.1, momentum=0.9): 4}
    makers |= {optim.LAMB: 8, partial(optim.LARS, lr=0.1): 4, optim.Adagrad: 4}
    weights = sum(each.size for each in nn.models.MLP(64, 37, 10).parameters())
    for maker, nbytes in makers.items():
        job = Job(lambda: nn.models.MLP(64, 37, 10), rows, maker)
        assert predicted(job)[0].by_component["optimizer"] == nbytes * weights
        wide = replace(job, precision="bfloat16")
        assert predicted(wide)[0].by_component["optimizer"] == (nbytes + 4) * weights


def test_frozen_layers_have_neither_gradients_nor_states_and_what_no_stage_uses_counts():
    class Partly(nn.Module):
        def __init__(self) -> None:
            self.first, self.second = nn.Linear(64, 33), nn.Linear(33, 10)
            self.first.requires_grad_(False)

        def forward(self, x: object) -> object:
            return self.second(self.first(x).relu())

    memory = predicted(Job(Partly, rows, optim.Adam), moment="update")[0]
    trained = (33 * 10 + 10) * 4
    assert memory.by_component == {
        "weights": (64 * 33 + 33) * 4 + trained, "gradients": trained, "optimizer": 2 * trained,
        "activations": 0, "buffers": 0,
    }  # fmt: skip


def test_a_device_with_a_host_that_computes_segments_again_is_refused():
    job = text_job()
    again = replace(job, model=lambda: nn.checkpointing(job.build_model(), 2))
    with pytest.raises(ValueError, match="leave out checkpointing, or offload"):
        predicted(again, Sharded(2, offload=Offload()), 2)


class Hoarding(Serial):
    """Inherits what Serial says, but not what it keeps."""


class InHalves(Strategy):
    """Says what it keeps: two micro-batches, one after the other."""

    def memory_plan(self, job: Job, mesh: object) -> MemoryPlan:
        return MemoryPlan(job.build_model(), micro_batches=2)


def test_a_strategy_of_ones_own_has_the_memory_that_its_plan_says():
    [alone], ranks = predicted(text_job(14), Serial(micro_batches=2)), predicted(text_job(42), InHalves(), 3)
    assert [memory.by_component for memory in ranks] == [alone.by_component] * 3


def test_what_cannot_be_predicted_is_refused_in_a_sentence():
    job = text_job()
    for strategy, sentence in (
        (Gossip(), "Gossip does not say what its nodes keep: measure a run with parallel.memory.live"),
        (Hoarding(), "Hoarding does not say what its nodes keep"),
        (Serial(shards=2), "what Serial keeps to add up the gradients of 2 shards is not known"),
        (Synchronous(compressor=compress.TopK(0.1)), "what a compressor keeps is not known"),
        (Pipeline(stages=2, schedule="pipedream"), "choose another schedule, such as 1f1b"),
        (Pipeline(stages=2, micro_batches=2, cuts="seconds"), 'use cuts="flops", or give the cuts'),
        (Hybrid(shard=3), "give dp=2 or more"),
        (Hybrid(spatial=2), "GPT cannot be divided by pixels"),
    ):
        nodes = 1 if isinstance(strategy, Serial) or strategy == Hybrid(shard=3) else 2
        with pytest.raises(ValueError, match=re.escape(sentence)):
            predicted(job, strategy, nodes)
    with pytest.raises(TypeError, match="must be a Strategy"):
        predicted(job, "serial")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="moment must be 'forward', 'backward' or 'update'"):
        predicted(job, moment="reduce")


@pytest.mark.parametrize(
    ("nbytes", "sentence"),
    [
        (-7, "Part 'fc', gradients: nbytes must be at least 0, got -7"),
        (1.5, "Part 'fc', gradients: nbytes must be a whole number of at least 0, got 1.5"),
        ("64KiB", "Part 'fc', gradients: nbytes must be a whole number of at least 0, got '64KiB'"),
    ],
)
def test_bytes_of_a_part_are_a_whole_number(nbytes, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        NodeMemory([Part("fc", "weights", 93), Part("fc", "gradients", nbytes)])


def test_a_layer_that_decides_by_its_numbers_is_refused():
    class Deciding(nn.Linear):
        def forward(self, x: object) -> object:
            y = super().forward(x)
            return y if float(y.sum().data) > 0 else -y

    with pytest.raises(NoContents, match="reads numbers of an array"):
        predicted(Job(lambda: Deciding(64, 10), rows, optim.Adam))
