"""When nodes die, an elastic run goes on with the others and loses no finished step."""

import os
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import cluster, compress, optim, parallel
from minidl.cluster import FaultPlan
from minidl.parallel import (
    Elastic,
    Gossip,
    LocalSGD,
    NonFiniteLoss,
    OneShotAveraging,
    Serial,
    SlowMo,
    SufficientFactors,
    Synchronous,
)
from minidl.parallel.run.elastic_restart import Restart
from tests.parallel.jobs import blobs, normalized, small_job, weights
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

STEPS = 4  # in an epoch of small_job: 60 samples in minibatches of 16


def assert_equal_to_serial(report, job):
    truth = parallel.train(job, Serial(), on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    for row, true in zip(report.history, truth.history, strict=True):
        assert row["test_loss"] == pytest.approx(true["test_loss"], rel=1e-8)
        assert [row[name] for name in ("epoch", "lr", "steps", "samples")] == [
            true[name] for name in ("epoch", "lr", "steps", "samples")
        ]
        assert np.isfinite(row["loss"])


@pytest.mark.parametrize(
    ("dead", "call", "on"),
    [(0, 7, "simulation"), (2, 1, "simulation"), *exhaustively((0, 7, "processes"), (2, 12, "processes"))],
)
def test_a_synchronous_run_loses_nothing_when_a_node_is_killed(dead, call, on):
    job = small_job()
    plan = FaultPlan().kill(dead, at=("all_reduce", call))
    report = parallel.train(job, Synchronous(algorithm="ring"), nodes=3, on=on, faults=plan, elastic=True)
    assert_equal_to_serial(report, job)
    [restart] = report.restarts
    assert list(restart.died) == [dead]
    assert (restart.nodes, restart.source, restart.steps_lost, restart.joined) == (2, "step", 0, 0)
    assert report.nodes == 2
    assert len(set(report.digests)) == 1
    assert f"node {dead} died" in str(restart)


class Suicidal(Synchronous):
    """Node 1 of three dies by a real SIGKILL, in the middle of an epoch."""

    def run(self, session):
        update, steps = session.update, []

        def mortal():
            steps.append(1)
            if session.nodes == 3 and session.comm.rank == 1 and len(steps) == 6:
                os.kill(os.getpid(), signal.SIGKILL)
            update()

        session.update = mortal
        super().run(session)


def test_a_real_sigkill_is_survived():
    job = small_job()
    report = parallel.train(job, Suicidal(), nodes=3, on="processes", elastic=True)
    assert_equal_to_serial(report, job)
    [restart] = report.restarts
    assert "SIGKILL" in restart.died[1]
    assert (restart.epoch, restart.step) == (2, 2)  # the others have made the update in which node 1 died


def test_several_nodes_may_die_at_a_time_and_one_after_the_other():
    plan = FaultPlan().kill(0, at=("all_reduce", 1)).kill(1, at=("all_reduce", 1)).kill(2, at=("all_reduce", 6))
    job = small_job()
    report = parallel.train(job, Synchronous(), nodes=4, on="simulation", faults=plan, elastic=True)
    assert_equal_to_serial(report, job)
    assert report.nodes == 4 - len(plan.faults)
    assert sum(len(restart.died) for restart in report.restarts) == len(plan.faults)


def test_statistics_of_batch_norm_move_once_a_minibatch():
    job = small_job(model=normalized, data=partial(blobs, 64))
    plan = FaultPlan().kill(1, at=("all_reduce", 6))
    synchronized = Synchronous(batch_norm="synchronized")
    report = parallel.train(job, synchronized, nodes=2, on="simulation", faults=plan, elastic=True)
    assert_equal_to_serial(report, job)
    truth = parallel.train(job, Serial(), on="simulation").checkpoint.model
    for name, array in report.checkpoint.model.items():
        assert np.abs(array - truth[name]).max() < 1e-9, name


@pytest.mark.parametrize(
    "strategy",
    [
        LocalSGD(period=2),
        SlowMo(period=3),
        Gossip(),
        Gossip("full"),
        SufficientFactors(),
        OneShotAveraging(),
    ],
    ids=repr,
)
def test_every_strategy_that_can_go_on_learns_to_the_end(strategy):
    job = small_job(epochs=6)
    calls = {"OneShotAveraging": ("all_reduce", 1), "Gossip": 40, "SufficientFactors": ("all_gather", 9)}
    at = calls.get(type(strategy).__name__, ("all_reduce", 4))
    if strategy == Gossip("full"):
        at = ("all_reduce", 9)
    plan = FaultPlan().kill(2, at=at)
    report = parallel.train(job, strategy, nodes=4, on="simulation", faults=plan, elastic=True)
    [restart] = report.restarts
    assert restart.nodes == report.nodes == 3
    assert [row["epoch"] for row in report.history] == [1, 2, 3, 4, 5, 6]
    unharmed = parallel.train(job, strategy, nodes=4, on="simulation")
    assert report.accuracy >= unharmed.accuracy - 0.1
    assert report.history[-1]["test_loss"] < 1.5 * unharmed.history[-1]["test_loss"] + 0.05


def test_a_new_node_joins_at_the_beginning_of_the_next_epoch():
    job = small_job(epochs=5)
    plan = FaultPlan().kill(1, at=("all_reduce", 8))  # an epoch takes 4 for the gradients and 2 for its end
    seen = []
    report = parallel.train(
        job, Synchronous(), nodes=3, on="simulation", faults=plan, elastic=Elastic(rejoin=True), progress=seen.append
    )
    assert_equal_to_serial(report, job)
    died, joined = report.restarts
    assert (died.epoch, died.nodes, joined.epoch, joined.joined, joined.nodes) == (2, 2, 3, 1, 3)
    assert "1 joined; 3 went on" in str(joined)
    assert [each.row["epoch"] for each in seen if each.row] == [1, 2, 3, 4, 5]


def test_if_all_nodes_die_new_ones_go_on_from_the_checkpoint(tmp_path):
    job = small_job()
    plan = FaultPlan().kill(0, at=("all_reduce", 9)).kill(1, at=("all_reduce", 9))
    settings = {"nodes": 2, "on": "simulation", "faults": plan, "folder": tmp_path}
    report = parallel.train(job, Synchronous(), elastic=Elastic(rejoin=True), **settings)
    assert_equal_to_serial(report, job)
    [restart] = report.restarts
    assert (restart.source, restart.steps_lost, restart.joined, restart.nodes) == ("checkpoint", None, 2, 2)
    with pytest.raises(cluster.RankFailed, match="killed"):
        parallel.train(job, Synchronous(), elastic=True, **settings)


def test_too_few_nodes_and_too_many_deaths_are_raised():
    plan = FaultPlan().kill(1, at=("all_reduce", 3)).kill(2, at=("all_reduce", 2))
    settings = {"nodes": 3, "on": "simulation", "faults": plan}
    with pytest.raises(cluster.RankFailed, match=r"rank \d of \d"):
        parallel.train(small_job(), Synchronous(), elastic=Elastic(min_nodes=2), **settings)
    with pytest.raises(cluster.RankFailed, match="killed"):
        parallel.train(small_job(), Synchronous(), elastic=Elastic(restarts=0), **settings)


def test_nodes_that_a_strategy_cannot_do_without_are_named():
    matrix = np.full((3, 3), 1 / 3)
    plan = FaultPlan().kill(1, at=5)
    with pytest.raises(cluster.RankFailed, match="killed") as raised:
        parallel.train(small_job(), Gossip(matrix), nodes=3, on="simulation", faults=plan, elastic=True)
    assert "matrix is for 3 nodes, the run has 2" in str(raised.value.__cause__)


def broken(outputs, labels):
    raise ValueError("a mistake of the job's own")


def nan_loss(outputs, labels):
    return (outputs * np.nan).mean()


def test_an_error_of_the_program_is_no_death():
    for strategy in (Synchronous(), parallel.Pipeline(2, 4)):
        with pytest.raises(cluster.RankFailed, match="a mistake of the job's own"):
            parallel.train(small_job(loss=broken), strategy, nodes=2, on="simulation", elastic=True)
    with pytest.raises(NonFiniteLoss):
        parallel.train(small_job(loss=nan_loss), Synchronous(), nodes=2, on="simulation", elastic=True)


def test_a_deadlock_that_is_no_death_ends_the_run_and_its_trace_shows_the_lost_message():
    lost = cluster.FaultPlan().drop(0, at=("broadcast", 4))
    with pytest.raises(cluster.Deadlock, match="wait for messages that can never come") as caught:
        parallel.train(small_job(), Synchronous(), nodes=2, on="simulation", elastic=True, faults=lost)
    assert [fault.label.split()[0] for fault in caught.value.trace.faults] == ["drop"]


def test_a_strategy_that_cannot_go_on_is_refused_with_advice():
    for strategy, nodes, advice in (
        (Serial(), 1, "use Synchronous"),
        (parallel.ParameterServer(), 2, 'on_failure="continue" lets the other workers finish'),
        (Gossip(asynchronous=True), 2, 'on_failure="continue" lets the other workers finish'),
    ):
        with pytest.raises(ValueError, match="cannot go on with other nodes when one dies: " + advice):
            parallel.train(small_job(), strategy, nodes=nodes, on="simulation", elastic=True)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"elastic": "yes"}, TypeError),
        ({"elastic": True, "on_failure": "continue"}, ValueError),
        ({"elastic": Elastic(min_nodes=5)}, ValueError),
        ({"elastic": True, "on": "mpi"}, ValueError),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, error):
    with pytest.raises(error, match=r"elastic|min_nodes|MPI ends all"):
        parallel.train(small_job(), Synchronous(), nodes=2, **({"on": "simulation"} | settings))


