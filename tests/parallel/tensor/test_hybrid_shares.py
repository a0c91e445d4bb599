"""Hybrid(shard=): replicas that share out state, beside Hybrid without; bytes kept and sent, checkpoints, refusals."""

import tracemalloc
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np
import pytest

from minidl import cluster, nn, optim, parallel
from minidl.nn.shard import FlatShard, Shard
from minidl.parallel import Hybrid, Job, Serial, Sharded
from minidl.parallel.spatial.division import grid_of
from minidl.parallel.tensor import ColumnConv2d, GridConv2d, RowLinear
from tests.parallel.jobs import blobs, decay, small_job, tokens, two_groups, weights
from tests.parallel.pipeline.models import CASES, Cut
from tests.parallel.sharded.test_sharded import traced_bytes
from tests.parallel.spatial import test_division as tiles
from tests.parallel.tensor.test_hybrid import Restored, hybrid, mlp
from tests.parallel.tensor.test_one_weird_trick import ALEXNET
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SHARDS = [1, 2, 3]
of_each_stage = pytest.mark.parametrize("shards", [[3], *exhaustively([1, 2])], ids=str)


def gpt(dropout=0.2):
    return nn.models.GPT(vocab_size=12, block_size=6, n_layer=2, n_head=6, n_embd=12, dropout=dropout).double()


JOB = Job(
    gpt, partial(tokens, 12), two_groups, decay, batch_size=12, epochs=2, seed=5
)  # its last minibatch has 2 samples
ONE_EPOCH = replace(JOB, epochs=1)


def nodes_of(strategy):
    return strategy.dp * strategy.pp * strategy.tp * prod(grid_of("spatial", strategy.spatial))


def assert_as_without(job, strategy, tolerance=None, shards=SHARDS):
    """Run with these stages of sharing out: the same bits, or weights within the tolerance, and the same state."""
    strategy = replace(strategy, algorithm="ordered")
    truth = parallel.train(job, strategy, nodes_of(strategy), "simulation")
    for shard in shards:
        report = parallel.train(job, replace(strategy, shard=shard), nodes_of(strategy), "simulation")
        if tolerance is not None:
            assert np.abs(weights(report) - weights(truth)).max() < tolerance
            continue
        assert report.digests == truth.digests
        assert [row["test_loss"] for row in report.history] == [row["test_loss"] for row in truth.history]
        np.testing.assert_equal(report.checkpoint.model, truth.checkpoint.model)
        np.testing.assert_equal(report.checkpoint.optimizer, truth.checkpoint.optimizer)


@pytest.mark.parametrize(
    ("dims", "settings", "shards"),
    [
        ((3, 1, 1), {"overlap": True}, SHARDS),
        ((2, 2, 2), {"sequence": True, "recompute": True}, [3]),
        *exhaustively(
            ((2, 2, 2), {"sequence": True, "recompute": True}, [1, 2]),
            ((2, 1, 2), {}, SHARDS),
            ((2, 2, 1), {"overlap": True}, SHARDS),
            ((3, 2, 1), {"recompute": True}, SHARDS),
            ((2, 2, 2), {"axes": ("tp", "dp", "pp"), "overlap": True}, SHARDS),
        ),
    ],
)
def test_every_stage_ends_with_the_bits_of_hybrid_without(dims, settings, shards):
    """A GPT whose embedding and head are one weight on two stages; of three replicas one has no sample at last."""
    assert_as_without(ONE_EPOCH, hybrid(*dims, **settings), shards=shards)


@of_each_stage
@pytest.mark.parametrize("kind", ["interleaved", "zb-v", *exhaustively("gpipe", "zb-h1")])
def test_every_schedule_ends_with_the_same_bits(kind, shards):
    settings = {"chunks_per_stage": 2} if kind == "interleaved" else {}
    job = replace(ONE_EPOCH, batch_size=25)  # of two replicas one has no sample at last
    assert_as_without(job, hybrid(2, 2, 1, schedule=kind, overlap=True, bucket_mb=2e-4, **settings), shards=shards)


FIRST = ["a weight of three stages", "tensors that no stage uses", "last stage frozen", "batch norm and dropout"]


@of_each_stage
@pytest.mark.parametrize("name", [*FIRST, *exhaustively(*(name for name in CASES if name not in FIRST))])
def test_models_that_are_hard_to_cut_end_with_the_same_bits(name, shards):
    kind = "zb-h1" if len(name) % 2 else "1f1b"  # either for about half of them
    strategy = hybrid(2, 2, 1, schedule=kind, recompute="frozen" in name)
    assert_as_without(replace(CASES[name], epochs=1), strategy, shards=shards)


GRIDS = {"conv1": ColumnConv2d, "layer*.conv?": GridConv2d, "layer*.downsample.0": GridConv2d, "fc": RowLinear}


