"""Signum: the majority's sign in one bit a number, with all that signs can and cannot do."""

from functools import partial

import numpy as np
import pytest

from minidl import cluster, data, nn, optim, parallel
from minidl.compress import ErrorFeedback, Lossless, QuantizedAllReduce, Signum
from minidl.parallel import Job, Synchronous
from tests.parallel.jobs import blobs, small_job

pytestmark = pytest.mark.timeout(300)


def gradients(rank: int, steps: int = 4, shape: tuple[int, ...] = (3, 7)) -> np.ndarray:
    return np.random.default_rng(rank).normal(size=(steps, *shape))


def voting(comm, momentum, weight=lambda rank: 1.0):
    compressor = Signum(momentum)
    return [compressor.begin_all_reduce(g * weight(comm.rank), comm)() for g in gradients(comm.rank)]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nodes", [1, 2, 3, 8])
def test_the_vote_is_the_sign_of_the_sum_of_the_signs_of_all_momenta(nodes, momentum):
    run = cluster.launch(voting, args=(momentum,), nodes=nodes, on="simulation")
    momenta = np.zeros((nodes, 3, 7))
    for step in range(4):
        for rank in range(nodes):
            momenta[rank] = momentum * momenta[rank] + (1 - momentum) * gradients(rank)[step]
        expected = np.sign(np.sign(momenta).sum(axis=0))
        for votes in run.results:
            np.testing.assert_array_equal(votes[step], expected)
    assert (nodes % 2 == 0) == any((vote == 0).any() for vote in run.results[0])  # ties: of even numbers only


def test_the_vote_does_not_depend_on_the_positive_weights_of_the_nodes():
    equal = cluster.launch(voting, args=(0.9,), nodes=3, on="simulation").results[0]
    weighted = cluster.launch(voting, args=(0.9, lambda rank: 10.0**rank), nodes=3, on="simulation").results[0]
    np.testing.assert_array_equal(equal, weighted)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64])
