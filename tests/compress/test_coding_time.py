"""CodingTime: charges the seconds of coding in a simulation and changes nothing else."""

import numpy as np
import pytest

from minidl import cluster, parallel
from minidl.compress import DGC, QSGD, CodingTime, ErrorFeedback, Half, PowerSGD, TopK
from tests.parallel.jobs import small_job
from tests.together import naming


def add_up(comm, compressor):
    own = np.random.default_rng(comm.rank).normal(size=(20, 10)).astype("float32")
    total = compressor.begin_all_reduce(own, comm)()
    return total, comm.bytes_sent, comm.now()


INNER = [TopK(0.1), TopK(0.1, all_reduce="split"), QSGD(7), Half(), PowerSGD(1), ErrorFeedback(TopK(0.1)), DGC(0.1)]


def test_sum_and_bytes_are_the_compressors_and_the_seconds_are_charged_per_number():
    for compressor in INNER:
        with naming(compressor):
            plain, charged = (
                cluster.launch(add_up, args=(one,), nodes=4, on="simulation").results
                for one in (compressor, CodingTime(compressor, 0.5, 0.25))
            )
            for (total, sent, seconds), (same, as_many, later) in zip(plain, charged, strict=True):
                np.testing.assert_array_equal(same, total)
                assert as_many == sent
                assert later - seconds == pytest.approx(200 * 0.75)


def test_a_training_step_takes_longer_by_encoding_and_decoding_of_every_parameter():
    def train(compressor):
        return parallel.train(small_job(epochs=1), parallel.Synchronous(compressor=compressor), 2, "simulation")

    numbers = sum(parameter.size for parameter in small_job().build_model().parameters())
    plain, charged = (train(one).history[-1] for one in (TopK(0.1), CodingTime(TopK(0.1), 1.0, 2.0)))
    assert charged["loss"] == plain["loss"]
    assert charged["seconds"] - plain["seconds"] == pytest.approx(plain["steps"] * 3.0 * numbers, rel=1e-3)


def test_the_state_is_that_of_the_compressor():
    assert CodingTime(ErrorFeedback(TopK(0.1))).keeps_errors
    assert not CodingTime(TopK(0.1)).is_stateful
    with pytest.raises(ValueError, match="DGC has momentum of its own"):
        parallel.train(small_job(), parallel.Synchronous(compressor=CodingTime(DGC(0.1))), 2, "simulation")


def test_only_compressors_and_seconds_of_at_least_zero():
    with pytest.raises(TypeError, match="wraps a compressor"):
        CodingTime(0.01)
    with pytest.raises(ValueError, match="decode_seconds"):
        CodingTime(TopK(0.1), 0.0, -1.0)
