"""CodingTime: charges the seconds of coding in a simulation and changes nothing else."""

import numpy as np
import pytest

from minidl import cluster, data, nn, optim, parallel
from minidl.compress import DGC, QSGD, CodingTime, ErrorFeedback, Half, PowerSGD, TopK


def add_up(comm, compressor):
    own = np.random.default_rng(comm.rank).normal(size=(20, 10)).astype("float32")
    total = compressor.begin_all_reduce(own, comm)()
    return total, comm.bytes_sent, comm.now()


INNER = [TopK(0.1), TopK(0.1, all_reduce="split"), QSGD(7), Half(), PowerSGD(1), ErrorFeedback(TopK(0.1)), DGC(0.1)]


@pytest.mark.parametrize("compressor", INNER, ids=repr)
def test_sum_and_bytes_are_the_compressors_and_the_seconds_are_charged_per_number(compressor):
    plain, charged = (
        cluster.launch(add_up, args=(one,), nodes=4, on="simulation").results
        for one in (compressor, CodingTime(compressor, 0.5, 0.25))
    )
    for (total, sent, seconds), (same, as_many, later) in zip(plain, charged, strict=True):
        np.testing.assert_array_equal(same, total)
        assert as_many == sent
        assert later - seconds == pytest.approx(200 * 0.75)


def job(optimizer):
    train, test = data.digits()
    few = data.Splits(data.Dataset(*train[:64]), test)
    return parallel.Job(lambda: nn.models.MLP(64, 8, 10), few, optimizer, batch_size=32, epochs=1)


def test_a_training_step_takes_longer_by_encoding_and_decoding_of_every_parameter():
    of = job(lambda parameters: optim.SGD(parameters, lr=0.1))
    numbers = sum(parameter.size for parameter in of.build_model().parameters())

    def train(compressor):
        return parallel.train(of, parallel.Synchronous(compressor=compressor), 2, "simulation")

    plain, charged = train(TopK(0.1)), train(CodingTime(TopK(0.1), 1.0, 2.0))
    assert charged.history[-1]["loss"] == plain.history[-1]["loss"]
    later = charged.history[-1]["seconds"] - plain.history[-1]["seconds"]
    assert later == pytest.approx(2 * 3.0 * numbers, rel=1e-3)  # two steps


def test_the_state_is_that_of_the_compressor():
    assert CodingTime(ErrorFeedback(TopK(0.1))).keeps_errors
    assert not CodingTime(TopK(0.1)).is_stateful
    with pytest.raises(ValueError, match="DGC has momentum of its own"):
        of = job(lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9))
        parallel.train(of, parallel.Synchronous(compressor=CodingTime(DGC(0.1))), 2, "simulation")


def test_only_compressors_and_seconds_of_at_least_zero():
    with pytest.raises(TypeError, match="wraps a compressor"):
        CodingTime(0.01)
    with pytest.raises(ValueError, match="decode_seconds"):
        CodingTime(TopK(0.1), 0.0, -1.0)
