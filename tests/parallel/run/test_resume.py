"""A run that was stopped and resumed ends with the same bits as one that never stopped."""

import pytest

from minidl import nn, optim, parallel
from minidl.parallel import Checkpoint, CheckpointError, Serial, Synchronous
from tests.parallel.jobs import dropout_job, momentum_sgd, small_job, two_layers

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("strategy", "nodes"), [(Serial(), 1), (Synchronous(algorithm="ordered"), 4)], ids=["one node", "four nodes"]
)
@pytest.mark.parametrize("make_job", [small_job, dropout_job], ids=["plain", "dropout"])
def test_resuming_gives_the_bits_of_the_uninterrupted_run(tmp_path, strategy, nodes, make_job):
    whole = parallel.train(make_job(epochs=4), strategy, nodes=nodes)
    parallel.train(make_job(epochs=2), strategy, nodes=nodes, folder=tmp_path)
    resumed = parallel.train(make_job(epochs=4), strategy, nodes=nodes, resume=tmp_path / "checkpoint.npz")
    assert resumed.digests[0] == whole.digests[0]
    assert [row["loss"] for row in resumed.history] == [row["loss"] for row in whole.history]
    assert [row["lr"] for row in resumed.history] == [row["lr"] for row in whole.history]


def v_form(parameters):
    return optim.SGD(parameters, lr=0.1, momentum=0.9, momentum_form="v")


def test_the_velocity_of_the_v_form_is_resumed_and_clipping_goes_on(tmp_path):
    def run(epochs, **options):
        job = small_job(optimizer=v_form, clip_norm=0.2, epochs=epochs)
        return parallel.train(job, Synchronous(algorithm="ordered"), nodes=2, on="simulation", **options)

    run(2, folder=tmp_path)
    assert run(4, resume=tmp_path / "checkpoint.npz").digests == run(4).digests


def test_there_is_a_checkpoint_before_the_first_epoch_ends(tmp_path):
    def exploding(outputs, labels):
        raise RuntimeError("stopped in the first step")

    with pytest.raises(RuntimeError, match="stopped in the first step"):
        parallel.train(small_job(loss=exploding), folder=tmp_path)
    assert Checkpoint.load(tmp_path / "checkpoint.npz").epoch == 0
    resumed = parallel.train(small_job(), resume=tmp_path / "checkpoint.npz")
    assert resumed.digests == parallel.train(small_job()).digests


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    parallel.train(small_job(epochs=1), folder=tmp_path)
    other = small_job(model=lambda: nn.models.MLP(5, 9, 3))
    with pytest.raises(CheckpointError, match="another model"):
        parallel.train(other, resume=tmp_path / "checkpoint.npz")


def test_a_checkpoint_without_schedule_is_refused_by_a_job_with_one(tmp_path):
    parallel.train(small_job(epochs=1, schedule=None), folder=tmp_path)
    with pytest.raises(CheckpointError, match="schedule"):
        parallel.train(small_job(), resume=tmp_path / "checkpoint.npz")


def test_a_finished_run_has_nothing_to_resume(tmp_path):
    parallel.train(small_job(epochs=1), folder=tmp_path)
    with pytest.raises(ValueError, match="has 1 epochs already"):
        parallel.train(small_job(epochs=1), resume=tmp_path / "checkpoint.npz")


def test_the_report_gives_back_the_trained_model():
    report = parallel.train(small_job(model=two_layers, optimizer=momentum_sgd))
    model = report.model()
    for name, array in model.state_dict().items():
        assert (array == report.checkpoint.model[name]).all()
