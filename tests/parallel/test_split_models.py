"""A strategy of thirty lines splits a model over two ranks; the run's numbers are those of one."""

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import Tensor, data, nn, optim, parallel
from minidl import functional as F
from minidl.cluster import ClusterError
from minidl.data import Dataset, Splits
from minidl.parallel import Job, NonFiniteLoss, Serial
from tests.parallel.jobs import assert_same_run, small_job, two_groups
from tests.parallel.two_stages import TwoStages, half
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SAMPLES = 70  # in minibatches of 16: the last one has 6


def few_digits() -> Splits:
    train = data.digits().train
    x = np.asarray(train.x[: SAMPLES + 40], np.float64)
    return Splits(Dataset(x[:SAMPLES], train.y[:SAMPLES]), Dataset(x[SAMPLES:], train.y[SAMPLES : len(x)]))


def texts() -> Splits:
    tokens = np.random.default_rng(3).integers(11, size=(SAMPLES + 20, 7))
    x, y = tokens[:, :-1], (tokens[:, :-1] * 3 + 1) % 11
    return Splits(Dataset(x[:SAMPLES], y[:SAMPLES]), Dataset(x[SAMPLES:], y[SAMPLES:]))


def lenet() -> nn.Module:
    return nn.models.LeNet(size=8).double()


def resnet() -> nn.Module:
    """With batch norm, whose statistics are buffers of both stages; the first stage's weights are frozen."""
    model = nn.models.ResNet(8, in_channels=1).double()
    model.conv1.requires_grad_(False)
    return model


def gpt(dropout: float = 0.2) -> nn.Module:
    return nn.models.GPT(vocab_size=11, block_size=6, n_layer=3, n_head=2, n_embd=8, dropout=dropout).double()


def decay(optimizer, steps_per_epoch):
    return optim.StepLR(optimizer, step_size=steps_per_epoch, gamma=0.7)


def momentum(parameters) -> optim.Optimizer:
    return optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-3)


JOBS = {
    "LeNet": Job(lenet, few_digits, momentum, decay, batch_size=16, epochs=2, seed=5),
    "ResNet": Job(resnet, few_digits, momentum, decay, batch_size=16, epochs=2, seed=5, clip_norm=1.0),
    "tied GPT": Job(gpt, texts, two_groups, decay, batch_size=16, epochs=2, seed=5, clip_norm=0.4),
}


@pytest.mark.parametrize(
    ("name", "dp", "m", "on"),
    [
        ("LeNet", 1, 1, "simulation"),
        ("tied GPT", 1, 3, "simulation"),
        *exhaustively(("tied GPT", 1, 3, "processes"), ("ResNet", 2, 2, "simulation")),
    ],
)
def test_two_stages_train_to_the_numbers_of_one_node(name, dp, m, on):
    job = JOBS[name]
    truth = parallel.train(job, Serial(shards=dp, micro_batches=m), on="simulation")
    report = parallel.train(job, TwoStages(m), nodes=2 * dp, on=on)
    assert_same_run(report, truth)
    assert len(report.digests) == dp
    assert len(set(report.digests)) == 1
    assert report.accuracy == truth.accuracy


class Measured(TwoStages):
    """Records the bytes of the weights that a rank holds, and what building them took."""

    def build(self, job, mesh):
        tracemalloc.start()
        model = super().build(job, mesh)
        Measured.traced = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return model

    def run(self, session):
        held = {id(p): p.data.nbytes for p in session.model.parameters() if p.held}
        session.record("held", sum(held.values()))
        session.record("traced", Measured.traced)
        own = half(session.model, session.mesh.coordinates["pp"])
        assert held.keys() == {id(p) for stage in own for p in stage.parameters()}
        super().run(session)


def test_a_rank_holds_its_half_of_the_weights_and_never_more_than_one_parameter_beside_it():
    wide = partial(nn.models.MLP, 64, 300, 300, 300, 300, 10)
    job = Job(wide, data.digits, momentum, batch_size=500, epochs=1)
    report = parallel.train(job, Measured(), nodes=2, on="processes")
    model = wide()
    sizes = [sum(p.data.nbytes for stage in half(model, which) for p in stage.parameters()) for which in (0, 1)]
    largest = max(p.data.nbytes for p in model.parameters())
    assert [held for (held,) in report.recorded["held"]] == sizes
    for (traced,), size in zip(report.recorded["traced"], sizes, strict=True):
        now, peak = traced
        assert now < size + 50_000  # the modules themselves are some kilobytes
        assert peak < size + largest + 100_000


def nan_loss(outputs, labels):
    return F.cross_entropy(outputs, labels) * np.nan


def test_a_loss_that_is_not_finite_ends_the_run_of_all_stages_and_names_a_parameter_of_its_stage():
    with pytest.raises(
        NonFiniteLoss, match=r"at epoch 1, step 1 on rank 1; the first gradient .* is that of fc2.weight"
    ):
        parallel.train(replace(JOBS["LeNet"], loss=nan_loss), TwoStages(), nodes=2, on="simulation")


def test_progress_comes_from_the_stage_that_has_the_loss():
    seen = []
    report = parallel.train(JOBS["LeNet"], TwoStages(), nodes=4, on="simulation", progress=seen.append)
    assert [each.row for each in seen if each.row] == report.history
    assert all(np.isfinite(each.loss) and each.loss > 0 for each in seen)


def test_a_split_model_cannot_lose_a_node():
    with pytest.raises(ValueError, match="TwoStages splits the model, so the weights of a dead node are lost"):
        parallel.train(small_job(), TwoStages(), nodes=4, on="simulation", elastic=True)


class WithoutOutputs(TwoStages):
    def predict(self, session, x):
        super().predict(session, x)


class OutputsOnBothStages(TwoStages):
    def predict(self, session, x):
        outputs = super().predict(session, x)
        return Tensor(np.zeros((len(x), 3))) if outputs is None else outputs


class WithoutTheLastStage(TwoStages):
    def build(self, job, mesh):
        with nn.building(lambda model: half(model, mesh.coordinates["pp"])[:1]):
            return job.build_model()


class WrongPlan(TwoStages):
    def plan(self, job, nodes):
        return 1, 2


@pytest.mark.parametrize(
    ("strategy", "error", "message"),
    [
        (WithoutOutputs, ClusterError, "predict returned None on every rank"),
        (OutputsOnBothStages, ClusterError, "predict returned 60 outputs for the 30 samples of the test set"),
        (WithoutTheLastStage, ClusterError, r"no rank of a replica holds 3.weight, 3.bias: the strategy's `build` "),
        (WrongPlan, TypeError, r"WrongPlan: plan must return a parallel.ParallelPlan, got \(1, 2\)"),
    ],
)
def test_a_strategy_with_a_slip_is_told_of_it(strategy, error, message):
    with pytest.raises(error, match=message):
        parallel.train(small_job(), strategy(), nodes=2, on="simulation")


def without_parameters_at_the_end() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 3), nn.Flatten(), nn.Tanh(), nn.Tanh()).double()


class Flat(TwoStages):
    """Goes through all weights and gradients as one vector, on both stages."""

    def run(self, session):
        session.set_weights(session.weights() * 1.0)
        session.set_gradient(session.gradient())
        session.record("numbers", session.weights().size)
        super().run(session)


def test_a_stage_may_have_no_parameters():
    job = small_job(model=without_parameters_at_the_end)
    report = parallel.train(job, Flat(), nodes=2, on="simulation")
    assert report.recorded["numbers"] == [[18], [0]]
    assert_same_run(report, parallel.train(job, Serial(), on="simulation"))