def test_without_a_death_an_elastic_run_has_the_bits_and_the_traffic_of_any_other():
    job = small_job()
    plain, elastic = (
        parallel.train(job, Synchronous(), nodes=3, on="simulation", network="1gbe", elastic=e) for e in (False, True)
    )
    assert np.array_equal(weights(plain), weights(elastic))
    assert plain.history == elastic.history
    assert elastic.restarts == []
    assert plain.trace.ledger() == elastic.trace.ledger()


def test_an_elastic_run_resumes_too(tmp_path):
    job = small_job()
    parallel.train(replace(job, epochs=1), Synchronous(), nodes=3, on="simulation", folder=tmp_path)
    plan = FaultPlan().kill(0, at=("all_reduce", 2))
    report = parallel.train(
        job, Synchronous(), nodes=3, on="simulation", resume=tmp_path / "checkpoint.npz", faults=plan, elastic=True
    )
    assert_equal_to_serial(report, job)
    assert report.restarts[0].epoch == 2


CHOSEN: list[tuple[int, ...]] = []


class RecordedChoices(compress.RandomK):
    """Appends the entries that it decodes in the first layer's weight to `CHOSEN`."""

    def entries(self, message):
        chosen, values = super().entries(message)
        if message.shape == (8, 5):
            CHOSEN.append(tuple(chosen.tolist()))
        return chosen, values