def test_a_message_takes_a_bit_a_number(n):
    for dtype in ("float32", "float64"):
        message = Signum().encode(np.ones(n, dtype))
        assert message.nbytes == -(-n // 8)
        assert Signum().decode(message).dtype == dtype


def test_the_ledger_has_a_bit_a_number_for_every_other_node():
    def program(comm):
        Signum().begin_all_reduce(np.ones(8000, np.float32), comm)()

    for ledger in cluster.launch(program, nodes=4, on="simulation").trace.ledger():
        assert ledger["all_gather"].nbytes == 3 * 1000


def test_an_array_without_numbers_and_a_single_number_are_voted_on():
    c = Signum()
    assert c.decode(c.encode(np.zeros((0, 3)))).shape == (0, 3)
    c = Signum()
    assert c.decode(c.encode(np.array(-2.0))).tolist() == -1.0


def test_a_number_that_is_zero_votes_plus_and_minus_in_turn():
    c = Signum()
    votes = [c.decode(c.encode(np.array([0.0, 1.0, -1.0]))).tolist() for _ in range(4)]
    assert votes == [[1, 1, -1], [-1, 1, -1], [1, 1, -1], [-1, 1, -1]]


@pytest.mark.parametrize("nodes", [2, 3])
def test_a_weight_without_gradient_stays_within_a_step_of_where_it_is(nodes):
    """The first of five inputs is always 0, and so is the gradient of its weights: 100 steps go nowhere."""

    def dead() -> data.Splits:
        splits = blobs()
        for part in (splits.train, splits.test):
            part.x[:, 0] = 0.0
        return splits

    model = partial(nn.models.MLP, 5, 4, 3)
    job = small_job(
        model=lambda: model().double(), data=dead, optimizer=partial(optim.SGD, lr=0.01), schedule=None, epochs=25
    )
    report = parallel.train(job, Synchronous(compressor=Signum()), nodes=nodes, on="simulation")
    [name, after] = next(item for item in report.checkpoint.model.items() if item[1].shape == (4, 5))
    before = job.build_model().state_dict()[name]
    assert report.history[-1]["steps"] == 100
    assert np.abs(after[:, 0] - before[:, 0]).max() < 0.011
    assert np.abs(after[:, 1:] - before[:, 1:]).max() > 0.1


@pytest.mark.parametrize(("dtype", "steps"), [("float16", 150), ("float32", 1000)])
def test_a_weight_whose_gradients_have_ended_comes_to_rest(dtype, steps):
    """Rounded to the type, 0.9 times its smallest number is that number: the momentum must not stay there."""
    c = Signum()
    c.encode(np.array([1.0, -1.0], dtype))
    votes = [c.decode(c.encode(np.zeros(2, dtype))) for _ in range(steps + 10)]
    assert np.array_equal(votes[:100], np.broadcast_to([1.0, -1.0], (100, 2)))
    assert np.abs(np.sum(votes[steps:], axis=0)).max() == 0


class HalfUsed(nn.Module):
    def __init__(self) -> None:
        self.used, self.unused = nn.Linear(5, 3), nn.Linear(5, 3)
        self.double()

    def forward(self, x):
        return self.used(x)


def test_a_parameter_that_no_node_uses_stays_as_it_is():
    job = small_job(model=HalfUsed, optimizer=partial(optim.SGD, lr=0.01, weight_decay=0.1))
    report = parallel.train(job, Synchronous(compressor=Signum()), nodes=3, on="simulation")
    before = job.build_model().state_dict()
    np.testing.assert_array_equal(report.checkpoint.model["unused.weight"], before["unused.weight"])
    assert np.abs(report.checkpoint.model["used.weight"] - before["used.weight"]).max() > 0.01


def test_every_step_moves_every_weight_by_the_rate_or_not_at_all():
    job = small_job(optimizer=partial(optim.SGD, lr=0.125), schedule=None, batch_size=60, epochs=1)  # one step
    report = parallel.train(job, Synchronous(compressor=Signum()), nodes=2, on="simulation")
    before = job.build_model().state_dict()
    moved = np.concatenate([(report.checkpoint.model[name] - before[name]).ravel() for name in before])
    assert set(moved.round(12).tolist()) == {-0.125, 0.0, 0.125}  # of two nodes' votes, some are ties


@pytest.mark.parametrize("n", [60, 34])  # 34: two nodes of four have no samples in the last minibatch
def test_processes_vote_to_the_bits_of_the_simulation(n):
    job = small_job(data=partial(blobs, n), optimizer=partial(optim.SGD, lr=0.01), epochs=1)
    reports = [
        parallel.train(job, Synchronous(compressor=Signum()), nodes=4, on=on) for on in ("processes", "simulation")
    ]
    assert set(reports[0].digests) == set(reports[1].digests)
    assert len(set(reports[0].digests)) == 1


# ---- what it does to training ----


def digits_job(lr: float = 0.002, epochs: int = 8) -> Job:
    optimizer = partial(optim.SGD, lr=lr)
    return Job(partial(nn.models.MLP, 64, 32, 10), data.digits, optimizer, batch_size=64, epochs=epochs)


@pytest.mark.parametrize("nodes", [1, 4])
def test_digits_are_learnt(nodes):
    report = parallel.train(digits_job(), Synchronous(compressor=Signum()), nodes=nodes, on="simulation")
    assert report.accuracy > 0.92
    assert len(set(report.digests)) == 1


class Sabotaged(Synchronous):
    """Node 0's gradients point the wrong way, and are a thousand times too long."""

    def _backward(self, session, micro_batch):
        if len(micro_batch.x):
            (session.loss(micro_batch) * (-1000.0 if session.comm.rank == 0 else 1.0)).backward()


def test_one_adversary_of_eight_is_outvoted_where_the_mean_gradient_is_lost():
    voted = parallel.train(digits_job(lr=0.005, epochs=4), Sabotaged(compressor=Signum()), nodes=8, on="simulation")
    assert voted.accuracy > 0.9
    mean = parallel.train(digits_job(lr=0.001, epochs=1), Sabotaged(), nodes=8, on="simulation")
    assert mean.accuracy < 0.2


@pytest.mark.parametrize(("nodes", "momentum", "is_misled"), [(1, 0.0, True), (5, 0.0, True), (5, 0.9, False)])
def test_a_skewed_gradient_leads_votes_without_momentum_to_the_maximum(nodes, momentum, is_misled):
    """x/4 on [-1, 1], whose stochastic gradient is 4 in a quarter of all cases and -1 else: its mean is 1/4."""
    random = np.random.default_rng(0)
    compressors, x, sgd = [Signum(momentum) for _ in range(nodes)], 0.0, 0.0
    ends = []
    for _ in range(4000):
        drawn = np.where(random.random(nodes) < 0.25, 4.0, -1.0)
        votes = [c.decode(c.encode(np.array([g])))[0] for c, g in zip(compressors, drawn, strict=True)]
        x = float(np.clip(x - 0.01 * np.sign(sum(votes)), -1, 1))
        sgd = float(np.clip(sgd - 0.01 * drawn.mean(), -1, 1))
        ends.append((x, sgd))
    late = np.array(ends[1000:]).mean(axis=0)
    assert late[0] > 0.95 if is_misled else late[0] < -0.9
    assert late[1] < -0.75


# ---- what is refused ----


@pytest.mark.parametrize("optimizer", [partial(optim.SGD, lr=0.1, momentum=0.9), optim.Adam])
def test_an_optimizer_with_momentum_of_its_own_is_refused(optimizer):
    with pytest.raises(ValueError, match="Signum has momentum of its own, and so has the optimizer"):
        parallel.train(small_job(optimizer=optimizer), Synchronous(compressor=Signum()), nodes=2, on="simulation")


@pytest.mark.parametrize("wrapper", [ErrorFeedback, QuantizedAllReduce])
def test_signum_cannot_be_wrapped(wrapper):
    with pytest.raises(ValueError, match=f"{wrapper.__name__}: Signum sends votes.*use Signum by itself"):
        wrapper(Signum())


def test_votes_are_no_quantizers_symbols():
    with pytest.raises(TypeError, match="Lossless codes the symbols of a quantizer"):
        Lossless(Signum())


@pytest.mark.parametrize("momentum", [-0.1, 1.0, float("nan")])
def test_a_momentum_that_cannot_be_is_refused(momentum):
    with pytest.raises(ValueError, match=r"Signum: momentum must be .*at least 0 and below 1"):
        Signum(momentum)


def test_whole_numbers_are_refused():
    with pytest.raises(ValueError, match="Signum compresses floating-point numbers, not int64"):
        Signum().encode(np.arange(3))


def test_a_run_with_votes_cannot_be_resumed():
    assert not Synchronous(compressor=Signum()).is_resumable


@pytest.mark.parametrize("gradient", [np.nan, 0.0])
def test_what_has_no_sign_votes_plus_and_minus_in_turn(gradient):
    compressor = Signum(momentum=0.0)
    votes = [compressor.decode(compressor.encode(np.array([gradient, 1.0]))).tolist() for _ in range(4)]
    assert votes == [[1, 1], [-1, 1], [1, 1], [-1, 1]]
