"""Sharded: ZeRO in three stages, beside Synchronous; bytes that are kept and sent, checkpoints, what is refused."""

import tracemalloc
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pytest

from minidl import Tensor, cluster, nn, optim, parallel
from minidl import functional as F
from minidl.data import Dataset, Splits
from minidl.parallel import Sharded, Synchronous
from minidl.parallel.sharded.flat_group import FlatGroup
from tests.parallel.jobs import (
    assert_same_bits,
    blobs,
    momentum_sgd,
    normalized,
    small_job,
    tokens,
    two_groups,
    weights,
)
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

STAGES = [1, 2, 3]


class Tied(nn.Module):
    """Weights and a 0-d parameter of two stages, a frozen layer, an unused one, and dropout."""

    def __init__(self):
        self.first, self.frozen, self.unused = nn.Linear(5, 6), nn.Linear(6, 6), nn.Linear(3, 7)
        self.frozen.requires_grad_(False)
        self.gain = nn.Parameter(np.array(1.3))
        self.second, self.third = nn.Linear(6, 6), nn.Linear(6, 6)
        self.third.weight = self.second.weight
        self.dropout, self.last = nn.Dropout(0.3), nn.Linear(6, 3)
        self.double()

    def stages(self):
        return [
            nn.Stage(lambda x: (Tensor(x), self.first(x).tanh()), self.first, self.unused),
            nn.Stage(lambda both: (both[0], self.frozen(both[1]).tanh() * self.gain), self.frozen, self.gain),
            nn.Stage(lambda both: (both[0], self.second(both[1]).tanh()), self.second),
            nn.Stage(lambda both: self.third(both[1]).tanh() * self.gain, self.third, self.gain),
            nn.Stage(self.dropout, self.dropout),
            nn.Stage(self.last, self.last),
        ]

    def forward(self, x):
        return nn.run_stages(self.stages(), x)


def adamw(parameters):
    return optim.AdamW(parameters, lr=0.03)


@pytest.mark.parametrize("nodes", [1, 3, *exhaustively(2, 5)])
def test_every_stage_ends_with_the_bits_of_synchronous(nodes):
    job = small_job(model=Tied, data=partial(blobs, 34), optimizer=two_groups)  # the last minibatch has 2 samples
    truth = parallel.train(job, Synchronous(algorithm="ordered", accumulate=2), nodes, "simulation")
    start = job.build_model().state_dict()
    for stage in STAGES:
        strategy = Sharded(stage=stage, algorithm="ordered", accumulate=2, bucket_mb=2e-4, overlap=stage > 1)
        report = parallel.train(job, strategy, nodes, "simulation")
        assert set(report.digests) == set(truth.digests)
        assert [row["test_loss"] for row in report.history] == [row["test_loss"] for row in truth.history]
        for name, array in report.checkpoint.model.items():  # weight decay would change them if they took part
            assert (array == start[name]).all() == name.startswith(("unused", "frozen"))


OPTIMIZERS = (
    partial(optim.LARS, lr=0.5, exclude_1d=True),
    partial(optim.LAMB, lr=0.02, exclude_1d=True),
    partial(optim.LAMB, lr=0.02),
    two_groups,
)


@pytest.mark.parametrize(
    ("optimizer", "stage"),
    [*zip(OPTIMIZERS, (3, 1, 2, 3), strict=True), *exhaustively(*product(OPTIMIZERS, STAGES))],
)
def test_norms_are_those_of_whole_parameters(optimizer, stage):
    job = small_job(optimizer=optimizer, clip_norm=0.3)
    reports = [parallel.train(job, s, 3, "simulation") for s in (Synchronous(), Sharded(stage=stage, bucket_mb=2e-4))]
    assert np.abs(weights(reports[1]) - weights(reports[0])).max() < 1e-12
    unclipped = parallel.train(small_job(optimizer=optimizer), Synchronous(), 3, "simulation")
    assert np.abs(weights(reports[1]) - weights(unclipped)).max() > 1e-5