@of_each_stage
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("ResNet", {"spatial": (2, 1), "overlap": True}),
        *exhaustively(
            ("LeNet", {"spatial": "2x2", "recompute": True, "overlap": True}),
            ("ResNet", {"spatial": (2, 2), "recompute": True}),
            ("mixed", {"spatial": 3, "pp": 2, "overlap": True}),
            ("LeNet", {"spatial": 2, "tp": 2}),
            ("ResNet", {"spatial": 2, "tp": 2, "layout": GRIDS}),
        ),
        ("ResNet", {"tp": 2, "layout": GRIDS}),
    ],
    ids=str,
)
def test_where_nodes_have_tiles_or_shares_of_channels_every_stage_ends_with_the_same_bits(model, settings, shards):
    job = replace(tiles.JOBS[model], clip_norm=None, epochs=1)
    assert_as_without(job, Hybrid(**({"dp": 2, "micro_batches": 2} | settings)), shards=shards)


@of_each_stage
def test_where_nodes_have_slices_of_samples_every_stage_ends_with_the_same_bits(shards):
    assert_as_without(replace(ALEXNET, clip_norm=None), hybrid(2, 1, 3, sample_slices=True), shards=shards)


def test_a_checkpoint_of_tiles_that_are_shared_out_continues_on_one_node(tmp_path):
    job, one = tiles.JOBS["LeNet"], Serial(shards=2)
    truth = parallel.train(job, one, on="simulation")
    parallel.train(replace(job, epochs=1), Hybrid(spatial="2x2", shard=3), 8, "simulation", folder=tmp_path)
    resumed = parallel.train(job, one, on="simulation", resume=tmp_path / "checkpoint.npz")
    assert np.abs(weights(resumed) - weights(truth)).max() < 1e-10


class Product(Cut):
    """Its weight is a product of two parameters, whose gradients read each other."""

    def __init__(self):
        self.first, self.last = nn.Linear(5, 6), nn.Linear(6, 3)
        self.left, self.right = (nn.Parameter(np.linspace(low, 0.7, 12).reshape(4, 3)) for low in (-0.6, 0.2))
        self.double()

    def stages(self):
        factors = self.left, self.right
        return [
            nn.Stage(self.first, self.first),
            nn.Stage(lambda x: (x @ (self.left.T @ self.right).T.reshape(-1)[:6].reshape(1, 6).T).tanh() + x, *factors),
            nn.Stage(self.last, self.last),
        ]


@of_each_stage
@pytest.mark.parametrize("kind", ["1f1b", "zb-h1"])
def test_gradients_that_are_deferred_read_no_weights_that_have_gone(kind, shards):
    strategy = hybrid(2, 1, 1, schedule=kind, micro_batches=3)
    assert_as_without(small_job(model=Product, epochs=1), strategy, shards=shards)


@of_each_stage
@pytest.mark.parametrize(
    "optimizer", [partial(optim.LAMB, lr=0.02), *exhaustively(partial(optim.LARS, lr=0.5, exclude_1d=True))]
)
def test_norms_of_layers_and_of_the_whole_gradient_count_each_weight_once(optimizer, shards):
    job = replace(ONE_EPOCH, optimizer=optimizer, schedule=None, clip_norm=0.3)
    assert_as_without(job, hybrid(2, 2, 1), tolerance=1e-12, shards=shards)


@pytest.mark.parametrize(
    ("job", "pp", "shard"),
    [(JOB, 2, 3), *exhaustively((JOB, 2, 1), (JOB, 2, 2), *((JOBS["ResNet"], 1, shard) for shard in SHARDS))],
)
def test_clipping_counts_weights_of_all_axes_once(job, pp, shard):
    """With tied weights on two stages, and norms that both nodes along "tp" have."""
    assert_as_without(replace(job, epochs=1, clip_norm=0.3), hybrid(2, pp, 2), tolerance=1e-12, shards=[shard])


@pytest.mark.parametrize("shard", [3, *exhaustively(1, 2)])
def test_on_processes_a_run_has_the_bits_of_a_simulated_one(shard):
    strategy = hybrid(2, 2, 1, shard=shard, algorithm="ordered", overlap=True)
    assert (
        parallel.train(ONE_EPOCH, strategy, 4).digests == parallel.train(ONE_EPOCH, strategy, 4, "simulation").digests
    )


