"""The master invariant: p nodes that agree on every gradient train exactly as one node does."""

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from minidl import cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import Serial, Synchronous
from minidl.parallel.gradients.buckets import fill
from minidl.parallel.tensor import ColumnLinear, RowLinear
from tests.parallel.jobs import blobs, momentum_sgd, normalized, small_job, two_layers, weights

pytestmark = pytest.mark.timeout(300)


def test_serial_learns():
    report = parallel.train(small_job(epochs=10), on="simulation")
    assert report.history[-1]["loss"] < 0.5 * report.history[0]["loss"]
    assert report.accuracy > 0.7  # three classes
    assert [row["epoch"] for row in report.history] == list(range(1, 11))
    assert report.history[-1]["lr"] == pytest.approx(0.1 * 0.5**5)


@pytest.mark.parametrize(
    ("nodes", "samples", "batch_size", "algorithm"),
    [
        (1, 60, 16, "ring"),
        (3, 60, 16, "ring"),
        (4, 34, 16, "ring"),  # the last minibatch has 2 samples for 4 nodes
        (5, 3, 8, "auto"),  # more nodes than samples
    ],
)
def test_synchronous_nodes_equal_one_node(nodes, samples, batch_size, algorithm):
    job = small_job(data=partial(blobs, samples), batch_size=batch_size)
    truth = parallel.train(job, Serial(), on="simulation")
    report = parallel.train(job, Synchronous(algorithm=algorithm), nodes=nodes, on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    assert len(set(report.digests)) == 1  # the same bits on every node
    assert len(report.digests) == nodes
    assert report.history[-1]["loss"] == pytest.approx(truth.history[-1]["loss"], rel=1e-10)
    assert report.accuracy == truth.accuracy


def test_in_float32_four_nodes_equal_one_node_to_a_ten_thousandth():
    model = partial(nn.models.MLP, 5, 8, 3)
    job = small_job(model=model, data=partial(blobs, dtype="float32"))
    truth, report = (parallel.train(job, *how, on="simulation") for how in ((), (Synchronous(), 4)))
    assert np.abs(weights(report) - weights(truth)).max() < 1e-4


def test_progress_reaches_the_caller_with_a_row_an_epoch():
    messages = []
    parallel.train(small_job(), Synchronous(), 2, "simulation", progress=messages.append)
    rows = [message.row for message in messages if message.row]
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert all(0 <= message.shares.waiting <= 1 for message in messages)


def test_buckets_hold_the_last_parameters_first_respect_the_limit_and_do_not_mix_dtypes():
    parameters = [nn.Parameter(np.zeros(n, dtype="float32")) for n in (10, 20, 30, 40)]
    sizes = [[p.size for p in bucket] for bucket in fill(parameters, limit=4 * 60)]
    assert sizes == [[40], [30, 20, 10]]
    assert [[p.size for p in bucket] for bucket in fill(parameters, limit=1)] == [[40], [30], [20], [10]]
    parameters = [nn.Parameter(np.zeros(2, dtype=dtype)) for dtype in ("float32", "float64", "float64")]
    assert [len(bucket) for bucket in fill(parameters, limit=1e6)] == [2, 1]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: parallel.train(small_job(), Serial(), nodes=2), "Serial trains on one node, not on 2"),
        (lambda: parallel.train(small_job(), nodes=0), "nodes must be at least 1"),
        (lambda: small_job(epochs=0), "epochs must be at least 1, got 0"),
        (lambda: small_job(batch_size=-1), "batch_size must be at least 1, got -1"),
        (lambda: small_job(seed=-1), "seed must be at least 0, got -1"),
        (lambda: Synchronous(bucket_mb=0), "bucket_mb must be above 0"),
        (lambda: Synchronous(bucket_mb=float("nan")), "bucket_mb must be above 0, got nan"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("kind", [Synchronous, parallel.Sharded, parallel.Pipeline, parallel.Hybrid])
def test_overlap_is_true_false_or_none(kind):
    assert [kind(overlap=each).overlap for each in (True, False, None)] == [True, False, None]
    with pytest.raises(TypeError, match="overlap must be True or False, got 'yes' of type str: None overlaps where"):
        kind(overlap="yes")


@pytest.mark.parametrize("call", [parallel.train, parallel.memory.live, parallel.memory.predicted])
def test_what_is_trained_is_a_job(call):
    with pytest.raises(TypeError, match=r"job must be a parallel\.Job, got <class .*: make one"):
        call(parallel.Job)


def test_a_number_of_nodes_is_a_whole_number():
    for nodes in (True, np.True_, 2.0, "2", None):
        with pytest.raises(TypeError, match="nodes must be a whole number of at least 1, got"):
            parallel.train(small_job(), Synchronous(), nodes=nodes)


def test_whole_numbers_of_numpy_do_for_a_job():
    given = small_job(batch_size=np.int64(8), epochs=np.int32(2), seed=np.uint8(3))
    assert given == small_job(batch_size=8, epochs=2, seed=3)
    assert {type(value) for value in (given.batch_size, given.epochs, given.seed)} == {int}
    assert small_job(batch_schedule=lambda epoch: np.int64(8)).smallest_batch == 8


def test_diverging_training_stops_with_epoch_step_rank_and_parameter():
    job = small_job(optimizer=partial(momentum_sgd, lr=1e200), schedule=None)
    with pytest.raises(parallel.NonFiniteLoss) as caught:
        parallel.train(job, Synchronous(), 2, "simulation")
    error = caught.value
    assert error.epoch == 1
    assert error.step >= 2
    assert error.rank in (0, 1)
    assert error.parameter in ("0.weight", "0.bias", "3.weight", "3.bias")
    assert f"epoch 1, step {error.step} on rank {error.rank}" in str(error)
    assert error.parameter in str(error)


@pytest.mark.parametrize("on_failure", ["raise", "continue"])
def test_a_loss_that_is_not_finite_on_all_nodes_is_said_as_such(on_failure):
    job = small_job(loss=lambda outputs, labels: F.cross_entropy(outputs, labels) * float("nan"))
    with pytest.raises(parallel.NonFiniteLoss, match="the loss is nan at epoch 1, step 1"):
        parallel.train(job, Synchronous(), nodes=2, on="simulation", on_failure=on_failure)


class OfEverySample(Synchronous):
    def _backward(self, session, micro_batch):
        session.loss(micro_batch).backward()


def test_a_share_without_samples_adds_nothing_to_the_gradient():
    job = small_job(data=partial(blobs, 17), batch_size=8)  # the last minibatch has one sample
    truth = parallel.train(job, on="simulation")
    report = parallel.train(job, OfEverySample(), nodes=2, on="simulation")
    assert np.abs(weights(report) - weights(truth)).max() < 1e-12


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda outputs, labels: None, "got None: end the function with return"),
        (lambda outputs, labels: 0.7, "got 0.7: use .mean()"),
        (lambda outputs, labels: outputs, r"got a Tensor of shape \(8, 3\): use .mean()"),
    ],
)
def test_a_loss_that_returns_no_number_is_named(loss, said):
    with pytest.raises(
        cluster.ClusterError, match="^TypeError: Job: loss must return a Tensor with one number.*" + said
    ):
        parallel.train(small_job(loss=loss, batch_size=8), on="simulation")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Synchronous, r"got the class Synchronous: write Synchronous\(\)"),
        ("synchronous", r"got 'synchronous': write parallel.Synchronous\(\)"),
        ("local_sgd(7)", r"got 'local_sgd\(7\)': write parallel.LocalSGD\(\)"),
        (3.7, "got 3.7: make one"),
    ],
)
def test_what_is_no_strategy_is_refused_and_the_message_says_what_to_write(given, said):
    with pytest.raises(TypeError, match="strategy must be a Strategy.*" + said):
        parallel.train(small_job(), given, nodes=2, on="simulation")
    with pytest.raises(TypeError, match="compare: mine must be a Strategy.*" + said):
        parallel.compare(small_job(), {"mine": given}, nodes=2)


