"""A run that was stopped and resumed ends with the same bits as one that never stopped."""

from dataclasses import replace

import pytest

from minidl import nn, optim, parallel
from minidl.parallel import (
    Checkpoint,
    CheckpointError,
    LocalSGD,
    ParameterServer,
    Serial,
    SufficientFactors,
    Synchronous,
)
from tests.parallel.jobs import assert_same_bits, assert_same_run, dropout_job, small_job, two_groups

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("strategy", "nodes", "on"), [(Serial(), 1, "simulation"), (Synchronous(algorithm="ordered"), 2, "processes")]
)
def test_resuming_gives_the_bits_of_the_uninterrupted_run(tmp_path, strategy, nodes, on):
    whole = parallel.train(dropout_job(epochs=4), strategy, nodes, on)
    parallel.train(dropout_job(epochs=2), strategy, nodes, on, folder=tmp_path)
    resumed = parallel.train(dropout_job(epochs=4), strategy, nodes, on, resume=tmp_path / "checkpoint.npz")
    assert_same_bits(resumed, whole)


@pytest.mark.parametrize(
    ("strategy", "nodes", "then", "on_nodes"),
    [
        (Serial(), 1, SufficientFactors(), 2),
        (SufficientFactors(), 3, Synchronous(), 4),
        (Synchronous(), 2, Serial(), 1),
    ],
)
def test_another_strategy_and_number_of_nodes_goes_on_to_the_serial_runs_numbers(
    tmp_path, strategy, nodes, then, on_nodes
):
    job = small_job(optimizer=two_groups, clip_norm=0.5, epochs=4)
    truth = parallel.train(job, on="simulation")
    half = parallel.train(replace(job, epochs=2), strategy, nodes, on="simulation", folder=tmp_path)
    rest = parallel.train(job, then, on_nodes, on="simulation", resume=tmp_path / "checkpoint.npz")
    assert_same_run(rest, truth)
    assert rest.history[:2] == half.history
    for name in ("seconds", "bytes"):
        values = [row[name] for row in rest.history]
        assert values == sorted(values)


def v_form(parameters):
    return optim.SGD(parameters, lr=0.1, momentum=0.9, momentum_form="v")


def test_the_velocity_of_the_v_form_is_resumed_and_clipping_goes_on(tmp_path):
    def run(epochs, **options):
        job = small_job(optimizer=v_form, clip_norm=0.2, epochs=epochs)
        return parallel.train(job, Synchronous(algorithm="ordered"), nodes=2, on="simulation", **options)

    run(2, folder=tmp_path)
    assert run(4, resume=tmp_path / "checkpoint.npz").digests == run(4).digests


@pytest.mark.parametrize("strategy", [LocalSGD(), ParameterServer()], ids=["averaging", "server"])
def test_serial_goes_on_from_the_checkpoint_that_any_strategy_writes_at_its_end(tmp_path, strategy):
    first = parallel.train(small_job(epochs=1), strategy, nodes=2, on="simulation", folder=tmp_path)
    resumed = parallel.train(small_job(epochs=2), Serial(), on="simulation", resume=tmp_path / "checkpoint.npz")
    assert resumed.history[0] == first.history[0]
    assert [row["epoch"] for row in resumed.history] == [1, 2]


def with_a_parameter_of_the_loss(parameters):
    return optim.SGD([*parameters, nn.Parameter([1.0])], lr=0.1, momentum=0.9)


def test_an_optimizer_may_have_a_parameter_that_is_none_of_the_models(tmp_path):
    options = {"optimizer": with_a_parameter_of_the_loss, "schedule": None}
    whole = parallel.train(small_job(**options, epochs=2), on="simulation")
    parallel.train(small_job(**options, epochs=1), on="simulation", folder=tmp_path)
    resumed = parallel.train(small_job(**options, epochs=2), on="simulation", resume=tmp_path / "checkpoint.npz")
    assert resumed.digests == whole.digests
    assert parallel.train(small_job(**options, epochs=1), LocalSGD(), nodes=2, on="simulation").history


def test_there_is_a_checkpoint_before_the_first_epoch_ends(tmp_path):
    def exploding(outputs, labels):
        raise RuntimeError("stopped in the first step")

    with pytest.raises(RuntimeError, match="stopped in the first step"):
        parallel.train(small_job(loss=exploding), folder=tmp_path)
    assert Checkpoint.load(tmp_path / "checkpoint.npz").epoch == 0
    resumed = parallel.train(small_job(), on="simulation", resume=tmp_path / "checkpoint.npz")
    assert resumed.digests == parallel.train(small_job(), on="simulation").digests


def test_a_checkpoint_of_another_model_or_optimizer_is_refused(tmp_path):
    parallel.train(small_job(epochs=1), folder=tmp_path, on="simulation")
    other = small_job(model=lambda: nn.models.MLP(5, 9, 3))
    with pytest.raises(
        CheckpointError, match=r"(?s)of another model: .*3\.bias\n.*of another optimizer: .* lacks layers\.0"
    ):
        parallel.train(other, resume=tmp_path / "checkpoint.npz", on="simulation")
    with pytest.raises(
        CheckpointError, match="another optimizer: the saved optimizer has 1 parameter groups, this one"
    ):
        parallel.train(small_job(optimizer=two_groups), resume=tmp_path / "checkpoint.npz", on="simulation")


def test_a_checkpoint_of_another_schedule_is_refused(tmp_path):
    parallel.train(small_job(epochs=1), folder=tmp_path, on="simulation")
    other = small_job(schedule=lambda optimizer, steps: optim.CosineAnnealingLR(optimizer, T_max=steps))
    with pytest.raises(CheckpointError, match="another learning-rate schedule: the state lacks T_max"):
        parallel.train(other, resume=tmp_path / "checkpoint.npz", on="simulation")
    by_function = small_job(schedule=lambda optimizer, steps: optim.LambdaLR(optimizer, lambda step: 1.0))
    with pytest.raises(CheckpointError, match="its state has gamma, step_size, which a LambdaLR has not"):
        parallel.train(by_function, resume=tmp_path / "checkpoint.npz", on="simulation")
    parallel.train(small_job(epochs=1, schedule=None), folder=tmp_path / "without", on="simulation")
    with pytest.raises(CheckpointError, match="schedule"):
        parallel.train(small_job(), resume=tmp_path / "without" / "checkpoint.npz", on="simulation")


def test_a_finished_run_has_nothing_to_resume(tmp_path):
    parallel.train(small_job(epochs=1), folder=tmp_path, on="simulation")
    with pytest.raises(ValueError, match="has 1 epochs already"):
        parallel.train(small_job(epochs=1), resume=tmp_path / "checkpoint.npz")
