"""Checkpoints within epochs, and while training goes on: what a death costs, and that nothing else changes."""

import os
import signal
import threading
from functools import partial

import numpy as np
import pytest

from minidl import cluster, compress, nn, parallel
from minidl.parallel import Checkpoint, Pipeline, Saving, Serial, Sharded, SufficientFactors, Synchronous
from tests.parallel.jobs import assert_same_bits, assert_same_run, blobs, dropout_job, normalized, small_job
from tests.parallel.pipeline.test_elastic_stages import KilledOnce

pytestmark = pytest.mark.timeout(300)

STEPS = 4  # in an epoch of small_job: 60 samples in minibatches of 16
LONG = 60.0  # seconds, which only a hang exceeds
HALF = partial(small_job, model=partial(nn.models.MLP, 5, 8, 3), precision="float16")
NORMALIZED = partial(small_job, model=normalized, data=partial(blobs, 61))
STAGES = {"stages": 2, "micro_batches": 4}


class StoppedError(Exception):
    """The run is stopped."""


def stop(monkeypatch, run, epoch, step, until=None):
    """Stop a simulated run when its checkpoint of that place is whole, which is written once `until` is set."""
    save = Checkpoint.save

    def saved(checkpoint, path):
        is_last = (checkpoint.epoch, checkpoint.within_epoch.get("step")) == (epoch, step)
        assert not is_last or until is None or until.wait(LONG)
        save(checkpoint, path)
        if is_last:
            raise StoppedError

    with monkeypatch.context() as patched, pytest.raises(cluster.ClusterError, match="Stopped"):
        patched.setattr(Checkpoint, "save", saved)
        run()


@pytest.mark.parametrize(
    ("strategy", "nodes", "job"),
    [
        (Serial(), 1, dropout_job),
        (Synchronous(), 3, NORMALIZED),
        (Synchronous(overlap=True), 2, HALF),
        (SufficientFactors(), 2, dropout_job),
        (Sharded(2), 3, dropout_job),
        (Sharded(3), 2, dropout_job),
        (Pipeline(**STAGES), 2, dropout_job),
    ],
    ids=["serial", "batch norm", "float16", "factors", "sharded 2", "sharded 3", "stages"],
)
def test_a_run_goes_on_within_an_epoch_to_the_same_bits(strategy, nodes, job, tmp_path, monkeypatch):
    train = partial(parallel.train, job(epochs=3), strategy, nodes, "simulation")
    stop(monkeypatch, partial(train, folder=tmp_path, saving=Saving(every=3)), epoch=1, step=3)
    assert_same_bits(train(resume=tmp_path), train())


def test_saving_changes_neither_weights_nor_history(tmp_path):
    train = partial(parallel.train, small_job(), Sharded(1), 2, cluster.Simulation("1gbe"))
    saved, plain = train(folder=tmp_path, saving=Saving(every=1, asynchronous=True)), train()
    assert saved.digests == plain.digests
    for row, true in zip(saved.history, plain.history, strict=True):
        assert row == pytest.approx(true, rel=1e-9)  # seconds and bytes, too
    assert saved.seconds > plain.seconds


def test_training_goes_on_while_a_thread_writes_what_was_there_before(tmp_path, monkeypatch):
    """The sixth update's checkpoint is not written before the seventh has changed the weights."""
    update, seventh = parallel.Session.update, threading.Event()

    def announced(session):
        update(session)
        if session.steps == 7:
            seventh.set()

    monkeypatch.setattr(parallel.Session, "update", announced)
    train = partial(parallel.train, dropout_job(), Synchronous(), 2, "simulation")
    stop(monkeypatch, partial(train, folder=tmp_path, saving=Saving(2, asynchronous=True)), 1, 2, until=seventh)
    assert_same_bits(train(resume=tmp_path), train())


@pytest.mark.parametrize("failing", [0, 3, 6])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_full_disk_is_reported_and_leaves_the_last_checkpoint(failing, asynchronous, tmp_path, monkeypatch):
    """Seven checkpoints: the start, and two in each of three epochs."""
    savez, written = np.savez, []

    def on_a_full_disk(file, **arrays):
        if len(written) == failing:
            raise OSError(28, "No space left on device")
        written.append(file.name)
        savez(file, **arrays)

    monkeypatch.setattr(np, "savez", on_a_full_disk)
    with pytest.raises(OSError, match=r"No space left on device.*checkpoint\.npz"):
        parallel.train(small_job(), on="simulation", folder=tmp_path, saving=Saving(2, asynchronous))
    assert len(written) == failing
    if failing:
        state = Checkpoint.load(tmp_path)
        assert state.epoch * STEPS + state.within_epoch.get("step", 0) == 2 * (failing - 1)
    assert len(list(tmp_path.glob("*checkpoint*"))) == (failing > 0)


