"""Units that keep only inputs train to the same bits, run every forward once more, and keep what the ledger says."""

from __future__ import annotations

import weakref
from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from minidl import Tensor, cluster, nn, optim, parallel
from minidl.grad_mode import is_grad_enabled, recomputing
from minidl.nn.feed_forward import FeedForward
from minidl.nn.models import gpt
from minidl.parallel import Job, Pipeline, pipeline
from tests.parallel.jobs import assert_same_bits, blobs, small_job
from tests.parallel.pipeline.test_asynchronous import deep_model
from tests.parallel.pipeline.test_pipeline import deep_gpt
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively


def assert_recomputation_changes_no_bit(
    job: Job, strategy: Pipeline, nodes: int, on: Any = "simulation", recompute: Any = True
) -> None:
    plain, other = (parallel.train(job, replace(strategy, recompute=each), nodes, on=on) for each in (False, recompute))
    assert_same_bits(other, plain)


@pytest.mark.parametrize(("job", "kind"), [("ResNet", "zb-h1"), ("tied GPT", "gpipe"), ("tied GPT", "zb-v")])
def test_recomputation_changes_no_bit(job: str, kind: str):
    """Batch norm, dropout, a tie, frozen weights, clipping; the last minibatch has fewer samples."""
    this = replace(JOBS[job], epochs=1, **({"model": partial(deep_gpt, 0.2)} if kind == "zb-v" else {}))
    assert_recomputation_changes_no_bit(this, Pipeline(stages=2, micro_batches=4, schedule=kind), 2)


@pytest.mark.parametrize(("kind", "cuts"), [("interleaved", (2, 3, 4)), *exhaustively(("1f1b", (3,)), ("zb-h1", (3,)))])
def test_selective_recomputation_runs_the_core_of_attention_twice_and_changes_no_bit(
    kind: str, cuts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
):
    calls, attend = dict.fromkeys((False, True), 0), gpt._attend

    def counted(heads: Tensor) -> Tensor:
        calls[recomputing.get()] += is_grad_enabled()
        return attend(heads)

    monkeypatch.setattr(gpt, "_attend", counted)
    job, strategy = replace(JOBS["tied GPT"], model=partial(deep_gpt, 0.2), epochs=1), Pipeline(2, 4, kind, cuts=cuts)
    parallel.train(job, strategy, 2, on="simulation")
    plain = dict(calls)
    assert plain[False] > 0 == plain[True]
    assert_recomputation_changes_no_bit(job, strategy, 2, recompute="selective")
    assert calls == {False: 3 * plain[False], True: plain[False]}


def test_it_changes_none_where_replicas_reduce_gradients_during_backward():
    strategy = Pipeline(stages=3, micro_batches=3, schedule="zb-h2", overlap=True, bucket_mb=0.0001)
    assert_recomputation_changes_no_bit(replace(JOBS["tied GPT"], epochs=1), strategy, 6, cluster.Simulation("10gbe"))


class Shared(nn.Module):
    """Four units that use one layer."""

    def __init__(self) -> None:
        self.first, self.shared, self.head = nn.Linear(5, 7), nn.Sequential(nn.Linear(7, 7), nn.Tanh()), nn.Linear(7, 3)

    def stages(self) -> list[nn.Stage]:
        return [nn.Stage(each, each) for each in (self.first, *[self.shared] * 4, self.head)]

    def forward(self, x: Any) -> Tensor:
        return nn.run_stages(self.stages(), x)


@pytest.mark.parametrize(("kind", "cuts"), [("zb-h1", (4,)), *exhaustively(("gpipe", (3,)), ("1f1b", (4,)))])
def test_it_changes_none_where_units_of_a_chunk_share_a_layer(kind: str, cuts: tuple[int, ...]):
    job = small_job(model=Shared, data=partial(blobs, dtype="float32"))
    assert_recomputation_changes_no_bit(job, Pipeline(2, 3, kind, cuts=cuts), 2)


@pytest.mark.parametrize("weight_versions", ["stashing", "vertical_sync"])
def test_an_asynchronous_stage_recomputes_with_the_weights_of_the_forward_pass(weight_versions: str):
    job = small_job(model=deep_model, batch_size=7, epochs=1)
    assert_recomputation_changes_no_bit(
        job, Pipeline(4, schedule="pipedream", cuts=(1, 2, 3), weight_versions=weight_versions), 4
    )


@pytest.mark.parametrize("weight_versions", ["stashing", "latest"])
def test_attention_has_no_weights_of_its_own_so_that_any_version_will_do(weight_versions: str):
    job = replace(JOBS["tied GPT"], model=untied, optimizer=partial(optim.SGD, lr=0.1), clip_norm=None, epochs=1)
    strategy = Pipeline(2, schedule="pipedream", cuts=(2,), weight_versions=weight_versions)
    assert_recomputation_changes_no_bit(job, strategy, 2, recompute="selective")


