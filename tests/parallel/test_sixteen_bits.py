"""Jobs in float16 or bfloat16: all strategies train them, with float32 masters, and their files can be read."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from ml_dtypes import bfloat16
from threadpoolctl import threadpool_limits

from minidl import compress, data, nn, optim, parallel
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Pipeline, Serial, Sharded, Synchronous
from minidl.parallel.gradients import flat_vector as vector
from tests.parallel.jobs import blobs, small_job, tokens
from tests.tiers import all_but_first_exhaustive, exhaustively


def job(precision, **changes):
    settings = {
        "model": lambda: nn.Linear(5, 3),
        "optimizer": partial(optim.SGD, lr=0.1, momentum=0.5),
        "schedule": None,
        "batch_size": 8,
        "precision": precision,
    }
    return small_job(**(settings | changes))


STRATEGIES = {
    "synchronous": parallel.Synchronous(),
    "one shot": parallel.OneShotAveraging(),
    "elastic, synchronous": parallel.ElasticAveraging(variant="synchronous"),
    "gossip among all": parallel.Gossip("full"),
    "sufficient factors": parallel.SufficientFactors(),
    "sharded": parallel.Sharded(stage=2),
    "local": parallel.LocalSGD(period=4),
    "elastic": parallel.ElasticAveraging(),
    "gossip": parallel.Gossip(),
    "gossip in pairs": parallel.Gossip(asynchronous=True),
    "server": parallel.ParameterServer(),
    "backup workers": parallel.BackupWorkers(),
    "eager": parallel.EagerSGD(coordinator=False),
    "hogwild": parallel.Hogwild(),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=list(STRATEGIES))
def test_every_strategy_trains_weights_of_sixteen_bits(strategy):
    report, reference = (
        parallel.train(job(each, epochs=2), strategy, 3, on="simulation") for each in ("bfloat16", "float32")
    )
    assert {str(array.dtype) for array in report.checkpoint.model.values()} == {"bfloat16"}
    assert abs(report.history[-1]["test_loss"] - reference.history[-1]["test_loss"]) < 0.05


def deep(width=8):
    return nn.Sequential(
        nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width), nn.BatchNorm1d(width), nn.Linear(width, 3)
    )


DEEP = {"model": deep, "optimizer": partial(optim.Adam, lr=0.01), "batch_size": 16}
SIXTEEN = ["bfloat16", "float16"]
STAGES = [Sharded(stage, algorithm="ordered", bucket_mb=1e-4) for stage in (1, 2, 3)]


@pytest.mark.parametrize("precision", ["float16", *exhaustively("bfloat16")])
def test_shards_end_with_the_bits_of_synchronous_masters_included(precision):
    for nodes in (2, 3):
        truth = parallel.train(job(precision, **DEEP), Synchronous(algorithm="ordered"), nodes, "simulation")
        for strategy in STAGES:
            report = parallel.train(job(precision, **DEEP), strategy, nodes, "simulation")
            assert report.digests == truth.digests
            assert report.checkpoint.scaler == truth.checkpoint.scaler
            states = [each.checkpoint.optimizer["state"] for each in (report, truth)]
            for name, state in states[1].items():
                assert state["master_param"].dtype == state["exp_avg"].dtype == np.float32
                assert all((states[0][name][key] == state[key]).all() for key in state)


@pytest.mark.parametrize("precision", all_but_first_exhaustive(SIXTEEN))
def test_a_gpt_in_shards_whose_first_and_last_units_share_weights_has_the_bits_of_a_whole_one(precision):
    gpt = partial(nn.models.GPT, vocab_size=12, block_size=6, n_layer=2, n_head=2, n_embd=8, dropout=0.2)
    settings = {"model": gpt, "data": partial(tokens, 12), "optimizer": partial(optim.AdamW, lr=0.03), "epochs": 1}
    of_four = {"dp": 2, "micro_batches": 2, "algorithm": "ordered"}
    for whole, shards, nodes in (
        (Synchronous(algorithm="ordered"), STAGES[2], 3),
        (Hybrid(**of_four, tp=2), Hybrid(**of_four, tp=2, shard=3), 4),
        (Hybrid(**of_four, pp=2), Hybrid(**of_four, pp=2, shard=2), 4),
    ):
        reports = [parallel.train(job(precision, **settings), each, nodes, "simulation") for each in (whole, shards)]
        assert reports[1].digests == reports[0].digests


@pytest.mark.parametrize("precision", all_but_first_exhaustive(SIXTEEN))
@pytest.mark.parametrize("settings", [{"clip_norm": 0.3}, {"optimizer": partial(optim.LAMB, lr=0.02)}])
def test_norms_of_shards_are_those_of_whole_parameters(settings, precision):
    settings = DEEP | settings
    truth = parallel.train(job(precision, **settings), Synchronous(algorithm="ordered"), 3, "simulation")
    for strategy in STAGES:
        report = parallel.train(job(precision, **settings), strategy, 3, "simulation")
        for name, array in report.checkpoint.model.items():
            difference = array.astype(float) - truth.checkpoint.model[name].astype(float)
            assert np.abs(difference).max() < 1e-2  # a unit in the last place of 1 in bfloat16 is 8e-3
    wide = parallel.train(job("float32", **settings), Synchronous(algorithm="ordered"), 3, "simulation")
    assert abs(wide.history[-1]["test_loss"] - truth.history[-1]["test_loss"]) < 0.02


@pytest.mark.parametrize("precision", SIXTEEN)
@pytest.mark.parametrize("strategy", [Pipeline(2, micro_batches=2), Hybrid(dp=1, pp=2, tp=2, micro_batches=2)])
def test_a_model_that_is_split_is_trained_as_a_whole_one(strategy, precision):
    model = partial(nn.models.MLP, 5, (8, 6), 3)
    settings = DEEP | {"model": model, "clip_norm": 0.3}
    truth = parallel.train(job(precision, **settings), Serial(micro_batches=2), 1, "simulation")
    report = parallel.train(job(precision, **settings), strategy, 2 if type(strategy) is Pipeline else 4, "simulation")
    for row, other in zip(report.history, truth.history, strict=True):
        assert row["test_loss"] == pytest.approx(other["test_loss"], abs=0.01)
    assert report.checkpoint.scaler == truth.checkpoint.scaler


# ---- float16: steps that are skipped ----


def large(n=60):
    """Inputs of 200, so that at the first factors the gradients of the first layer are infinite, and only those."""
    return Splits(*(Dataset(part.x * 200, part.y, classes=("a", "b", "c")) for part in blobs(n)))


@pytest.mark.parametrize(
    ("strategy", "nodes"),
    [
        (Serial(), 1),
        (Synchronous(), 3),
        (parallel.SufficientFactors(), 2),
        *((each, 3) for each in STAGES),
        (Pipeline(2, micro_batches=2), 4),
        (Hybrid(dp=2, tp=2, shard=3), 4),
        *exhaustively(
            (Pipeline(2, micro_batches=2), 2),
            (Hybrid(dp=2, pp=2, tp=2), 8),
            *((Hybrid(dp=2, pp=2, shard=shard), 4) for shard in (1, 2, 3)),
        ),
    ],
)
def test_a_step_is_skipped_by_all_ranks_or_by_none(strategy, nodes):
    model = partial(nn.models.MLP, 5, (8, 6), 3)
    settings = {"model": model, "data": large, "optimizer": partial(optim.Adam, lr=0.003), "batch_size": 16}
    report = parallel.train(job("float16", **settings), strategy, nodes, "simulation")
    state = report.checkpoint.optimizer["state"]
    skipped = int(np.log2(2.0**16 / report.checkpoint.scaler["scale"]))
    assert 2 <= skipped <= 8  # of 12 steps
    assert {int(each["step"]) for each in state.values()} == {12 - skipped}
    assert all(np.isfinite(array.astype(float)).all() for array in report.checkpoint.model.values())


# ---- checkpoints ----


@pytest.mark.parametrize("precision", ["float16", *exhaustively("bfloat16")])
def test_a_run_is_resumed_to_the_same_bits_by_any_of_the_strategies_with_these_bits(precision, tmp_path):
    strategies = [Synchronous(algorithm="ordered"), *STAGES]
    make = partial(job, precision, **DEEP | {"data": large})
    whole = parallel.train(make(epochs=2), strategies[0], 2, on="simulation")
    for before, after in pairwise([*strategies, *strategies[::-1]]):
        parallel.train(make(epochs=1), before, 2, on="simulation", folder=tmp_path)
        resumed = parallel.train(make(epochs=2), after, 2, on="simulation", resume=tmp_path / "checkpoint.npz")
        assert resumed.digests == whole.digests
        assert resumed.checkpoint.scaler == whole.checkpoint.scaler
    assert (whole.checkpoint.scaler != {}) == (precision == "float16")


@pytest.mark.parametrize("precision", SIXTEEN)
def test_a_checkpoint_gives_a_float32_run_the_masters_and_takes_one_of_float32(precision, tmp_path):
    saved = parallel.train(job(precision, **DEEP, epochs=1), on="simulation", folder=tmp_path).checkpoint
    still = DEEP | {"optimizer": partial(optim.Adam, lr=0.0)}
    saved.optimizer["param_groups"][0]["lr"] = 0.0
    saved.save(tmp_path / "checkpoint.npz")
    for strategy in (Serial(), Sharded(1), Sharded(3)):
        report = parallel.train(
            job("float32", **still, epochs=2), strategy, on="simulation", resume=tmp_path / "checkpoint.npz"
        )
        for name, state in saved.optimizer["state"].items():
            assert (report.checkpoint.model[name] == state["master_param"]).all()
            assert (saved.model[name] != state["master_param"]).mean() > 0.5
    parallel.train(job("float32", **DEEP, epochs=1), on="simulation", folder=tmp_path)
    back = parallel.train(job(precision, **DEEP, epochs=2), on="simulation", resume=tmp_path / "checkpoint.npz")
    wide = parallel.train(job("float32", **DEEP, epochs=2), on="simulation")
    assert back.history[-1]["test_loss"] == pytest.approx(wide.history[-1]["test_loss"], abs=0.01)


@pytest.mark.parametrize("precision", SIXTEEN)
def test_the_running_statistics_of_batch_norm_are_float32(precision):
    for strategy in (Synchronous(batch_norm="synchronized"), Sharded(3), Pipeline(2, micro_batches=2)):
        model = parallel.train(job(precision, **DEEP), strategy, 2, "simulation").checkpoint.model
        assert model["3.running_mean"].dtype == model["3.running_var"].dtype == np.float32
        assert str(model["3.weight"].dtype) == precision


class Flipped(Dataset):
    """Makes its samples when they are read, in float64."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x[..., ::-1] * np.float64(1.1), y