def test_an_update_that_ruins_the_weights_is_noticed_before_it_is_saved(tmp_path):
    job = small_job(optimizer=partial(momentum_sgd, lr=1e308), schedule=None, batch_size=60)  # one step an epoch
    with pytest.raises(parallel.NonFiniteLoss, match="on the test set after epoch 1, step 1"):
        parallel.train(job, folder=tmp_path, on="simulation")
    assert parallel.Checkpoint.load(tmp_path / "checkpoint.npz").epoch == 0


class Uneven(nn.Module):
    """Tied weights, frozen weights, and weights that nothing uses, in the middle of others."""

    def __init__(self) -> None:
        self.first = nn.Linear(5, 6)
        self.unused = nn.Linear(4, 4)
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.second, self.third = nn.Linear(6, 6), nn.Linear(6, 6)
        self.third.weight = self.second.weight
        self.last = nn.Linear(6, 3)
        self.double()

    def forward(self, x):
        x = self.frozen(self.first(x).tanh()).tanh()
        return self.last(self.third(self.second(x).tanh()).tanh())


@pytest.mark.parametrize("bucket_mb", [1e-6, 1.0])
def test_tied_frozen_and_unused_parameters_train_as_on_one_node(bucket_mb):
    job = small_job(model=Uneven, data=partial(blobs, 34))  # the last minibatch has 2 samples for 3 nodes
    report = parallel.train(job, Synchronous(bucket_mb, "ordered"), 3, "simulation")
    truth, start = parallel.train(job, on="simulation"), job.build_model().state_dict()
    assert np.abs(weights(report) - weights(truth)).max() < 1e-10
    for name, array in report.checkpoint.model.items():  # weight decay would change them if they took part
        assert (array == start[name]).all() == name.startswith(("unused", "frozen"))
    assert report.digests[0] == parallel.train(job, Serial(shards=3), on="simulation").digests[0]