@of_each_stage
@pytest.mark.parametrize("precision", ["bfloat16", *exhaustively("float16")])
@pytest.mark.parametrize(
    ("job", "strategy"),
    [  # embedding and head are one weight: on two nodes, in two units of a node
        (replace(ONE_EPOCH, model=lambda: gpt().float()), hybrid(2, 2, 1, recompute="selective")),
        *exhaustively(
            (replace(ONE_EPOCH, model=lambda: gpt().float()), hybrid(2, 1, 1, recompute="selective")),
            (
                replace(tiles.JOBS["ResNet"], model=lambda: tiles.resnet().float(), epochs=1, clip_norm=None),
                Hybrid(dp=2, spatial=2),
            ),
        ),
    ],
)
def test_weights_in_16_bits_with_masters_end_with_the_same_bits(job, strategy, precision, shards):
    assert_as_without(replace(job, precision=precision), strategy, shards=shards)


# ---- checkpoints ----


@pytest.mark.parametrize("shard", [3, *exhaustively(1, 2)])
def test_a_checkpoint_is_whole_and_loads_under_any_other_plan(shard, tmp_path):
    before = hybrid(2, 2, 2, shard=shard)
    saved = parallel.train(ONE_EPOCH, before, 8, "simulation", folder=tmp_path).checkpoint
    path = tmp_path / "checkpoint.npz"
    for after in (Restored(dp=3, pp=2, shard=3, micro_batches=2), Restored(dp=2, tp=3, shard=1, micro_batches=2)):
        again = parallel.train(JOB, after, 6, "simulation", resume=path).checkpoint
        np.testing.assert_equal(again.model, saved.model)
        np.testing.assert_equal(again.optimizer, saved.optimizer)
    truth = parallel.train(JOB, before, 8, "simulation")
    resumed = parallel.train(JOB, Serial(shards=2, micro_batches=2), 1, "simulation", resume=path)
    assert np.abs(weights(resumed) - weights(truth)).max() < 1e-12


def test_a_run_goes_on_from_the_checkpoint_of_another_strategy(tmp_path):
    job = replace(JOB, model=partial(gpt, dropout=0.0))
    parallel.train(replace(job, epochs=1), Sharded(3), 3, "simulation", folder=tmp_path)
    path = tmp_path / "checkpoint.npz"
    truth = parallel.train(job, Serial(), 1, "simulation", resume=path)
    resumed = parallel.train(job, hybrid(2, 2, 1, shard=3), 4, "simulation", resume=path)
    assert np.abs(weights(resumed) - weights(truth)).max() < 1e-10


@pytest.mark.parametrize("shard", [3, *exhaustively(2)])
def test_when_a_node_dies_an_elastic_run_goes_on_from_the_checkpoint(shard, tmp_path):
    strategy = hybrid(2, 2, 1, shard=shard, algorithm="ordered")
    whole = parallel.train(JOB, strategy, 4, "simulation")
    faults = cluster.FaultPlan().kill(1, at=("all_reduce", 8))
    report = parallel.train(JOB, strategy, 4, "simulation", folder=tmp_path, faults=faults, elastic=True)
    assert [restart.source for restart in report.restarts] == ["checkpoint"]
    assert report.digests == whole.digests


def test_a_flat_shard_of_a_shard_is_cut_from_the_whole_array_and_joined_to_the_shard():
    whole = np.arange(24.0).reshape(6, 4)
    half = Shard("tp", index=1, count=2, dim=1)
    ranges = [FlatShard((6, 2), start, stop, half) for start, stop in ((0, 5), (5, 12))]
    assert ranges[0].cut(whole).reshape(-1).tolist() == [2, 3, 6, 7, 10]
    assert ranges[0].taken_from(half.cut(whole), (5, 1)).tolist() == ranges[0].cut(whole).tolist()
    assert ranges[1].whole_shape((7, 1)) == (6, 4)
    np.testing.assert_array_equal(ranges[0].join([each.cut(whole) for each in ranges]), half.cut(whole))


# ---- bytes, and time ----


@dataclass(frozen=True, kw_only=True)
class Measured(Hybrid):
    """Records at each update the bytes of all arrays of the process, of the weights of its stage, and sent so far."""

    def update(self, session):
        if tracemalloc.is_tracing():
            session.record("live", traced_bytes())
        session.record("weights", sum(parameter.size for parameter in session.parameters))
        session.record("sent", session.comm.bytes_sent)
        super().update(session)


def wide():
    return nn.models.MLP(5, 300, 240, 260, 6)


WIDE = small_job(model=wide, data=partial(blobs, dtype="float32"), optimizer=optim.Adam, schedule=None, epochs=1)


def traced():
    tracemalloc.start(1)
    return wide()