@pytest.mark.parametrize("precision", ["float32", *SIXTEEN])
def test_samples_are_converted_and_those_of_a_dataset_with_its_own_getitem_too(precision):
    own = Splits(*(Flipped(part.x.astype(np.float32), part.y) for part in blobs()))
    plain = Splits(*(Dataset(*part[np.arange(len(part))]) for part in own))
    runs = [parallel.train(job(precision, data=each), Synchronous(), 2, "simulation") for each in (own, plain)]
    assert runs[0].digests == runs[1].digests
    assert runs[0].checkpoint.data["x"] == ((5,), "float32")  # which new samples are prepared for


# ---- what is learned ----


def text():
    return data.stdlib_text(n_chars=12_000, block_size=16)


@pytest.mark.parametrize(
    ("model", "changes"),
    all_but_first_exhaustive(
        [
            (partial(nn.models.MLP, 64, 64, 10), {"epochs": 4}),
            (partial(nn.models.LeNet, size=8), {"epochs": 2}),
            (partial(nn.models.ResNet, 8, num_classes=10, in_channels=1), {"epochs": 2}),
            (partial(nn.models.GPT, 96, 16, 1, 2, 16), {"data": text, "optimizer": partial(optim.AdamW, lr=1e-2)}),
        ]
    ),
    ids=["MLP", "LeNet", "ResNet", "GPT"],
)
def test_the_mean_loss_of_several_seeds_is_within_what_the_seeds_make_of_it_in_float32(model, changes):
    losses = {}
    settings = {"data": data.digits, "optimizer": partial(optim.SGD, lr=0.1, momentum=0.9), "batch_size": 64}
    for precision in ("float32", *SIXTEEN):
        runs = [
            job(precision, **(settings | {"model": model, "epochs": 1, "seed": seed} | changes)) for seed in range(3)
        ]
        with threadpool_limits(1):
            losses[precision] = [parallel.train(each, on="simulation").history[-1]["test_loss"] for each in runs]
    spread = np.ptp(losses["float32"])
    for precision in SIXTEEN:
        assert abs(np.mean(losses[precision]) - np.mean(losses["float32"])) < spread