@pytest.mark.parametrize(("call", "step", "seeds_of_this_step"), [(11, 0, 1), (15, 2, 2)])
def test_random_choices_after_a_restart_do_not_repeat_those_of_the_epochs_beginning(call, step, seeds_of_this_step):
    """Each step has a choice of its own; the step in which node 1 dies has two within an epoch."""
    CHOSEN.clear()
    strategy, plan = Synchronous(compressor=RecordedChoices(0.2)), FaultPlan().kill(1, at=("all_reduce", call))
    report = parallel.train(small_job(), strategy, nodes=3, on="simulation", faults=plan, elastic=True)
    assert [(restart.epoch, restart.step) for restart in report.restarts] == [(2, step)]
    assert len(set(CHOSEN)) == 3 * STEPS + seeds_of_this_step - 1
    assert len(set(report.digests)) == 1


class KilledAtTheEnd(Synchronous):
    """Node 0 dies by a real SIGKILL after its last minibatch, when the others need it no more."""

    def run(self, session):
        super().run(session)
        if session.nodes == 3 and session.comm.rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def test_if_a_node_dies_when_the_others_have_finished_nothing_is_done_again():
    job = small_job()
    report = parallel.train(job, KilledAtTheEnd(), nodes=3, on="processes", elastic=True)
    assert report.restarts == []
    assert list(report.failures) == [0]
    assert len(report.digests) == 2
    assert_equal_to_serial(report, job)
    assert report.checkpoint.within_epoch == {}