def line(n: int) -> data.Splits:
    x = np.random.default_rng(0).normal(size=(n + 10, 5))
    y = x @ np.arange(10.0).reshape(5, 2)
    return data.Splits(data.Dataset(x[:n], y[:n]), data.Dataset(x[n:], y[n:]))


def test_a_regression_trains_and_has_no_accuracy():
    optimizer = partial(optim.SGD, lr=0.5)
    model = lambda: nn.Linear(5, 2).double()  # noqa: E731
    job = small_job(model=model, data=partial(line, 60), loss=F.mse_loss, optimizer=optimizer, schedule=None, epochs=10)
    report = parallel.train(job, Synchronous(), 2, "simulation")
    assert report.history[-1]["test_loss"] < 1e-2
    assert np.isnan(report.accuracy)


@pytest.mark.parametrize(("strategy", "nodes"), [(Serial(), 1), (parallel.Sharded(3, algorithm="ordered"), 2)])
def test_a_module_given_as_the_model_is_left_as_it_is(strategy, nodes):
    model = two_layers()
    before = model.state_dict()
    parallel.train(small_job(model=model, epochs=1), strategy, nodes, "simulation").model()
    np.testing.assert_equal(model.state_dict(), before)


def test_the_speed_counts_samples_and_not_places_in_the_minibatch():
    """A single minibatch an epoch, larger than the training set, on nodes with a virtual clock."""
    messages, engine = [], cluster.Simulation(node=cluster.Node(1e4, 1e10))
    report = parallel.train(small_job(batch_size=1000), Synchronous(), 2, engine, progress=messages.append)
    rows = [message for message in messages if message.row]
    assert [one.samples_per_second for one in rows] == pytest.approx(
        [row["samples"] / row["seconds"] for row in report.history], rel=0.2
    )


def test_on_a_simulated_cluster_where_nothing_takes_time_training_takes_none():
    report = parallel.train(small_job(epochs=1), Synchronous(algorithm="ring"), nodes=3, on="simulation")
    assert report.seconds == 0.0
    assert report.history[-1]["samples_per_second"] == float("inf")