# ---- what is refused ----


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        (parallel.ParameterServer(), "the ranks of ParameterServer update at different times"),
        (parallel.LocalSGD(), r"the ranks of LocalSGD .* use precision=\"bfloat16\", which needs no scale"),
        (parallel.Hogwild(), "the ranks of Hogwild update"),
        (parallel.EagerSGD(), "the ranks of EagerSGD update"),
        (Pipeline(2, schedule="pipedream"), r"pipedream each updates at a time of its own: use precision=\"bfloat16\""),
        (Synchronous(compressor=compress.TopK(0.1)), "what a compressor keeps of earlier ones would have another"),
    ],
)
def test_float16_is_refused_where_the_ranks_agree_upon_no_scale(strategy, sentence):
    with pytest.raises(ValueError, match=sentence):
        parallel.train(job("float16", model=deep), strategy, 2, on="simulation")


@pytest.mark.parametrize(
    ("precision", "error", "sentence"),
    [
        (
            "bf16",
            ValueError,
            "precision must be 'float32', 'bfloat16' or 'float16', got 'bf16': did you mean 'bfloat16'?",
        ),
        ("float61", ValueError, "got 'float61': did you mean 'float16'?"),
        (16, TypeError, "precision must be 'float32', 'bfloat16' or 'float16', got 16 of type int"),
    ],
)
def test_an_unknown_precision_is_refused(precision, error, sentence):
    with pytest.raises(error) as refusal:
        job(precision)
    assert sentence in str(refusal.value)