@pytest.mark.parametrize(
    ("strategy", "call", "rejoin"),
    [
        (LocalSGD(period=2), 4, True),
        (LocalSGD(period=2), 30, True),
        (Gossip(), 9, False),
        (parallel.ElasticAveraging(variant="synchronous"), 9, True),
    ],
    ids=repr,
)
def test_bytes_and_seconds_never_go_back_where_nodes_have_weights_of_their_own(strategy, call, rejoin):
    plan = FaultPlan().kill(0, at=call).kill(2, at=call + 1)
    settings = {"network": "1gbe", "faults": plan, "elastic": Elastic(rejoin=rejoin)}
    report = parallel.train(small_job(epochs=4), strategy, nodes=4, on="simulation", **settings)
    assert [row["epoch"] for row in report.history] == [1, 2, 3, 4]
    for name in ("bytes", "seconds", "steps"):
        values = [row[name] for row in report.history]
        assert values == sorted(values), name


@pytest.mark.parametrize("strategy", [Synchronous(), LocalSGD(period=2)], ids=repr)
def test_a_checkpoint_that_an_earlier_run_left_in_the_folder_is_not_gone_on_from(strategy, tmp_path):
    parallel.train(small_job(seed=2), Serial(), on="simulation", folder=tmp_path)
    job = small_job()
    plan = FaultPlan().kill(0, at=1).kill(1, at=1)
    settings = {"nodes": 2, "on": "simulation", "folder": tmp_path}
    report = parallel.train(job, strategy, faults=plan, elastic=Elastic(rejoin=True), **settings)
    assert report.restarts[0].source == "start"
    unharmed = parallel.train(job, strategy, nodes=2, on="simulation")
    assert np.array_equal(weights(report), weights(unharmed))


def test_a_resumed_run_does_not_go_on_from_the_checkpoint_of_another_run(tmp_path):
    job = small_job()
    parallel.train(replace(job, epochs=1), Serial(), on="simulation", folder=tmp_path / "mine")
    parallel.train(small_job(seed=2, epochs=2), Serial(), on="simulation", folder=tmp_path / "other")
    plan = FaultPlan().kill(0, at=("all_reduce", 2)).kill(1, at=("all_reduce", 2))
    settings = {"resume": tmp_path / "mine" / "checkpoint.npz", "folder": tmp_path / "other", "faults": plan}
    report = parallel.train(job, Synchronous(), nodes=2, on="simulation", elastic=Elastic(rejoin=True), **settings)
    assert_equal_to_serial(report, job)


def test_the_mean_loss_of_nodes_with_weights_of_their_own_has_all_survivors_samples():
    job, strategy = small_job(epochs=1), LocalSGD(period=2)
    plan = FaultPlan().kill(2, at=("all_reduce", 2))  # in the round after the epoch's last step
    report = parallel.train(job, strategy, nodes=3, on="simulation", faults=plan, elastic=True)
    whole = parallel.train(job, strategy, nodes=3, on="simulation")
    (loss, samples), (other_loss, other_samples) = (result.losses[0] for result in whole.results[:2])
    assert report.history[0]["loss"] == pytest.approx((loss + other_loss) / (samples + other_samples), rel=1e-12)


