"""Data, pipeline and tensor parallelism on one mesh train to the numbers of one node."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest

import minidl
from minidl import amp, cluster, nn, parallel
from minidl.cluster import Communicator
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Job, Pipeline, Serial, pipeline
from minidl.parallel.spatial.division import grid_of
from minidl.parallel.tensor import (
    ColumnConv2d,
    ColumnLinear,
    GridConv2d,
    RowConv2d,
    RowLinear,
    ShardedBatchNorm,
    ShardedDropout,
    VocabularyEmbedding,
    layout_of,
    split_layers,
    vocabulary_cross_entropy,
)
from tests.parallel.jobs import assert_same_run, blobs, small_job, two_groups, two_layers
from tests.parallel.test_split_models import JOBS, decay
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SAMPLES = 50  # in minibatches of 24: the last one has 2
LAYERS = 4


def texts() -> Splits:
    tokens = np.random.default_rng(3).integers(24, size=(SAMPLES + 8, 13))
    x, y = tokens[:, :-1], (tokens[:, :-1] * 5 + 1) % 24
    return Splits(Dataset(x[:SAMPLES], y[:SAMPLES]), Dataset(x[SAMPLES:], y[SAMPLES:]))


def gpt(n_head: int = 24, dropout: float = 0.1) -> nn.Module:
    model = nn.models.GPT(24, block_size=12, n_layer=LAYERS, n_head=n_head, n_embd=48, dropout=dropout)
    return model.double()


JOB = Job(gpt, texts, two_groups, decay, batch_size=24, epochs=2, seed=5, clip_norm=0.5)


def hybrid(dp: int, pp: int, tp: int, **settings: Any) -> Hybrid:
    return Hybrid(dp=dp, pp=pp, tp=tp, **({"micro_batches": 2} | settings))


def assert_trains_as_one_node(job: Job, strategy: Hybrid, on: object = "simulation", **tolerance: float) -> Any:
    dp, tiles = strategy.dp or 1, prod(grid_of("spatial", strategy.spatial))
    truth = parallel.train(job, Serial(shards=dp, micro_batches=strategy.micro_batches or 1), on="simulation")
    report = parallel.train(job, strategy, dp * strategy.pp * strategy.tp * tiles, on=on)
    assert_same_run(report, truth, **tolerance)
    assert len(set(report.digests)) == 1
    return report


@pytest.mark.parametrize(
    ("dims", "sequence"),
    [
        ((1, 2, 3), True),
        *exhaustively(((2, 2, 2), False), ((1, 6, 2), True), ((3, 1, 4), False), ((1, 1, 12), True), ((2, 3, 2), True)),
    ],
)
def test_every_factorisation_trains_a_gpt_to_the_numbers_of_one_node(dims: tuple[int, int, int], sequence: bool):
    """With a tie, dropout, AdamW in two groups, clipping and a ragged minibatch."""
    assert_trains_as_one_node(JOB, hybrid(*dims, sequence=sequence))


@pytest.mark.parametrize("order", ["tp pp dp", *exhaustively("pp tp dp", "tp dp pp")])
def test_the_order_of_the_axes_says_who_are_neighbours_and_changes_no_digest(order: str):
    axes = order.split()
    job = replace(JOB, epochs=1)
    usual, other = (
        parallel.train(job, hybrid(2, 2, 2, **settings), 8, on=cluster.Simulation(node=cluster.Node(1e9, 1e9)))
        for settings in ({}, {"axes": axes})
    )
    assert other.digests == usual.digests
    assert len(other.digests) == 2
    peers = {(event.rank, event.peer) for event in other.trace.events if event.axis == axes[-1] and event.peer >= 0}
    assert peers == {(rank, rank ^ 1) for rank in range(8)}
    assert [bar.action for bar in executed(other).bars] == [bar.action for bar in executed(usual).bars]


def executed(report: Any) -> pipeline.Timeline:
    return pipeline.executed(report.trace, report.strategy.made_schedule(), minibatch=1, replica=1)


@pytest.mark.parametrize("on", ["processes", *exhaustively("mpi")])
def test_where_two_ranks_add_up_processes_and_mpi_give_the_bits_of_the_simulation(on: str):
    if on == "mpi":
        pytest.importorskip("mpi4py", exc_type=ImportError)
    strategy, job = hybrid(1, 2, 2, sequence=True), replace(JOB, epochs=1)
    report = parallel.train(job, strategy, 4, on=on)
    assert report.digests == parallel.train(job, strategy, 4, on="simulation").digests


@pytest.mark.parametrize("weight_versions", ["stashing", "vertical_sync"])
def test_pipedream_with_divided_layers_is_pipedream(weight_versions: str):
    job = small_job(model=mlp, epochs=2)
    settings = {"schedule": "pipedream", "weight_versions": weight_versions}
    report = parallel.train(job, Hybrid(pp=2, tp=2, micro_batches=1, **settings), 4, on="simulation")
    assert_same_run(report, parallel.train(job, Pipeline(2, 1, **settings), 2, on="simulation"))


def mlp() -> nn.Module:
    return nn.models.MLP(5, 8, 12, 4, 3).double()


@pytest.mark.parametrize("kind", ["zb-h1", *exhaustively("interleaved")])
def test_every_kind_of_schedule_goes_with_divided_layers(kind: str):
    settings = {"chunks_per_stage": 2} if kind == "interleaved" else {}
    assert_trains_as_one_node(replace(JOB, epochs=1), hybrid(1, 2, 2, schedule=kind, **settings))


def calls_along_tp(layers: int, sequence: bool, recompute: bool | str) -> dict[str, int]:
    """How often a rank calls each collective in forward and backward of a GPT with so many blocks on two ranks."""

    def program(comm: Communicator) -> None:
        model = nn.models.GPT(24, block_size=12, n_layer=layers, n_head=4, n_embd=24)
        split_layers(model, comm, layout_of(model, sequence))
        if recompute:
            nn.checkpointing(model, "selective" if recompute == "selective" else layers + 2)
        tokens = np.random.default_rng(0).integers(24, size=(3, 12))
        vocabulary_cross_entropy(model(tokens), tokens, comm).backward()

    ledgers = cluster.launch(program, nodes=2, on="simulation").trace.ledger()
    first, second = [{name: traffic.calls for name, traffic in ledger.items()} for ledger in ledgers]
    assert first == second
    return first


def test_a_block_takes_two_all_reduces_each_way_and_two_more_where_it_is_computed_again():
    """Besides the blocks: the embedding's in forward, the head's in backward, and two of the loss."""
    assert calls_along_tp(3, sequence=False, recompute=False) == {"all_reduce": 4 * 3 + 4}
    few, many = (calls_along_tp(layers, sequence=False, recompute=True)["all_reduce"] for layers in (1, 3))
    assert many - few == 2 * 6


def test_with_slices_of_the_positions_each_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    layers = 3
    calls = calls_along_tp(layers, sequence=True, recompute=False)
    assert calls == {"all_reduce": 2, "reduce_scatter": 4 * layers + 2, "all_gather": 4 * layers + 2}
    calls = calls_along_tp(layers, sequence=True, recompute="selective")
    assert calls == {"all_reduce": 2, "reduce_scatter": 4 * layers + 2, "all_gather": 6 * layers + 3}


def test_stages_that_compute_forward_again_train_to_the_same_bits():
    strategies = [hybrid(1, 2, 2, sequence=True, recompute=recompute) for recompute in (False, "full", "selective")]
    reports = [parallel.train(replace(JOB, epochs=1), strategy, 4, on="simulation") for strategy in strategies]
    assert len({*(digest for report in reports for digest in report.digests)}) == 1
    plain, full, selective = ({name: t.calls for name, t in report.trace.ledger("tp")[0].items()} for report in reports)
    assert sum(full.values()) > sum(selective.values())
    again = selective["all_gather"] - plain["all_gather"]
    assert again > 0  # slices of the positions; attention itself sends nothing
    assert selective == plain | {"all_gather": plain["all_gather"] + again}


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_layer_that_gathers_its_slices_again_has_the_same_bits_in_mixed_precision_too(is_mixed: bool):
    def program(comm: Communicator, how: str) -> list[np.ndarray]:
        minidl.manual_seed(2)
        model = nn.models.GPT(24, block_size=12, n_layer=2, n_head=4, n_embd=24, dropout=0.2)
        split_layers(model, comm, layout_of(model, sequence=True))
        if how == "selective":
            nn.checkpointing(model, how)
        tokens = np.random.default_rng(0).integers(24, size=(3, 12))
        with amp.autocast(enabled=is_mixed):
            loss = vocabulary_cross_entropy(model(tokens), tokens, comm)
        loss.backward()
        return [loss.numpy(), *(parameter.grad for parameter in model.parameters())]

    plain, other = (
        cluster.launch(program, (how,), nodes=2, on="simulation", deadline=60).results for how in ("plain", "selective")
    )
    for one, two in zip(plain, other, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


class Restored(Hybrid):
    """Stops after it has been restored: the last state is the one that it began with."""

    def run(self, session):
        session._evaluates_together = True


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1, 2, 2), (1, 1, 3)),
        *exhaustively(((1, 1, 6), (1, 6, 1)), ((1, 1, 1), (2, 3, 2))),
    ],
)
def test_a_checkpoint_of_one_factorisation_is_loaded_under_any_other_to_the_bit(before, after, tmp_path):
    job = replace(JOB, epochs=1)
    saved = parallel.train(job, hybrid(*before), int(np.prod(before)), on="simulation", folder=tmp_path).checkpoint
    restored = Restored(dp=after[0], pp=after[1], tp=after[2], micro_batches=2)
    path = tmp_path / "checkpoint.npz"
    again = parallel.train(JOB, restored, int(np.prod(after)), on="simulation", resume=path).checkpoint
    np.testing.assert_equal(again.model, saved.model)
    np.testing.assert_equal(again.optimizer, saved.optimizer)
    assert again.schedule == saved.schedule
    resumed = parallel.train(JOB, hybrid(*after), int(np.prod(after)), on="simulation", resume=path)
    if before[0] == after[0] == 1:  # else the shares of a minibatch have masks of their own
        assert_same_run(resumed, parallel.train(JOB, hybrid(*before), int(np.prod(before)), on="simulation"))


# Models with layouts of their own


def three_layers() -> nn.Module:
    """Features are divided in a dropout and in a tanh; the last layer stays whole."""
    layers = nn.Linear(5, 12), nn.Tanh(), nn.Dropout(0.3), nn.Linear(12, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)
    return nn.Sequential(*layers).double()


def squared_error(output, labels):
    return ((output - np.eye(3)[labels]) ** 2).mean()


OWN = {"0": ColumnLinear, "2": ShardedDropout, "3": RowLinear}


@pytest.mark.parametrize(("dp", "pp", "tp", "loss"), [(2, 1, 3, None), (1, 2, 2, squared_error)])
def test_a_model_with_a_layout_of_its_own_trains_to_the_numbers_of_one_node(dp, pp, tp, loss):
    job = small_job(model=three_layers, clip_norm=0.7, **({} if loss is None else {"loss": loss}))
    assert_trains_as_one_node(job, hybrid(dp, pp, tp, layout=OWN))


def with_between(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 12), *between, nn.Linear(12, 6), nn.Dropout(0.2), nn.Linear(6, 3)).double()


def test_dropout_of_sharded_features_draws_the_mask_of_one_node():
    model = partial(with_between, nn.Tanh(), nn.Dropout(0.3))
    layout = {"0": ColumnLinear, "3": RowLinear}
    report = assert_trains_as_one_node(small_job(model=model, epochs=1), hybrid(1, 2, 3, layout=layout))
    assert report.strategy.layout == layout | {"2": ShardedDropout}  # not the one of whole features


@pytest.mark.parametrize("layer", [nn.Softmax(), nn.LogSoftmax(1), nn.LayerNorm(12), nn.GroupNorm(3, 12)])
def test_a_layer_that_needs_all_features_is_refused_by_name_where_they_are_divided(layer: nn.Module):
    job, layout = small_job(model=partial(with_between, layer)), {"0": ColumnLinear, "2": RowLinear}
    with pytest.raises(ValueError, match=rf"1 cannot be divided: {type(layer).__name__} needs all features of a samp"):
        parallel.train(job, Hybrid(tp=2, layout=layout), 2, on="simulation")
    whole = {"0": partial(ColumnLinear, gather="always")}
    assert_trains_as_one_node(replace(job, epochs=1), hybrid(1, 1, 3, layout=whole))


def test_a_dropout_of_divided_and_of_whole_features_is_refused():
    def model() -> nn.Module:
        made = with_between(nn.Dropout(0.3))
        setattr(made, "3", getattr(made, "1"))
        return made

    with pytest.raises(ValueError, match="1 gets sharded features in one place and whole ones in another"):
        Hybrid(tp=2, layout={"0": ColumnLinear, "2": RowLinear}).check(small_job(model=model), 2)


def test_a_mask_of_a_divided_axis_that_is_not_the_last_is_refused():
    model = partial(with_between, Heads(nn.LayerNorm(3, elementwise_affine=False)))
    with pytest.raises(ValueError, match=r"1.drop is a Dropout, whose input of shape \(1, 4, 3\) is divided"):
        Hybrid(tp=2, layout={"0": ColumnLinear, "2": RowLinear}).check(small_job(model=model), 2)
    layout = {"0": ColumnLinear, "1.drop": partial(ShardedDropout, axis=1), "2": RowLinear}
    assert_trains_as_one_node(small_job(model=model, epochs=1), hybrid(1, 1, 2, layout=layout))


def test_weights_that_every_rank_has_are_refused_where_features_are_divided():
    """A rank would add up their gradient over its own heads alone."""
    model = partial(with_between, Heads(nn.LayerNorm(3)))
    with pytest.raises(
        ValueError, match=r"1\.norm cannot be divided: each rank would have a gradient of the weights of"
    ):
        Hybrid(tp=2, layout={"0": ColumnLinear, "2": RowLinear}).check(small_job(model=model), 2)


class Heads(nn.Module):
    """A norm and dropout of four heads of three features, which two ranks have whole."""

    def __init__(self, norm: nn.Module) -> None:
        self.norm, self.drop = norm, nn.Dropout(0.3)

    def forward(self, x: Any) -> Any:
        return self.drop(self.norm(x.reshape(len(x), -1, 3))).reshape(x.shape)


@pytest.mark.parametrize(
    ("name", "dims"), [("LeNet", (1, 1, 3)), ("ResNet", (1, 2, 2)), *exhaustively(("ResNet", (2, 2, 4)))]
)
def test_the_convolutions_of_lenet_and_resnet_are_divided_without_a_layout(name: str, dims: tuple[int, int, int]):
    """With running statistics of batch norm, which are divided too, and a frozen stem."""
    assert_trains_as_one_node(replace(JOBS[name], epochs=1), hybrid(*dims))


def test_a_batch_norm_of_sharded_channels_divides_its_statistics_which_a_checkpoint_has_whole(tmp_path):
    model = partial(with_between, nn.BatchNorm1d(12), nn.Tanh())
    job, layout = small_job(model=model, epochs=2), {"0": ColumnLinear, "3": RowLinear}
    report = parallel.train(replace(job, epochs=1), hybrid(1, 1, 3, layout=layout), 3, on="simulation", folder=tmp_path)
    assert report.strategy.layout == layout | {"1": ShardedBatchNorm}
    path = tmp_path / "checkpoint.npz"
    truth = parallel.train(job, Serial(micro_batches=2), on="simulation")
    assert_same_run(parallel.train(job, Serial(micro_batches=2), on="simulation", resume=path), truth)
    again = hybrid(1, 2, 2, layout=layout)
    assert_same_run(parallel.train(job, again, 4, on="simulation", resume=path), truth)


def images_of_blobs() -> Splits:
    return Splits(*(Dataset(part.x[:, None, :, None] * np.ones(4), part.y) for part in blobs()))


def two_convolutions(between: nn.Module) -> nn.Module:
    """The images have as many pixels along each side as channels: 6."""
    layers = nn.Conv2d(1, 6, (1, 3), padding=(0, 2)), between, nn.Conv2d(6, 3, 3), nn.Flatten(), nn.Linear(48, 3)
    return nn.Sequential(nn.AdaptiveAvgPool2d((6, 4)), *layers).double()


def test_a_dropout_of_divided_channels_has_one_nodes_mask_where_images_are_as_wide_as_they_have_channels():
    job = small_job(model=partial(two_convolutions, nn.Dropout(0.3)), data=images_of_blobs, epochs=1)
    assert_trains_as_one_node(job, hybrid(1, 1, 3, layout={"1": ColumnConv2d, "3": RowConv2d}))


@pytest.mark.parametrize("between", [nn.Softmax(1), nn.LayerNorm((6, 6, 6), elementwise_affine=False)])
def test_a_layer_that_needs_all_channels_is_refused_and_one_that_needs_all_columns_is_not(between: nn.Module):
    layout = {"1": ColumnConv2d, "3": RowConv2d}
    with pytest.raises(ValueError, match=r"2 cannot be divided: \w+ needs all features"):
        Hybrid(tp=2, layout=layout).check(small_job(model=partial(two_convolutions, between), data=images_of_blobs), 2)
    job = small_job(model=partial(two_convolutions, nn.Softmax(-1)), data=images_of_blobs, epochs=1)
    assert_trains_as_one_node(job, hybrid(1, 1, 2, layout=layout))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"3": RowConv2d}, "3 cannot be divided: a RowConv2d reads a .* gets all of them: divide the layer before it"),
        (
            {"3": GridConv2d},
            "3 cannot be divided: a GridConv2d reads a .* gets all of them: divide the layer before it",
        ),
        (
            {"5": RowLinear},
            "5 cannot be divided: a RowLinear reads a .* gets all of them: .* before it by ColumnLinear",
        ),
        ({"5": ColumnLinear}, "the model's outputs would be a rank's share of them: end the layout with a RowLinear"),
        ({"1": ColumnConv2d}, "3 cannot be divided: .* this Conv2d .*: make it a RowConv2d in the layout"),
        ({"1": ColumnConv2d, "5": RowLinear}, "3 cannot be divided: .* this Conv2d .*: make it a RowConv2d in the lay"),
    ],
)
def test_half_a_pair_of_divided_layers_is_refused_with_the_other_half(layout: Any, message: str):
    job = small_job(model=partial(two_convolutions, nn.ReLU()), data=images_of_blobs, epochs=1)
    with pytest.raises(ValueError, match=message):
        hybrid(1, 1, 3, layout=layout).check(job, 3)


def test_an_own_network_of_convolutions_is_divided_up_to_its_linear_layer():
    def model() -> nn.Module:
        layers = nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten()
        return nn.Sequential(*layers, nn.Dropout(0.2), nn.BatchNorm1d(24), nn.Linear(24, 3)).double()

    job = small_job(model=model, data=images_of_blobs, epochs=1)
    report = assert_trains_as_one_node(job, hybrid(1, 2, 3, layout={"0": ColumnConv2d, "7": RowLinear}))
    assert report.strategy.layout["1"] is report.strategy.layout["6"] is ShardedBatchNorm


def test_without_stages_a_plan_has_the_masks_and_batch_norms_of_one_node():
    model = partial(with_between, nn.BatchNorm1d(12), nn.Dropout(0.3))
    job = small_job(model=model, epochs=1)
    report = parallel.train(job, Hybrid(tp=3, layout={"0": ColumnLinear, "3": RowLinear}), 3, on="simulation")
    assert_same_run(report, parallel.train(job, on="simulation"))


@pytest.mark.parametrize(("loss", "gather"), [(None, "evaluation"), (squared_error, "evaluation"), (None, "always")])
def test_the_classes_may_be_divided_for_any_loss(loss, gather: str):
    layout = {"0": partial(ColumnLinear, gather=gather)}
    job = small_job(model=one_layer, **({} if loss is None else {"loss": loss}))
    assert_trains_as_one_node(job, hybrid(2, 1, 3, layout=layout))


def one_layer() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 3)).double()


# What is refused


@pytest.mark.parametrize(
    ("model", "settings", "nodes", "message"),
    [
        (gpt, {"tp": 5}, 5, r"cannot be divided by 5 ranks: Shard: dimension 0 of shape \(24, 48\) must be a"),
        (partial(gpt, n_head=3), {"tp": 2}, 2, "attn.c_attn cannot be divided by 2 ranks: 3 units of 16 outputs, such"),
        (gpt, {"dp": 2, "pp": 2, "tp": 2}, 6, "Hybrid: dp=2, pp=2, tp=2 need 8 nodes, got 6"),
        (partial(nn.models.LeNet, size=8), {"tp": 4}, 4, r"conv1 cannot be divided by 4 ranks: .* make it 8 wide, or"),
        (
            two_layers,
            {"tp": 2},
            2,
            "no layout is known for Sequential, but for GPT, MLP, LeNet, AlexNet, VGG16 and ResNet: give one, ",
        ),
        (mlp, {"tp": 2, "sequence": True}, 2, "slices of the positions are for a GPT, not for MLP: leave out sequence"),
        (
            gpt,
            {"tp": 2, "layout": {"wte": ColumnLinear}},
            2,
            "the layout names 'wte', but the model has no such layer: those .* are transformer.wte, ",
        ),
        (partial(nn.models.GPT, 24, 12, 0, 4, 16), {"tp": 2}, 2, "a GPT without blocks has no layers to divide"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence_before_the_run(model, settings, nodes, message):
    with pytest.raises(ValueError, match=message) as caught:
        parallel.train(replace(JOB, model=model), Hybrid(micro_batches=2, **settings), nodes, on="simulation")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("layout", "error", "message"),
    [
        (
            {"lm_head": "columns"},
            TypeError,
            "a layout is {name: ColumnLinear or RowLinear, ...}, got {'lm_head': 'columns'}",
        ),
        (
            {"*.wte": ColumnLinear},
            ValueError,
            "transformer.wte cannot be divided by 2 ranks: ColumnLinear divides a layer of type Linear, got",
        ),
        (
            {"lm_head": VocabularyEmbedding},
            ValueError,
            "VocabularyEmbedding divides a layer of type Embedding, got Linear",
        ),
    ],
)
def test_a_layout_that_is_none_is_refused_before_the_run(layout, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Hybrid(tp=2, layout=layout).check(JOB, 2)


def test_extents_are_whole_numbers_of_at_least_one_and_sequence_is_a_flag():
    for name, value in (("dp", 0), ("pp", 1.5), ("tp", True), ("sequence", "yes")):
        with pytest.raises((TypeError, ValueError), match=f"Hybrid: {name} must be"):
            Hybrid(**{name: value})
    with pytest.raises(TypeError, match=r"by name, got Hybrid\(4, 2\): write Hybrid\(tp=4\)"):
        Hybrid(4, 2)


def test_positions_that_the_ranks_do_not_divide_are_refused_before_the_run():
    job = replace(JOB, model=partial(nn.models.GPT, 24, 12, 2, 8, 24))
    with pytest.raises(ValueError, match="tp=8 nodes has a slice of the positions, and the training samples have 12"):
        parallel.train(job, Hybrid(tp=8, sequence=True), 8, on="simulation")
    train, test = texts()
    uneven = Splits(train, Dataset(test.x[:, :6], test.y[:, :6]))
    with pytest.raises(ValueError, match="the test samples have 6: use a multiple of 4, or leave out sequence"):
        Hybrid(tp=4, sequence=True).check(replace(JOB, data=lambda: uneven), 4)
