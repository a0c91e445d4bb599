"""Signum: the majority's sign in one bit a number, with all that signs can and cannot do."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from minidl import cluster, data, nn, optim, parallel
from minidl.compress import ErrorFeedback, Lossless, QuantizedAllReduce, Signum
from minidl.parallel import Job, Synchronous
from tests.parallel.jobs import blobs, small_job
from tests.together import naming

pytestmark = pytest.mark.timeout(300)


def gradients(rank: int, steps: int = 4, shape: tuple[int, ...] = (3, 7)) -> np.ndarray:
    return np.random.default_rng(rank).normal(size=(steps, *shape))


def voting(comm, momentum, weight=lambda rank: 1.0):
    compressor = Signum(momentum)
    return [compressor.begin_all_reduce(g * weight(comm.rank), comm)() for g in gradients(comm.rank)]


def test_the_vote_is_the_sign_of_the_sum_of_the_signs_of_all_momenta():
    for nodes, momentum in product([1, 2, 3, 8], [0.0, 0.9]):
        with naming(nodes, momentum):
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


def test_a_message_takes_a_bit_a_number():
    for n in [1, 7, 8, 9, 64]:
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


def test_a_weight_whose_gradients_have_ended_comes_to_rest():
    """Rounded to the type, 0.9 times its smallest number is that number: the momentum must not stay there."""
    for dtype, steps in [("float16", 150), ("float32", 1000)]:
        with naming(dtype, steps):
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


def test_nodes_without_samples_in_the_last_minibatch_vote_to_the_bits_of_the_others():
    job = small_job(data=partial(blobs, 34), optimizer=partial(optim.SGD, lr=0.01), epochs=1)  # 34: 2 for 4 nodes
    report = parallel.train(job, Synchronous(compressor=Signum()), nodes=4, on="simulation")
    assert len(set(report.digests)) == 1


# ---- what it does to training ----


def digits_job(lr: float = 0.005, epochs: int = 3) -> Job:
    optimizer = partial(optim.SGD, lr=lr)
    return Job(partial(nn.models.MLP, 64, 32, 10), data.digits, optimizer, batch_size=64, epochs=epochs)


class Sabotaged(Synchronous):
    """Node 0's gradients point the wrong way, and are a thousand times too long."""

    def _backward(self, session, micro_batch):
        if len(micro_batch.x):
            (session.loss(micro_batch) * (-1000.0 if session.comm.rank == 0 else 1.0)).backward()


def test_digits_are_learnt_although_one_adversary_of_eight_votes_where_the_mean_gradient_is_lost():
    voted = parallel.train(digits_job(), Sabotaged(compressor=Signum()), nodes=8, on="simulation")
    assert voted.accuracy > 0.85
    mean = parallel.train(digits_job(lr=0.001, epochs=1), Sabotaged(), nodes=8, on="simulation")
    assert mean.accuracy < 0.2


# ---- what is refused ----


def test_an_optimizer_with_momentum_of_its_own_is_refused():
    job = small_job(optimizer=partial(optim.SGD, lr=0.1, momentum=0.9))
    with pytest.raises(ValueError, match="Signum has momentum of its own, and so has the optimizer"):
        parallel.train(job, Synchronous(compressor=Signum()), nodes=2, on="simulation")


def test_what_signum_cannot_do_is_refused():
    for wrapper in (ErrorFeedback, QuantizedAllReduce):
        with pytest.raises(ValueError, match=f"{wrapper.__name__}: Signum sends votes.*use Signum by itself"):
            wrapper(Signum())
    with pytest.raises(TypeError, match="Lossless codes the symbols of a quantizer"):
        Lossless(Signum())
    for momentum in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"Signum: momentum must be .*at least 0 and below 1"):
            Signum(momentum)
    with pytest.raises(ValueError, match="Signum compresses floating-point numbers, not int64"):
        Signum().encode(np.arange(3))


def test_a_run_with_votes_cannot_be_resumed():
    assert not Synchronous(compressor=Signum()).is_resumable


def test_what_has_no_sign_votes_plus_and_minus_in_turn():
    for momentum, gradient in [(0.9, 0.0), (0.0, 0.0), (0.0, np.nan)]:
        compressor = Signum(momentum)
        array = np.array([gradient, 1.0, -1.0])
        votes = [compressor.decode(compressor.encode(array)).tolist() for _ in range(4)]
        assert votes == [[1, 1, -1], [-1, 1, -1], [1, 1, -1], [-1, 1, -1]]
