"""Random choices in a run: a stream for each parameter, epoch and draw, shared by all nodes or a node's own."""

import copy

import numpy as np

from minidl import cluster, nn, parallel
from minidl.compress import QSGD, Lossless, PowerSGD, QuantizedAllReduce, RandomK, TernGrad
from minidl.parallel.gradients.compressed import CompressedGradients
from tests.parallel.jobs import small_job
from tests.together import naming

X = np.random.default_rng(0).normal(size=(12, 10))

COMMON = [RandomK(0.2), RandomK(0.2, seed=3), PowerSGD(1, warm_start=False), PowerSGD(1)]
OWN = [QSGD(2), TernGrad(), RandomK(0.2, seed=None), Lossless(QSGD(2)), QuantizedAllReduce(QSGD(2))]


def choices(compressor, seed=0, name="weight", rank=0, epoch=0, draws=1):
    """What this copy makes of X, time after time."""
    own = copy.deepcopy(compressor)
    own.begin_run(seed, name, rank)
    own.begin_epoch(epoch)
    return [own.decode(own.encode(X)).tobytes() for _ in range(draws)]


def test_parameters_seeds_and_epochs_have_choices_of_their_own():
    for compressor in [*COMMON, *OWN]:
        with naming(compressor):
            places = [{}, {"seed": 1}, {"name": "bias"}, {"epoch": 1}]
            assert len({choices(compressor, **place)[0] for place in places}) == len(places)


def test_an_epoch_that_is_begun_again_has_the_same_choices():
    for compressor in [*COMMON, *OWN]:
        with naming(compressor):
            again = copy.deepcopy(compressor)
            again.begin_run(5, "weight", 1)
            again.begin_epoch(1)
            again.decode(again.encode(X))
            if isinstance(compressor, PowerSGD) and compressor.warm_start:
                continue  # begins where the last epoch ended: not resumable, and says so
            again.begin_epoch(2)
            assert [again.decode(again.encode(X)).tobytes() for _ in range(2)] == choices(
                compressor, 5, "weight", 1, 2, 2
            )


def test_common_choices_are_those_of_all_ranks_and_own_ones_are_not():
    for compressor in [*COMMON, *OWN]:
        with naming(compressor):
            assert (choices(compressor, rank=0) == choices(compressor, rank=1)) == (compressor in COMMON)


def test_every_step_draws_anew():
    for compressor in [RandomK(0.2), PowerSGD(1, warm_start=False), *OWN]:
        with naming(compressor):
            assert len(set(choices(compressor, draws=5))) == 5


def test_a_compressors_own_seed_counts_too():
    assert choices(RandomK(0.2)) != choices(RandomK(0.2, seed=1))
    assert choices(PowerSGD(1)) != choices(PowerSGD(1, seed=1))


def test_a_run_that_is_resumed_has_the_bits_of_one_that_was_never_stopped(tmp_path):
    strategy = parallel.Synchronous(compressor=QSGD(7, 64))
    truth = parallel.train(small_job(epochs=3), strategy, 2, on="simulation")
    parallel.train(small_job(epochs=2), strategy, 2, on="simulation", folder=tmp_path)
    resumed = parallel.train(small_job(epochs=3), strategy, 2, on="simulation", resume=tmp_path / "checkpoint.npz")
    assert resumed.digests == truth.digests


def test_the_seed_of_the_job_reaches_the_choices():
    """From the same weights and in the same order of samples, only the choices differ."""

    def first_entries(comm, seed):
        parameters = [nn.Parameter(np.zeros(50)), nn.Parameter(np.zeros(50))]
        gradients = CompressedGradients(parameters, comm, RandomK(0.2), names=["a", "b"], seed=seed)
        for parameter in parameters:
            parameter.grad = np.ones(50)
        gradients.begin()
        gradients.finish()
        return [np.flatnonzero(parameter.grad).tolist() for parameter in parameters]

    runs = [cluster.launch(first_entries, (seed,), nodes=2, on="simulation").results for seed in (0, 1)]
    assert all(run[0] == run[1] for run in runs)
    assert len({tuple(entries) for run in runs for entries in run[0]}) == 4