# ---- sums ----


@pytest.mark.parametrize(("dtype", "number"), [(np.float16, 60_000.0), (bfloat16, 1.5), (np.float64, 0.1)])
def test_the_mean_of_many_equal_weights_is_these_weights(dtype, number):
    weights = np.full(3, number, dtype)
    mean = parallel.Strategy().combine([weights] * 512)[0]
    assert mean.dtype == dtype
    assert abs(mean.astype(float) - weights.astype(float)).max() < 1e-14


@pytest.mark.parametrize("size", [1e-5, 1e3])
def test_the_norm_of_float16_is_finite_and_above_zero_where_its_square_is_not(size):
    assert vector.norm(np.full(4, size, np.float16)) == pytest.approx(2 * size, rel=0.02)


still_sgd = partial(optim.SGD, lr=0.0)


@dataclass(frozen=True)
class Far(parallel.ElasticAveraging):
    """The worker begins with weights far from the centre's."""

    def run(self, session):
        session.set_weights(session.weights() + 300)
        super().run(session)


@pytest.mark.parametrize("strategy", [Far(), Far(variant="round_robin")], ids=["asynchronous", "round robin"])
def test_the_distance_to_the_centre_in_float16_may_exceed_256(strategy):
    still = job(None, model=lambda: nn.Linear(5, 3).half(), data=partial(blobs, dtype="float16"), optimizer=still_sgd)
    report = parallel.train(still, strategy, 1, on="simulation")
    distance = next(of_rank for of_rank in report.recorded["distance"] if of_rank)[0]
    assert distance == pytest.approx(300 * np.sqrt(18), rel=1e-3)