@pytest.mark.parametrize(
    ("shard", "kept"),
    [(3, lambda n: 16 / n), *exhaustively((1, lambda n: 8 + 8 / n), (2, lambda n: 4 + 12 / n))],
)
@pytest.mark.parametrize(("pp", "tp"), [(2, 1), *exhaustively((1, 2))])
def test_a_node_keeps_the_bytes_of_the_formulas_for_each_weight_of_its_stage(shard, kept, pp, tp):
    strategy = Measured(dp=2, pp=pp, tp=tp, micro_batches=2, shard=shard, overlap=True, bucket_mb=0.1)
    try:
        recorded = parallel.train(replace(WIDE, model=traced), strategy, 4).recorded
    finally:
        tracemalloc.stop()  # in this process, which has built the model, too
    for live, own in zip(recorded["live"], recorded["weights"], strict=True):
        assert max(live) == pytest.approx(kept(2) * own[0], rel=0.02)  # 0.6 %: the samples


@pytest.mark.parametrize("recompute", [True, *exhaustively(False)])
def test_stages_1_and_2_send_what_an_all_reduce_sends_and_stage_3_the_weights_twice_a_micro_batch(recompute):
    dp, count = 3, 4
    strategy = partial(Measured, dp=dp, pp=2, micro_batches=count, recompute=recompute, algorithm="auto")
    runs = [parallel.train(WIDE, strategy(shard=shard), 6, "simulation").recorded for shard in (None, *SHARDS)]
    for shard, run in zip(SHARDS, runs[1:], strict=True):
        for own, sent, before in zip(run["weights"], run["sent"], runs[0]["sent"], strict=True):
            more = np.diff(sent) - np.diff(before)  # from an update to the next: one gather of stages 1, 2 is after it
            expected = 4 * own[0] * (dp - 1) / dp * (0 if shard < 3 else 2 * count - 1)
            assert np.abs(more - expected).max() < 150 + 1e-4 * expected  # a byte or four for each parameter; chunks


def test_weights_and_gradients_travel_while_stages_compute():
    on, hidden, runs = cluster.Simulation("10gbe", cluster.Node(2e9, 1e10)), {}, {}
    for overlap in (False, True):
        runs[overlap] = parallel.train(WIDE, hybrid(2, 2, 1, shard=3, overlap=overlap), 4, on=on)
        of = {kind: [[] for _ in range(4)] for kind in ("compute", "receive")}
        for event in runs[overlap].trace.events:
            if event.kind == "compute" or (event.kind == "receive" and event.axis == "dp"):
                of[event.kind][event.rank].append((event.start, event.end))
        both = [(c, r) for rank in range(4) for c in of["compute"][rank] for r in of["receive"][rank]]
        hidden[overlap] = sum(max(0.0, min(c[1], r[1]) - max(c[0], r[0])) for c, r in both)
    assert runs[True].digests == runs[False].digests
    assert hidden[True] > 0 == hidden[False]
    assert runs[True].seconds < runs[False].seconds


# ---- what is refused ----


@pytest.mark.parametrize(
    ("strategy", "nodes", "sentence"),
    [
        (
            Hybrid(shard=3),
            1,
            "shard=3 shares the state of training out among the replicas, and there is one: give dp=2",
        ),
        (Hybrid(pp=2, tp=2, shard=1), 4, "there is one: give dp=2 or more and as many nodes, or leave out shard"),
        (Hybrid(dp=2, pp=2, shard=2, schedule="pipedream"), 4, "with pipedream each stage keeps versions of whole wei"),
        (Hybrid(dp=4, pp=3, shard=3, cuts=(1, 2), micro_batches=1), 12, "4 replicas are more than the 3 weights that "),
        (
            Hybrid(dp=4, pp=3, shard=3, cuts=(1, 2), micro_batches=1),
            12,
            "trains on stage 1: use dp=3 or less, fewer st",
        ),
    ],
)
def test_what_cannot_be_shared_out_is_refused_in_a_sentence_before_the_run(strategy, nodes, sentence):
    job = small_job(model=lambda: nn.models.MLP(5, 2, 1, 3).double())
    with pytest.raises(ValueError, match=sentence) as caught:
        parallel.train(job, strategy, nodes, "simulation")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"shard": 4}, "Hybrid: shard must be from 1 to 3, got 4"),
        ({"shard": True}, "Hybrid: shard must be a whole number from 1 to 3, got True"),
        ({"shard": 2, "algorithm": "tree"}, "must be 'auto' or 'ordered', got 'tree'"),
    ],
)
def test_wrong_settings_are_refused(settings, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        Hybrid(dp=2, **settings)


def test_the_plan_says_what_is_shared_out():
    job = small_job(model=mlp)
    assert hybrid(2, 2, 1, shard=3).plan(job, 4).shard == Sharded(3).plan(job, 4).shard == 3
    assert hybrid(2, 2, 1).plan(job, 4).shard is None
    with pytest.raises(ValueError, match="ParallelPlan: shard must be from 1 to 3, got 5"):
        parallel.ParallelPlan(dp=2, shard=5)