@pytest.mark.parametrize("stage", [3, *exhaustively(2)])
def test_on_processes_with_overlap_a_run_has_the_bits_of_a_simulated_one(stage):
    job = small_job(model=Tied, optimizer=adamw, epochs=2)
    strategy = Sharded(stage=stage, algorithm="ordered", overlap=True)
    assert parallel.train(job, strategy, 2).digests == parallel.train(job, strategy, 2, "simulation").digests


@pytest.mark.parametrize("batch_norm", ["local", "synchronized"])
@pytest.mark.parametrize("stage", [3, *exhaustively(1, 2)])
def test_batch_norm_is_that_of_synchronous(stage, batch_norm):
    data = partial(blobs, 34 if batch_norm == "synchronized" else 60)  # 34: the third node has no sample of the last 2
    job, made = small_job(model=normalized, data=data), {"algorithm": "ordered", "batch_norm": batch_norm}
    truth, report = (
        parallel.train(job, s, 3, "simulation") for s in (Synchronous(**made), Sharded(stage=stage, **made))
    )
    assert_same_bits(report, truth)


def small_gpt():
    return nn.models.GPT(vocab_size=11, block_size=6, n_layer=2, n_head=2, n_embd=8, dropout=0.2)


@pytest.mark.parametrize("segments", [None, 3])
def test_a_gpt_is_trained_unit_by_unit_with_and_without_checkpointing(segments):
    model = small_gpt if segments is None else lambda: nn.checkpointing(small_gpt(), segments)
    job = small_job(model=model, data=partial(tokens, 11), optimizer=adamw, batch_size=8)
    truth = parallel.train(
        small_job(model=small_gpt, data=partial(tokens, 11), optimizer=adamw, batch_size=8),
        Synchronous(algorithm="ordered"),
        3,
        "simulation",
    )
    report = parallel.train(job, Sharded(stage=3, algorithm="ordered"), 3, "simulation")
    assert report.digests == truth.digests


@pytest.mark.parametrize(
    "before",
    [
        Sharded(stage=3, algorithm="ordered"),
        *exhaustively(Synchronous(algorithm="ordered"), *(Sharded(stage=s, algorithm="ordered") for s in (1, 2))),
    ],
)
def test_any_stage_goes_on_from_any_checkpoint(before, tmp_path):
    job = partial(small_job, model=Tied, optimizer=two_groups)
    whole = parallel.train(job(), before, 3, "simulation")
    parallel.train(job(epochs=1), before, 3, "simulation", folder=tmp_path)
    for after in (Synchronous(algorithm="ordered"), *(Sharded(stage=stage, algorithm="ordered") for stage in STAGES)):
        report = parallel.train(job(), after, 3, "simulation", resume=tmp_path / "checkpoint.npz")
        assert report.digests == whole.digests
        assert report.history[0]["loss"] == whole.history[0]["loss"]


@pytest.mark.parametrize("stage", [1, 3])
def test_when_a_node_dies_an_elastic_run_goes_on_from_the_checkpoint(stage, tmp_path):
    job, strategy = small_job(optimizer=adamw), Sharded(stage=stage, algorithm="ordered")
    whole = parallel.train(job, strategy, 3, "simulation")
    faults = cluster.FaultPlan().kill(1, at=("all_reduce", 6))
    report = parallel.train(job, strategy, 3, "simulation", folder=tmp_path, faults=faults, elastic=True)
    assert [restart.source for restart in report.restarts] == ["checkpoint"]
    assert report.digests == whole.digests


class Mixed(nn.Sequential):
    """Weights of two types and of none."""

    def __init__(self, dtype):
        super().__init__(nn.Linear(5, 8).to(dtype), nn.Tanh(), nn.Linear(8, 3).to(dtype))
        self.empty, self.gain = nn.Parameter(np.zeros((0, 3))), nn.Parameter(np.full(4, 0.3))

    def stages(self):
        first, tanh, last = list(self)[:3]
        scaled = nn.Stage(lambda x: tanh(first(x)) * self.gain.sum().to(first.weight.dtype), first, self.gain)
        return [scaled, nn.Stage(last, last, self.empty)]

    def forward(self, x):
        return nn.run_stages(self.stages(), x)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_model_of_several_types_ends_with_the_same_bits(dtype):
    job = small_job(model=partial(Mixed, dtype), data=partial(blobs, dtype=dtype))
    truth = parallel.train(job, Synchronous(algorithm="ordered"), 3, "simulation")
    for stage in STAGES:
        assert parallel.train(job, Sharded(stage, algorithm="ordered"), 3, "simulation").digests == truth.digests


