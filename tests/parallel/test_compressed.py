"""Compressed gradients: with messages that lose nothing, training is that of the gradients themselves."""

from functools import partial

import numpy as np
import pytest

from minidl import cluster, compress, nn, parallel
from minidl.compress.exchange import GradientNorm
from minidl.parallel import Synchronous
from minidl.parallel.gradients.compressed import CompressedGradients
from tests.parallel.jobs import blobs, small_job
from tests.parallel.test_strategies import Uneven


class Whole(compress.Compressor):
    """Loses nothing: the bytes of the array."""

    def encode(self, array):
        return compress.Message(np.ascontiguousarray(array).reshape(-1).view(np.uint8), array.shape, array.dtype)

    def decode(self, message):
        return message.data.copy().view(message.dtype).reshape(message.shape)


class Remembering(Whole):
    """Loses nothing, and checks when it is called; there is one for each parameter of each node."""

    is_stateful = True
    epochs, shape, norm = 0, None, None

    def begin_epoch(self, epoch):
        assert epoch == self.epochs
        self.epochs += 1

    def add_up(self, array, nodes, rank):
        assert nodes == 3
        self.norm = yield GradientNorm()
        return (yield from super().add_up(array, nodes, rank))

    def encode(self, array):
        assert self.epochs > 0
        assert self.shape in (None, array.shape)
        assert 0 < np.linalg.norm(array) < self.norm
        self.shape, self.norm = array.shape, None  # the norm is another one in every step
        return super().encode(array)


class Picky(Whole):
    def check(self, shape, dtype):
        if len(shape) < 2:
            raise ValueError(f"a matrix expected, got shape {shape}")


class OnlyWithoutMomentum(Whole):
    def check_optimizer(self, optimizer):
        if optimizer.param_groups[0]["momentum"]:
            raise ValueError("it must have no momentum of its own")


@pytest.mark.parametrize("overlap", [True, False])
def test_tied_frozen_and_unused_parameters_train_as_without_compression(overlap):
    job = small_job(model=Uneven, data=partial(blobs, 34))  # the last minibatch has 2 samples for 3 nodes
    report = parallel.train(job, Synchronous(compressor=Whole(), overlap=overlap), 3, on="simulation")
    truth = parallel.train(job, Synchronous(algorithm="ordered"), 3, on="simulation")
    assert report.digests == truth.digests


KEEPING = [
    compress.ErrorFeedback(compress.TopK(0.1)),
    compress.ErrorFeedback(compress.TopK(0.1, all_reduce="split")),
    compress.ErrorFeedback(compress.Sign()),
    compress.ErrorFeedback(compress.PowerSGD(1)),
    compress.DGC(0.1, warmup=(), momentum_correction=False),
]


def used_now_and_then(comm, compressor):
    """Two parameters, the second with a gradient in the first step, then on rank 0 alone, then nowhere."""
    parameters = [nn.Parameter(np.zeros((6, 5))), nn.Parameter(np.zeros((8, 4)))]
    gradients = CompressedGradients(parameters, comm, compressor)
    rng = np.random.default_rng((1, comm.rank))
    computed, received, has_gradient = np.zeros((8, 4)), np.zeros((8, 4)), []
    for step in range(5):
        for parameter in parameters:
            parameter.grad = rng.normal(size=parameter.shape)
        if step > 1 or (step == 1 and comm.rank > 0):
            parameters[1].grad = None
        else:
            computed += parameters[1].grad
        gradients.begin()
        gradients.finish()
        has_gradient.append(parameters[1].grad is not None)
        if has_gradient[-1]:
            received += parameters[1].grad
    keeper = gradients.compressors[0]  # of the last parameter
    kept = keeper.accumulated if isinstance(keeper, compress.DGC) else keeper.residual
    return computed, received, None if kept is None else kept.reshape(8, 4), has_gradient


@pytest.mark.parametrize(("compressor", "nodes"), [*((one, 3) for one in KEEPING), (KEEPING[0], 1)])
def test_what_was_kept_of_earlier_gradients_arrives_though_no_node_has_a_gradient_now(compressor, nodes):
    results = cluster.launch(used_now_and_then, args=(compressor,), nodes=nodes, on="simulation").results
    computed, received, kept, has_gradient = zip(*results, strict=True)
    assert all((one == received[0]).all() for one in received)
    assert np.abs(received[0] + sum(kept) - sum(computed)).max() < 1e-12
    assert has_gradient == ([True] * 5,) * nodes


def test_where_nothing_is_late_a_parameter_that_no_node_uses_stays_without_a_gradient():
    compressor = compress.ErrorFeedback(compress.TopK(1.0))
    results = cluster.launch(used_now_and_then, args=(compressor,), nodes=3, on="simulation").results
    assert [has_gradient for *_, has_gradient in results] == [[True, True, False, False, False]] * 3


@pytest.mark.parametrize("overlap", [True, False])
def test_a_compressor_hears_of_epochs_and_of_the_norm_of_the_whole_gradient(overlap):
    strategy = Synchronous(compressor=Remembering(), bucket_mb=1e-6, overlap=overlap)
    report = parallel.train(small_job(), strategy, 3, on="simulation")
    truth = parallel.train(small_job(), Synchronous(algorithm="ordered"), 3, on="simulation")
    assert report.digests == truth.digests


@pytest.mark.parametrize(
    ("compressor", "sentence"),
    [
        (Picky(), r"Picky does not fit the parameter 0\.bias: a matrix expected, got shape \(8,\)"),
        (OnlyWithoutMomentum(), "OnlyWithoutMomentum does not fit the optimizer: it must have no momentum"),
    ],
)
def test_what_does_not_fit_is_said_before_the_run(compressor, sentence):
    with pytest.raises(ValueError, match=sentence):
        parallel.train(small_job(), Synchronous(compressor=compressor), 2)
    with pytest.raises(TypeError, match=r"must be a compressor such as compress\.TopK\(0\.01\), got 'topk'"):
        Synchronous(compressor="topk")


class ReadOnly(Whole):
    def decode(self, message):
        return np.frombuffer(message.data.tobytes(), message.dtype).reshape(message.shape)


class Shared(Whole):
    def decode(self, message):
        return message.data.view(message.dtype).reshape(message.shape)


@pytest.mark.parametrize("compressor", [ReadOnly(), Shared()], ids=["read-only", "shared with the message"])
def test_decoded_arrays_may_be_read_only_or_share_memory_with_the_message(compressor):
    def program(comm):
        array = np.full((2, 3), comm.rank + 1.0)
        return compressor.begin_all_reduce(array, comm)(), array

    for rank, (total, array) in enumerate(cluster.launch(program, nodes=3, on="simulation").results):
        np.testing.assert_array_equal(total, np.full((2, 3), 6.0))
        np.testing.assert_array_equal(array, np.full((2, 3), rank + 1.0))
