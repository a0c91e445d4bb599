"""Error feedback: no gradient is lost, whatever the compressor and however the nodes add up."""

import copy

import numpy as np
import pytest

from minidl import cluster
from minidl.compress import (
    DGC,
    Compressor,
    ErrorFeedback,
    Message,
    PowerSGD,
    QuantizedAllReduce,
    RandomK,
    Signum,
    Threshold,
    TopK,
)
from tests.together import naming

pytestmark = pytest.mark.timeout(300)


def gradients(steps, shape=(6, 5), dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(dtype) for _ in range(steps)]


class FirstHalf(Compressor):
    """Sends the first half; the message is a view of the array."""

    def encode(self, array):
        return Message(array.reshape(-1)[: array.size // 2].view(np.uint8), array.shape, array.dtype)

    def decode(self, message):
        half = message.data.view(message.dtype)
        return np.concatenate([half, np.zeros_like(half)]).reshape(message.shape)


def test_what_is_sent_and_the_residual_are_the_accumulated_gradient_to_the_bit():
    for inner in (TopK(0.1), Threshold(1.0), RandomK(0.2), RandomK(0.2, seed=None), FirstHalf()):
        with naming(inner):
            compressor = ErrorFeedback(copy.deepcopy(inner))
            residual = np.zeros((6, 5), "float32")
            for gradient in gradients(50):
                sent = compressor.decode(compressor.encode(gradient))
                np.testing.assert_array_equal(sent + compressor.residual, gradient + residual)
                residual = compressor.residual.copy()


def test_nothing_of_a_single_number_is_lost_if_its_message_is_a_view_of_it():
    class Half(Compressor):
        def encode(self, array):
            return Message(array.reshape(1).view(np.uint8), array.shape, array.dtype)

        def decode(self, message):
            return message.data.view(message.dtype).reshape(message.shape) / 2

    compressor = ErrorFeedback(Half())
    sent = [float(compressor.decode(compressor.encode(np.array(8.0)))) for _ in range(3)]
    assert sent == [4, 6, 7]
    assert compressor.residual == 7


def test_without_it_what_stays_below_the_threshold_is_never_sent():
    plain, remembers = Threshold(1.0), ErrorFeedback(Threshold(1.0))
    small = np.full(3, 0.3)
    assert sum(plain.decode(plain.encode(small)).sum() for _ in range(10)) == 0
    sent = [remembers.decode(remembers.encode(small)).sum() for _ in range(10)]
    assert np.flatnonzero(sent).tolist() == [3, 7]  # every fourth time: 1.2 > 1
    assert sent[3] == pytest.approx(3 * 1.2)


def test_the_gradient_may_be_written_into_once_it_is_encoded():
    compressor, gradient = ErrorFeedback(TopK(0.5)), np.array([3.0, 2.0])
    compressor.encode(gradient)
    gradient[...] = 100
    np.testing.assert_array_equal(compressor.residual, [0, 2])


def reduce_twice(comm, compressor):
    compressor = copy.deepcopy(compressor)
    sums = []
    for gradient in gradients(2, seed=comm.rank, dtype="float64"):
        sums.append(compressor.begin_all_reduce(gradient, comm)())
    return sums, compressor.residual


def test_on_many_nodes_what_was_summed_and_all_residuals_are_all_gradients():
    for inner in [
        TopK(0.1),
        TopK(0.1, all_reduce="split"),
        TopK(0.1, all_reduce="recursive_doubling"),
        Threshold(1.0),
        RandomK(0.1),
    ]:
        with naming(inner):
            run = cluster.launch(reduce_twice, args=(ErrorFeedback(inner),), nodes=3, on="simulation")
            given = sum(gradient for rank in range(3) for gradient in gradients(2, seed=rank, dtype="float64"))
            sums = run.results[0][0]
            residuals = sum(residual for _, residual in run.results)
            np.testing.assert_allclose(sum(sums) + residuals, given, rtol=0, atol=1e-12)
            for others, _ in run.results[1:]:
                np.testing.assert_array_equal(others, sums)


@pytest.mark.parametrize("wrapper", [ErrorFeedback, QuantizedAllReduce])
def test_wrappers_pass_on_what_their_compressor_has_to_know(wrapper):
    calls = []

    class Curious(Compressor):
        def encode(self, array):
            return Message(array.view(np.uint8), array.shape, array.dtype)

        def begin_run(self, seed, name, rank):
            calls.append(("run", seed, name, rank))

        def begin_epoch(self, epoch):
            calls.append(("epoch", epoch))

        def check(self, shape, dtype):
            calls.append(("check", shape))

        def check_optimizer(self, optimizer):
            calls.append(("optimizer", optimizer))

    compressor = wrapper(Curious())
    assert compressor.is_stateful == (wrapper is ErrorFeedback)
    compressor.begin_run(1, "weight", 2)
    compressor.begin_epoch(3)
    compressor.check((2,), "float32")
    compressor.check_optimizer("sgd")
    assert calls == [("run", 1, "weight", 2), ("epoch", 3), ("check", (2,)), ("optimizer", "sgd")]


def test_an_encode_that_returns_no_message_is_refused_at_once():
    class Bytes(Compressor):
        def encode(self, array):
            return array.tobytes()

        def decode(self, message):
            raise AssertionError("not reached")

    sentence = r"Bytes: encode\(\) must return a compress\.Message, .* got bytes"
    for compressor in (Bytes(), ErrorFeedback(Bytes()), QuantizedAllReduce(Bytes())):
        with naming(compressor), pytest.raises(TypeError, match=sentence):
            next(compressor.add_up(np.ones(4), nodes=2, rank=0))
    with pytest.raises(TypeError, match=sentence):
        ErrorFeedback(Bytes()).encode(np.ones(4))


def test_what_cannot_be_wrapped_is_said():
    with pytest.raises(TypeError, match="ErrorFeedback wraps a compressor, such as TopK"):
        ErrorFeedback(TopK)
    for inner in (DGC(0.1), ErrorFeedback(TopK(0.1))):
        with pytest.raises(ValueError, match="keeps what it leaves out already"):
            ErrorFeedback(inner)


def test_a_run_begins_without_what_the_compressor_remembers_of_earlier_arrays():
    for make in [lambda: ErrorFeedback(TopK(0.5)), lambda: DGC(0.5), lambda: PowerSGD(1), lambda: RandomK(0.5), Signum]:
        with naming(make):
            used, fresh = make(), make()
            used.encode(np.ones((4, 5)))
            array = np.arange(42.0).reshape(6, 7) - 20
            for compressor in (used, fresh):
                compressor.begin_run(0, "weight", 0)
            np.testing.assert_array_equal(used.encode(array).data, fresh.encode(array).data)