def test_where_only_messages_take_time_simulated_training_takes_what_the_formulas_say():
    alpha, beta = 50e-6, 8e-9
    sizes = [40, 8, 24, 3]  # of the model's parameters; float64
    steps = 4  # of 16, 16, 16 and 12 samples
    chunk = 8 * -(-(sum(sizes) + len(sizes)) // 4)  # with the gradients travels who has one
    broadcasts = sum(2 * (alpha + 8 * size * beta) for size in sizes)
    ring = 2 * 3 * (alpha + chunk * beta)
    losses = sum(2 * (alpha + 8 * numbers * beta) for numbers in (2, 5))  # at the end of the epoch; recursive doubling
    report = parallel.train(
        small_job(epochs=1),
        Synchronous(algorithm="ring"),
        nodes=4,
        on=cluster.Simulation(cluster.Network(alpha, beta), cluster.Node(float("inf"), float("inf"))),
    )
    assert report.seconds == pytest.approx(broadcasts + steps * ring + losses, rel=1e-12)


def unseeded():
    model = nn.Sequential(nn.Linear(5, 3)).double()
    model[0].weight.copy_(np.random.default_rng().normal(size=(3, 5)))
    return model


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("strategy", "on"),
    [
        (parallel.LocalSGD(), "processes"),
        (parallel.Pipeline(1, 1), "simulation"),
        (parallel.Hybrid(tp=3, layout={}), "simulation"),
    ],
)
def test_ranks_that_begin_with_different_weights_are_refused_and_named(strategy, on):
    job = small_job(model=unseeded)
    with pytest.raises(cluster.CollectiveMismatch, match=r"^rank \d and rank.* \d have different initial weights: "):
        parallel.train(job, strategy, 3, on=on)
    parallel.train(job, Synchronous(), 2, on=on)  # begins with those of rank 0


class Looping(nn.Module):
    """Never returns, in training or in evaluation alone."""

    def __init__(self, training: bool) -> None:
        self.loops = training

    def forward(self, x):
        while self.training == self.loops:
            time.sleep(0.01)
        return x


def looping(training: bool) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), Looping(training), nn.Linear(8, 3)).double()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("strategy", "on", "training"),
    [
        (parallel.Pipeline(2, 2), "simulation", True),  # whose cuts are chosen before the ranks start
        (parallel.Pipeline(2, 2, cuts=[2]), cluster.Simulation(isolated=True), True),
        (Synchronous(), "processes", True),
        (parallel.LocalSGD(), "simulation", False),  # evaluated by the calling process, after the run
        (parallel.ParameterServer(), "simulation", False),
        (parallel.Hybrid(tp=2, micro_batches=2, layout={"0": ColumnLinear, "2": RowLinear}), "simulation", False),
    ],
    ids=["before the ranks start", "isolated", "processes", "evaluation", "with a server", "a layout that is checked"],
)
def test_a_deadline_ends_a_run_whose_layer_loops(strategy, on, training):
    with pytest.raises(cluster.CommTimeout, match=r"the run did not finish within its deadline of 1\.3 s"):
        parallel.train(small_job(model=partial(looping, training)), strategy, 2, on=on, deadline=1.3)


class OneByOne(data.Dataset):
    """Reads one sample at a time, as a dataset of PyTorch."""

    def __getitem__(self, index):
        i = int(index)
        return 2 * self.x[i], self.y[i]


def read_one_by_one():
    return data.Splits(*(OneByOne(each.x / 2, each.y) for each in blobs()))


@pytest.mark.parametrize(
    ("strategy", "nodes", "model"),
    [
        (Serial(), 1, two_layers),
        (Synchronous(batch_norm="synchronized"), 13, normalized),  # the last minibatch has 12 samples
        (parallel.SufficientFactors(hybrid=True), 3, two_layers),
        (parallel.Pipeline(2, 2), 2, two_layers),
        (parallel.Hybrid(tp=2, micro_batches=2, layout={"0": ColumnLinear, "3": RowLinear}), 2, two_layers),
        (parallel.Gossip(), 3, two_layers),
    ],
)
def test_a_dataset_that_reads_one_sample_at_a_time_is_trained_on_as_any_other(strategy, nodes, model):
    job = small_job(model=model, epochs=1)
    truth, report = (
        parallel.train(each, strategy, nodes, "simulation") for each in (job, replace(job, data=read_one_by_one))
    )
    np.testing.assert_array_equal(weights(report), weights(truth))
    assert report.history[-1]["test_loss"] == truth.history[-1]["test_loss"]