class OfSamples(nn.Tanh):
    """Refuses an empty batch, as layers that reshape do."""

    def forward(self, x):
        assert len(x)
        return super().forward(x)


@pytest.mark.parametrize("stage", STAGES)
def test_nodes_evaluate_together_though_one_has_a_batch_less(stage, monkeypatch):
    monkeypatch.setattr("minidl.parallel.run.evaluation.EVALUATION_BATCH", 5)
    data = blobs(34)  # the third node has no sample of the last minibatch
    data = Splits(data.train, Dataset(data.test.x[:16], data.test.y[:16]))  # 6, 5 and 5 samples
    job = small_job(model=lambda: nn.Sequential(nn.Linear(5, 8), OfSamples(), nn.Linear(8, 3)).double(), data=data)
    truth = parallel.train(job, Synchronous(algorithm="ordered"), 3, "simulation")
    report = parallel.train(job, Sharded(stage, algorithm="ordered"), 3, "simulation")
    assert report.history[-1]["test_loss"] == truth.history[-1]["test_loss"]


def test_a_parameter_of_the_loss_is_trained():
    scale = nn.Parameter(np.array(0.7))
    with_scale = lambda parameters: momentum_sgd([*parameters, scale])  # noqa: E731
    job = small_job(loss=lambda outputs, y: F.cross_entropy(outputs * scale, y), optimizer=with_scale)
    reports = [parallel.train(job, each, 1, "simulation") for each in (Synchronous(), Sharded(2), Sharded(3))]
    for report in reports[1:]:
        assert report.digests == reports[0].digests
        assert report.checkpoint.optimizer["state"].keys() == reports[0].checkpoint.optimizer["state"].keys()


# ---- bytes ----


def traced_bytes():
    """The bytes of all arrays of the process, traced by tracemalloc."""
    chosen = [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    chosen += [tracemalloc.Filter(False, f"*/{name}/*") for name in ("numba", "numpy/ma")]  # their constants
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(chosen).traces)


class Looking:
    """Records at each update the bytes of all arrays of the process, and those that the node has sent."""

    def gradients(self, session):
        def look():
            session.record("live", traced_bytes())
            session.record("sent", session.comm.bytes_sent)

        gradients = super().gradients(session)
        session.optimizer.after_step.insert(0, look)  # before the gradients are dropped
        return gradients


@dataclass(frozen=True)
class Measured(Looking, Sharded):
    """Sharded, measured."""


@dataclass(frozen=True)
class MeasuredSynchronous(Looking, Synchronous):
    """Synchronous, measured."""


def traced_model():
    tracemalloc.start(1)
    return nn.models.MLP(5, 300, 301, 250, 3)


WEIGHTS = 5 * 300 + 300 + 300 * 301 + 301 + 301 * 250 + 250 + 250 * 3 + 3


OF_STAGES = [(lambda s, n: 2 * s, 2), (lambda s, n: s + s / n, 2), (lambda s, n: 2 * s / n, 3)]
"""Of weights and gradients, of s bytes each: what one of n nodes keeps; how often it sends a word for each weight."""


@pytest.mark.parametrize(
    ("stage", "precision"),
    [
        *((stage, "bfloat16") for stage in (1, 2, 3)),
        (0, "float32"),
        *exhaustively(*((stage, "float32") for stage in (1, 2, 3)), (0, "bfloat16")),
        *exhaustively(*((stage, "float16") for stage in range(4))),
    ],
)
def test_a_node_keeps_and_sends_the_bytes_of_the_formulas(stage, precision):
    word, state = (4, 8) if precision == "float32" else (2, 12)
    nodes, settings = 3, {"overlap": True, "bucket_mb": 0.1}
    strategy = Measured(stage=stage, **settings) if stage else MeasuredSynchronous(**settings, algorithm="ring")
    of_words, sent = OF_STAGES[max(stage - 1, 0)]
    kept = of_words(word, nodes) + (state / nodes if stage else state)
    job = small_job(model=traced_model, optimizer=optim.Adam, schedule=None, epochs=1, precision=precision)
    try:
        recorded = parallel.train(job, strategy, nodes).recorded
    finally:
        tracemalloc.stop()  # in this process, which has built the model, too
    for rank in range(nodes):
        assert max(recorded["live"][rank]) == pytest.approx(kept * WEIGHTS, rel=0.02)  # 0.5 %: the samples
        steps = np.diff(recorded["sent"][rank])
        flags = 2 * 8 * 4  # for each of 8 parameters a byte, or a word, all-reduced; of float16, whether all are finite
        assert np.abs(steps - sent * word * WEIGHTS * (nodes - 1) / nodes).max() <= flags + word * sent * 8


