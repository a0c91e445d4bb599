"""Ranks that divide the experts train to the numbers of one node with as many shards."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import Tensor, cluster, nn, optim, parallel, random
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Job, Serial, Sharded, Synchronous
from minidl.parallel.experts import ExpertParallel, dispatched_bytes
from minidl.parallel.tensor import ColumnLinear, RowLinear
from tests.parallel.jobs import assert_same_run
from tests.parallel.tensor.test_hybrid import Restored
from tests.parallel.two_stages import TwoStages
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)


def texts(samples: int = 27) -> Splits:
    """In minibatches of 13: the last one has 1, so that all shares but one are empty."""
    rows = np.random.default_rng(11).integers(0, 17, (samples + 7, 6))
    x, y = rows[:, :-1], rows[:, 1:]
    return Splits(Dataset(x[:samples], y[:samples]), Dataset(x[samples:], y[samples:]))


def gpt(experts: int = 4, is_skewed: bool = False, n_layer: int = 2, is_frozen: bool = False, **settings) -> nn.Module:
    """A skewed one sends all tokens to expert 0 in the first step: its gates are zero, and ties go to the first.

    A frozen one trains what follows its first tokens' routing: no gradient passes its first all-to-all.
    """
    model = nn.models.GPT(17, 5, n_layer, 2, 6, experts=experts, **settings).double()
    for block in model.transformer.h if is_skewed else ():
        nn.init.zeros_(block.mlp.gate.weight)
    first = model.transformer.h[0]
    for layer in (model.lm_head, model.transformer.wpe, first.ln_1, first.attn, first.ln_2) if is_frozen else ():
        layer.requires_grad_(False)
    return model


def job(**settings) -> Job:
    model, adam = partial(gpt, **settings), partial(optim.AdamW, lr=3e-3)
    return Job(model, texts, adam, batch_size=13, epochs=2, seed=1, clip_norm=0.7)


def assert_equal_counts(*reports):
    one, other = (
        [{name: (counts.load.tolist(), counts.dropped) for name, counts in epoch.items()} for epoch in report.routing]
        for report in reports
    )
    assert one == other
    assert len(one) == 2  # epochs


@pytest.mark.parametrize(
    ("plan", "settings"),
    [
        ({"ep": 2, "dp": 2}, {"top": 2, "capacity_factor": 0.7, "dropout": 0.2}),
        ({"ep": 3, "micro_batches": 2}, {"experts": 6, "is_skewed": True}),
        ({"ep": 2, "pp": 2, "micro_batches": 3, "recompute": "full"}, {"experts": 2, "top": 2, "capacity_factor": 0.9}),
        *exhaustively(
            ({"ep": 2, "pp": 3, "micro_batches": 3, "schedule": "zb-h1"}, {"top": 2}),
            ({"ep": 2, "pp": 2, "micro_batches": 2, "schedule": "interleaved"}, {"n_layer": 3}),
            ({"ep": 2}, {"top": 1, "capacity_factor": 0.01}),
            ({"ep": 4, "dp": 2, "axes": ("pp", "tp", "dp")}, {"experts": 8, "top": 2, "is_skewed": True}),
            ({"ep": 4, "dp": 2, "overlap": True, "bucket_mb": 0.001}, {"experts": 8, "top": 3, "balance": 0.4}),
            ({"ep": 8}, {"experts": 8, "balance": 0.0}),
            ({"ep": 2, "recompute": "selective"}, {"is_frozen": True}),
            ({"ep": 2, "pp": 2, "micro_batches": 3, "recompute": "full"}, {"is_frozen": True}),
        ),
    ],
)
def test_a_gpt_with_experts_trains_to_the_numbers_of_as_many_shards(plan, settings):
    hybrid = Hybrid(**{"dp": 1, "micro_batches": 1} | plan)
    shards = hybrid.dp * hybrid.ep
    truth = parallel.train(job(**settings), Serial(shards=shards, micro_batches=hybrid.micro_batches), on="simulation")
    report = parallel.train(job(**settings), hybrid, nodes=shards * hybrid.pp, on="simulation")
    assert_same_run(report, truth)
    assert_equal_counts(report, truth)
    assert report.digests == hybrid.dp * report.digests[:1]
    if settings.get("capacity_factor", 1.25) < 1 or settings.get("is_skewed"):
        assert all(counts.dropped > 0 for counts in report.routing[0].values())


def test_on_processes_the_ranks_agree_with_the_simulation():
    reports = [parallel.train(job(), Hybrid(dp=1, ep=2), nodes=2, on=on) for on in ("processes", "simulation")]
    assert_same_run(*reports)
    assert_equal_counts(*reports)


def test_in_float16_the_balance_loss_is_scaled_as_the_models_loss():
    settings = {
        "model": partial(_single, balance=0.4),
        "data": partial(texts, 13),
        "optimizer": partial(optim.SGD, lr=1),
    }
    one_step = replace(job(), **settings, epochs=1, clip_norm=None)
    in_half = replace(one_step, precision="float16")
    ways = (Serial(shards=2), 1), (Hybrid(dp=1, ep=2), 2), (Sharded(stage=3), 2)
    runs = (one_step, *ways[0]), *((in_half, *way) for way in ways)
    gates = [parallel.train(*run, on="simulation").checkpoint.model["transformer.h.1.mlp.gate.weight"] for run in runs]
    for in_float16 in gates[1:]:
        np.testing.assert_allclose(in_float16, gates[0], atol=1e-4)  # without the balance loss it differs by 4e-3


def _single(**settings) -> nn.Module:
    return gpt(**settings).float()


@pytest.mark.parametrize(
    ("strategy", "nodes", "truth"),
    [
        (Sharded(stage=3, accumulate=2), 2, Serial(shards=2, micro_batches=2)),
        (TwoStages(3), 2, Serial(micro_batches=3)),
        *exhaustively(
            (Synchronous(), 3, Serial(shards=3)),
            (Synchronous(accumulate=2), 3, Serial(shards=3, micro_batches=2)),
            (Sharded(stage=2), 3, Serial(shards=3)),
            (parallel.SufficientFactors(), 2, Serial(shards=2)),
            (Hybrid(dp=2, pp=2, shard=3, micro_batches=2, recompute="full"), 4, Serial(shards=2, micro_batches=2)),
            (Hybrid(dp=2, shard=1), 2, Serial(shards=2)),
        ),
    ],
)
def test_replicas_with_all_experts_train_to_the_same_numbers(strategy, nodes, truth):
    reports = [parallel.train(job(balance=0.3), *way, on="simulation") for way in ((strategy, nodes), (truth, 1))]
    assert_same_run(*reports)
    assert_equal_counts(*reports)


@pytest.mark.parametrize(
    ("replica", "nodes"),
    [(Hybrid(pp=2, micro_batches=2), 2), *exhaustively((TwoStages(1), 2), (Hybrid(pp=3, micro_batches=2), 3))],
)
def test_one_split_worker_of_servers_has_the_balance_loss_of_one_node(replica, nodes):
    one = replace(job(balance=0.3, n_layer=3), optimizer=partial(optim.SGD, lr=0.1, momentum=0.8))
    truth = parallel.train(one, Serial(micro_batches=replica.micro_batches), on="simulation")
    report = parallel.train(one, parallel.ParameterServer(servers=2, replica=replica), nodes, on="simulation")
    for name, array in truth.checkpoint.model.items():
        np.testing.assert_allclose(report.checkpoint.model[name], array, atol=1e-10)
    assert_equal_counts(report, truth)


def test_experts_that_a_layout_divides_along_tp_are_counted_once():
    layout = {"*.c_fc": ColumnLinear, "*.mlp.experts.*.c_proj": RowLinear}
    report = parallel.train(job(), Hybrid(dp=1, tp=2, layout=layout), 2, on="simulation")
    truth = parallel.train(job(), on="simulation")
    assert_same_run(report, truth)
    assert_equal_counts(report, truth)


def test_counts_stay_with_their_epochs_when_a_rank_has_died_and_another_has_joined():
    three = replace(job(), epochs=3)
    dies = cluster.FaultPlan().kill(1, at=("all_reduce", 7))
    survival = parallel.Elastic(rejoin=True)
    report = parallel.train(three, Synchronous(), 3, on="simulation", elastic=survival, faults=dies)
    assert [(restart.epoch, restart.step, restart.joined) for restart in report.restarts] == [(2, 1, 0), (3, 0, 1)]
    samples = [{counts.load.sum() / 5 for counts in epoch.values()} for epoch in report.routing]
    assert samples == [{27 - (4 + 4 + 0)}, {27 - 13}, {27}]  # without the dead one's, and before the restart


def test_a_checkpoint_names_each_expert_and_is_loaded_by_any_number_of_ranks_to_the_bit(tmp_path):
    whole = replace(job(), epochs=1)
    saved = parallel.train(whole, Hybrid(dp=1, ep=2), nodes=2, on="simulation", folder=tmp_path).checkpoint
    assert "transformer.h.1.mlp.experts.3.c_fc.weight" in saved.model
    assert list(saved.model) == list(gpt().state_dict())
    path = tmp_path / "checkpoint.npz"
    again = parallel.train(job(), Restored(dp=1, ep=4), 4, on="simulation", resume=path).checkpoint
    np.testing.assert_equal(again.model, saved.model)
    np.testing.assert_equal(again.optimizer, saved.optimizer)
    resumed = parallel.train(job(), Hybrid(dp=1, ep=2), 2, on="simulation", resume=path)
    assert_same_run(resumed, parallel.train(job(), Hybrid(dp=1, ep=2), 2, on="simulation"))


def exchanging(comm, tokens, experts, top, factor):
    """Forward and backward of a layer whose ranks have these numbers of tokens."""
    random.manual_seed(3)
    layer = nn.MixtureOfExperts(6, 5, experts, top, capacity_factor=factor).double()
    divided = ExpertParallel(layer, comm)
    x = Tensor(np.random.default_rng(comm.rank).normal(size=(tokens[comm.rank], 6)), requires_grad=True)
    y = divided(x)
    (y * y).sum().backward()
    held = [layer.experts[i].c_fc.weight.grad for i in divided.own]
    return y.numpy(), x.grad, held, layer.capacity(len(x))


@pytest.mark.parametrize("ranks", [2, *exhaustively(3, 4, 8)])
def test_an_all_to_all_sends_the_bytes_of_the_formula(ranks):
    experts = 2 * ranks
    for top, factor in ((1, 1.0), (2, 1.3)):
        run = cluster.launch(exchanging, ([4 * experts] * ranks, experts, top, factor), nodes=ranks, on="simulation")
        capacity = run.results[0][3]
        for ledger in run.trace.ledger():
            assert ledger["all_to_all"].calls == 4  # there and back, forward and backward
            assert ledger["all_to_all"].nbytes == 4 * dispatched_bytes(ranks, experts, capacity, 6, itemsize=8)
        if (top, factor) == (1, 1.0):  # tokens * width * (P - 1) / P numbers
            assert ledger["all_to_all"].nbytes == 4 * (4 * experts) * 6 * 8 * (ranks - 1) // ranks


@pytest.mark.parametrize("tokens", [[7, 2], [0, 5], *exhaustively([1, 1], [0, 0, 9], [4, 0, 0, 11])])
def test_ranks_with_other_numbers_of_tokens_have_the_outputs_and_gradients_of_one_layer(tokens):
    settings = 12, 2, 0.6
    ranks = len(tokens)
    run = cluster.launch(exchanging, (tokens, *settings), nodes=ranks, on="simulation")
    weights = [0.0] * 12
    for rank, count in enumerate(tokens):
        random.manual_seed(3)
        layer = nn.MixtureOfExperts(6, 5, 12, 2, capacity_factor=0.6).double()
        x = Tensor(np.random.default_rng(rank).normal(size=(count, 6)), requires_grad=True)
        if not count:
            continue
        y = layer(x)
        (y * y).sum().backward()
        np.testing.assert_allclose(run.results[rank][0], y.numpy(), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(run.results[rank][1], x.grad, rtol=1e-12, atol=1e-14)
        weights = [total + expert.c_fc.weight.grad for total, expert in zip(weights, layer.experts, strict=True)]
    held = [gradient for result in run.results for gradient in result[2]]
    for mine, total in zip(held, weights, strict=True):
        np.testing.assert_allclose(mine, total, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("settings", "model", "message"),
    [
        ({"ep": 3}, gpt, r"4 experts cannot be divided by 3 ranks: make their number a multiple of 3"),
        ({"ep": 2}, partial(nn.models.GPT, 17, 5, 1, 2, 6), "has none: leave out ep"),
        ({"ep": 0}, gpt, "ep must be at least 1"),
        ({"ep": 2, "tp": 2}, gpt, "goes with dp and pp: leave out tp, or ep"),
        ({"ep": 1, "tp": 2}, gpt, "with experts is divided by its experts, not along tp: use ep instead of tp"),
        ({"ep": 2, "spatial": 2, "shard": 1}, gpt, "leave out spatial and shard, or ep"),
        ({"ep": 2, "schedule": "pipedream"}, gpt, "choose another schedule"),
        ({"ep": 2, "dp": 3}, gpt, r"dp=3, pp=1, tp=1, ep=2 need 6 nodes, got 2"),
    ],
)
def test_plans_that_do_not_fit_are_refused_before_the_run(settings, model, message):
    with pytest.raises(ValueError, match=message):
        parallel.train(replace(job(), model=model), Hybrid(**settings), nodes=max(settings["ep"], 2), on="simulation")


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 8, 5, 64), "ranks must be at least 1, got 0"),
        ((2, 3, 5, 64), "3 experts cannot be divided by 2 ranks"),
        ((2, 4, 5, -3), "width must be at least 0, got -3"),
        ((2, 4, 2.5, 64), "capacity must be a whole number"),
    ],
)
def test_the_formula_of_the_bytes_refuses_numbers_of_no_layer(numbers, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dispatched_bytes(*numbers)