class KilledWhileWriting(Synchronous):
    """The process of rank 0 ends by SIGKILL when half of its fourth checkpoint is written."""

    def run(self, session):
        savez, saved = np.savez, []

        def half(file, **arrays):
            saved.append(file)
            if len(saved) == 4:
                file.write(b"PK\x03\x04 half a checkpoint")
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            savez(file, **arrays)

        if session.comm.rank == 0:
            np.savez = half
        super().run(session)


def test_a_kill_while_a_thread_writes_leaves_the_checkpoint_before_it_whole(tmp_path):
    """Checkpoints: start, steps 2, 4 and 6."""
    job, saving = dropout_job(), Saving(every=2, asynchronous=True)
    with pytest.raises(cluster.RankFailed, match="SIGKILL"):
        parallel.train(job, KilledWhileWriting(), 2, folder=tmp_path, saving=saving, deadline=LONG)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.npz", "config.json", "metrics.csv"}
    state = Checkpoint.load(tmp_path)
    assert (state.epoch, state.within_epoch) == (1, {})
    train = partial(parallel.train, job, Synchronous(), 2, "simulation")
    assert_same_bits(train(resume=tmp_path), train())


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_killed_stage_costs_at_most_the_interval_and_what_is_being_written(asynchronous, tmp_path):
    job, saving = small_job(batch_size=8), Saving(3, asynchronous)
    strategy = KilledOnce(**STAGES, minibatch=15, done=tmp_path / "done")  # the seventh of eight in epoch 2
    report = parallel.train(job, strategy, 2, folder=tmp_path / "run", elastic=True, saving=saving, deadline=LONG)
    [restart] = report.restarts
    assert (restart.source, restart.epoch) == ("checkpoint", 2)
    assert restart.step in ((3, 6) if asynchronous else (6,))
    assert restart.steps_lost <= (6 if asynchronous else 3)
    assert report.digests == parallel.train(job, Pipeline(**STAGES), 2, "simulation").digests


def test_another_number_of_nodes_goes_on_within_the_epoch_to_the_serial_runs_numbers(tmp_path, monkeypatch):
    run = partial(parallel.train, small_job(), Sharded(3), 3, "simulation", folder=tmp_path, saving=Saving(every=3))
    stop(monkeypatch, run, epoch=1, step=3)
    truth = parallel.train(small_job(), on="simulation")
    rest = parallel.train(small_job(), Synchronous(), 2, "simulation", resume=tmp_path)
    assert_same_run(rest, truth)


def test_survivors_that_go_on_within_the_first_epoch_leave_its_first_checkpoint(tmp_path):
    """The second death ends the run, and what is resumed is the start, not the survivors' weights as the start."""
    plan = cluster.FaultPlan().kill(2, at=("all_reduce", 2)).kill(1, at=("all_reduce", 4))
    once = {"elastic": parallel.Elastic(restarts=1), "faults": plan}
    with pytest.raises(cluster.RankFailed):
        parallel.train(small_job(), Synchronous(), 3, "simulation", folder=tmp_path, **once)
    rest = parallel.train(small_job(), on="simulation", resume=tmp_path)
    assert rest.digests == parallel.train(small_job(), on="simulation").digests


@pytest.mark.parametrize(
    "strategy",
    [
        Synchronous(compressor=compress.QSGD(levels=3)),
        Sharded(offload=parallel.Offload(delayed=True)),
        Pipeline(stages=2, schedule="pipedream"),
    ],
)
def test_a_strategy_that_would_go_on_to_other_bits_does_not_save_within_epochs(strategy, tmp_path):
    with pytest.raises(ValueError, match="cannot go on within an epoch to the same bits: leave out every"):
        parallel.train(small_job(), strategy, 2, "simulation", folder=tmp_path, saving=Saving(every=5))


def test_checkpoints_and_settings_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    train = partial(parallel.train, on="simulation")
    stop(monkeypatch, partial(train, small_job(), folder=tmp_path, saving=Saving(every=1)), epoch=0, step=1)
    with pytest.raises(ValueError, match="resume with batch_size=16, got 10"):
        train(small_job(batch_size=10), resume=tmp_path)
    with pytest.raises(ValueError, match="stands within an epoch, where Pipeline"):
        train(small_job(), Pipeline(stages=2, schedule="pipedream"), 2, resume=tmp_path)
    with pytest.raises(TypeError, match=r"saving must be a parallel\.Saving, such as Saving"):
        train(small_job(), saving=5)
    with pytest.raises(ValueError, match="needs a folder to write to"):
        train(small_job(), saving=Saving(every=5))
    with pytest.raises(ValueError, match=r"LocalSGD.* cannot go on from a checkpoint: leave out saving"):
        train(small_job(), parallel.LocalSGD(), 2, folder=tmp_path, saving=Saving(asynchronous=True))