def test_the_ranges_of_all_nodes_are_the_weights():
    def program(comm):
        parameters = [nn.Parameter(np.arange(float(n)) + 10 * n) for n in (1, 7, 2)]
        group = FlatGroup(parameters, comm)
        return group.of_rank.copy(), {p.size: owners for p, owners in group.owners().items()}

    results = cluster.launch(program, nodes=4, on="simulation").results
    assert [len(part) for part, _ in results] == [3, 3, 2, 2]
    assert np.concatenate([part for part, _ in results]).tolist() == [10, *range(70, 77), 20, 21]
    assert results[0][1] == {1: [0], 7: [0, 1, 2], 2: [3]}


# ---- what is refused ----


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"stage": 4}, "Sharded: stage must be from 1 to 3, got 4"),
        ({"stage": 0}, "Sharded: stage must be from 1 to 3, got 0"),
        ({"algorithm": "tree"}, "Sharded: algorithm must be 'auto' or 'ordered', got 'tree'"),
    ],
)
def test_wrong_settings_are_refused(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Sharded(**settings)


def test_the_stage_is_the_setting_without_a_name():
    assert (Sharded(2).stage, Sharded(2).bucket_mb) == (2, 1.0)


def test_more_nodes_than_weights_are_refused():
    job = small_job(model=lambda: nn.Sequential(nn.Linear(5, 3)).double(), batch_size=30)
    with pytest.raises(ValueError, match="19 nodes are more than the 18 weights"):
        Sharded().check(job, 19)
    parallel.train(job, Sharded(stage=3, algorithm="ordered"), 18, "simulation")


class Whole(nn.Module):
    """A model that does not say where it can be cut."""

    def __init__(self):
        self.layer = nn.Linear(5, 3)

    def forward(self, x):
        return self.layer(x)


class Lying(nn.Sequential):
    """Its first stage uses what only the second names."""

    def stages(self):
        first, second = self
        return [nn.Stage(lambda x: F.linear(first(x), second.weight), first), nn.Stage(second, second)]

    def forward(self, x):
        return nn.run_stages(self.stages(), x)


class Returning(Lying):
    """Its first stage passes on a weight."""

    def stages(self):
        first, second = self
        return [
            nn.Stage(lambda x: (first(x), first.weight), first),
            nn.Stage(lambda both: second(both[0]) * both[1].sum(), second),
        ]


def test_stage_3_refuses_a_model_that_is_not_the_sum_of_its_stages():
    with pytest.raises(ValueError, match=r"Whole.*define stages.*or use stage=2"):
        Sharded(stage=3).check(small_job(model=Whole), 2)
    for model, said in ((Lying, r"does not hold 1\.weight"), (Returning, "stage 0 of the model returns weights")):
        job = small_job(model=lambda model=model: model(nn.Linear(5, 3), nn.Linear(3, 3)).double())
        with pytest.raises(cluster.RankFailed, match=said):
            parallel.train(job, Sharded(stage=3), 2, "simulation")


class Ruining(optim.SGD):
    def update(self, data, gradient, state, group):
        data[...] = np.nan


def test_stage_3_names_weights_that_are_not_finite():
    job = small_job(optimizer=partial(Ruining, lr=0.1))
    with pytest.raises(parallel.NonFiniteLoss, match="of this rank's partition that is not finite is that of "):
        parallel.train(job, Sharded(stage=3), 2, "simulation")