class DropsWeights(nn.Module):
    """Self-attention that drops attention weights."""

    def __init__(self) -> None:
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attention(x, x, x, need_weights=False, is_causal=True)[0]


def untied() -> nn.Module:
    block = gpt.Block(n_embd=8, n_head=2, dropout=0.2, bias=True, mlp=partial(FeedForward, 8, 32, dropout=0.2))
    return nn.Sequential(nn.Embedding(11, 8), DropsWeights(), block, DropsWeights(), nn.Linear(8, 11)).double()


# ---- calls and memory, counted ----


CALLS: dict[tuple[int, bool], int] = defaultdict(int)
LIVE: dict[int, list[Any]] = defaultdict(list)
PEAKS: dict[int, int] = defaultdict(int)
UNITS = 2
"""Of the model in each chunk."""


class Chain(nn.Module):
    """Layers of equal width, whose calls and live arrays are counted by chunk."""

    def __init__(self, chunks: int) -> None:
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(UNITS * chunks - 1))
        self.head = nn.Linear(5, 3)

    def stages(self) -> list[nn.Stage]:
        return [
            nn.Stage(partial(counted, number, layer), layer) for number, layer in enumerate([*self.layers, self.head])
        ]

    def forward(self, x: Any) -> Tensor:
        return nn.run_stages(self.stages(), x)


def counted(number: int, layer: nn.Module, x: Any) -> Tensor:
    out: Tensor = layer(x)
    chunk = number // UNITS
    if out.requires_grad:
        CALLS[number, recomputing.get()] += 1
        if isinstance(x, Tensor):
            LIVE[chunk].append(weakref.ref(x.data))
        LIVE[chunk].append(weakref.ref(out.data))
        arrays = {id(array): array for reference in LIVE[chunk] if (array := reference()) is not None}
        PEAKS[chunk] = max(PEAKS[chunk], len(arrays))
    return out


@pytest.fixture(autouse=True)
def _nothing_counted():
    for counts in (CALLS, LIVE, PEAKS):
        counts.clear()


@pytest.mark.parametrize("recompute", [True, *exhaustively(False)])
@pytest.mark.parametrize("kind", ["gpipe", "1f1b", "zb-h1", "interleaved", "zb-v", "pipedream"])
def test_each_unit_runs_once_more_for_each_micro_batch_and_keeps_what_the_ledger_says(kind: str, recompute: bool):
    """Live arrays of each chunk: inputs and outputs of its units. Chunk 0 reads the samples, which are not counted.

    The last unit keeps its activations where its backward follows at once, in all schedules but GPipe.
    """
    stages, steps = 4, 2
    micro_batches = None if kind == "pipedream" else 8
    made = pipeline.schedule(kind, stages, micro_batches or steps)
    data = partial(blobs, dtype="float32")
    job = small_job(model=partial(Chain, made.chunks), data=data, batch_size=30, epochs=1)
    cuts = range(UNITS, UNITS * made.chunks, UNITS)
    parallel.train(job, Pipeline(stages, micro_batches, kind, cuts=cuts, recompute=recompute), stages, on="simulation")
    passes = made.micro_batches * (1 if kind == "pipedream" else steps)
    calls = {(n, second): passes for n in range(UNITS * made.chunks) for second in {False, recompute}}
    if kind != "gpipe":
        calls.pop((UNITS * made.chunks - 1, True), None)
    assert calls == CALLS
    of_chunks = pipeline.Listed(
        made.chunks,
        made.micro_batches,
        lines=[[a for a in made.actions(made.place(chunk)) if a.chunk == chunk] for chunk in range(made.chunks)],
        places=range(made.chunks),
    )
    for chunk in range(1, made.chunks):
        # I leaves to W the inputs of both units: the chunk's input and the first unit's output
        kept = UNITS + (not recompute)
        logits = 0
        if chunk == made.chunks - 1 and not recompute:  # the loss does not read its input in backward
            kept, logits = UNITS, 1
        [*peaks] = pipeline.peak_memory(of_chunks, kept, weight=2, again=recompute)
        assert PEAKS[chunk] == peaks[chunk] + logits, chunk


# ---- what is refused ----


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"recompute": "yes"}, ValueError, "recompute must be False, True, 'full' or 'selective', got 'yes'"),
        ({"recompute": 1}, TypeError, "recompute must be False, True, 'full' or 'selective', got 1"),
        (
            {"schedule": "pipedream", "weight_versions": "latest", "recompute": True},
            ValueError,
            "recompute=True needs the weights of the forward pass, which weight_versions='latest' does not keep",
        ),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        Pipeline(**settings)