@pytest.mark.parametrize("strategy", [LocalSGD(period=2), Gossip()], ids=repr)
def test_if_only_nodes_that_joined_are_left_the_epochs_before_they_joined_keep_their_rows(strategy):
    job = small_job(epochs=5)
    operation = "all_reduce" if isinstance(strategy, LocalSGD) else "isend"
    first = 1 if isinstance(strategy, LocalSGD) else 2
    later = 3 if isinstance(strategy, LocalSGD) else 9
    plan = FaultPlan().kill(1, at=(operation, first)).kill(0, at=(operation, later))
    report = parallel.train(job, strategy, nodes=2, on="simulation", faults=plan, elastic=Elastic(rejoin=True))
    assert any(restart.joined for restart in report.restarts)
    assert [row["epoch"] for row in report.history] == [1, 2, 3, 4, 5]
    assert all(row["loss"] > 0 for row in report.history)


@pytest.mark.parametrize("call", [STEPS + 1, STEPS + 2])
def test_an_evaluation_that_a_death_ends_counts_as_no_training(call):
    settings = {"nodes": 2, "on": "simulation", "network": "1gbe"}
    plan = FaultPlan().kill(1, at=("all_reduce", call))
    report = parallel.train(small_job(), Synchronous(), faults=plan, elastic=True, **settings)
    unharmed = parallel.train(small_job(), Synchronous(), **settings)
    assert_equal_to_serial(report, small_job())
    assert [(restart.epoch, restart.step) for restart in report.restarts] == [(1, STEPS)]
    assert report.restarts[0].seconds == pytest.approx(unharmed.history[0]["seconds"], rel=1e-9)
    assert report.history[0]["bytes"] == unharmed.history[0]["bytes"]


def halved_each_epoch(optimizer, steps_per_epoch):
    return optim.StepLR(optimizer, step_size=steps_per_epoch, gamma=0.5)


class AveragedAfterEachPass(OneShotAveraging):
    """Nodes make passes of their own and average after each; they record the state with which a launch begins."""

    def run(self, session):
        epoch = None
        for batch in session.shard_batches():
            if epoch is None:
                states = session.optimizer.state_dict()["state"]
                session.record("begun", (session.optimizer.param_groups[0]["lr"], len(states)))
            session.model.zero_grad()
            session.local_loss(batch).backward()
            session.update()
            if epoch != session.epoch:
                session.set_weights(session.comm.all_reduce(session.weights(), op="mean"))
            epoch = session.epoch


def test_nodes_that_make_passes_of_their_own_keep_optimizer_and_schedule():
    job = small_job(epochs=6, schedule=halved_each_epoch)
    plan = FaultPlan().kill(2, at=("all_reduce", 3))
    report = parallel.train(job, AveragedAfterEachPass(), nodes=4, on="simulation", faults=plan, elastic=True)
    assert len(report.restarts) == 1
    assert report.recorded["begun"][0] == [(0.1, 0), (0.0125, 4)]  # momentum of four parameters
    rates = [row["lr"] for row in report.history]
    assert rates == sorted(rates, reverse=True)


def test_a_restart_says_how_many_steps_were_done_and_are_done_again():
    restart = Restart(2, 1, 0.5, {2: "killed"}, 0, 3, "mean", 1)
    assert str(restart).endswith("the mean of the survivors' weights, 1 step done again")
    assert str(restart).startswith("epoch 2, after 1 step: node 2 died (killed); 3 went on from")
    assert str(replace(restart, step=0, steps_lost=2)).startswith("epoch 2, after 0 steps:")
    assert str(replace(restart, steps_lost=2)).endswith("2 steps done again")
    assert str(replace(restart, steps_lost=0)).endswith("the mean of the survivors' weights")


@pytest.mark.parametrize(("on", "call"), [("simulation", 4), *exhaustively(("processes", 5))])
def test_messages_under_way_when_all_others_have_given_up_do_not_make_a_survivor_fail(on, call):
    strategy = Synchronous(overlap=True, bucket_mb=1e-4)
    plan = FaultPlan().kill(3, at=call)
    report = parallel.train(small_job(), strategy, nodes=5, on=on, faults=plan, elastic=True)
    assert_equal_to_serial(report, small_job())
    assert report.nodes == 4
