"""Random streams: no two purposes, seeds, replicas, epochs, steps, micro-batches, layers or calls share numbers."""

from __future__ import annotations

import ast
import itertools
import sys
from collections import defaultdict
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import minidl
from minidl import compress, nn, parallel, random
from minidl import functional as F
from minidl.random import Purpose, stream
from tests.parallel.jobs import blobs, small_job
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

SHARED_BY_ALL_RANKS = {Purpose.WEIGHTS, Purpose.SHUFFLE, Purpose.SHARDS, Purpose.COMMON_CHOICE, Purpose.POWER_ITERATION}
SHARED_BY_ALL_RANKS |= {Purpose.SHARD_SHUFFLE, Purpose.MATCHING, Purpose.QUORUM}  # each rank deals all shards
FROZEN = {
    "shuffle": (935088468408734716, 1950465228206545394, 4342153298196378832, 3439488269458300611),
    "dropout": (1351079615952979152, 2394528426144671545, 3908860702038722866, 1858957124373302477),
    "manual": (4537529895794443687, 4474566889474028258, 4419811710971719454, 818177737776043071),
}


def first_numbers(generator: np.random.Generator) -> tuple[int, ...]:
    return tuple(generator.integers(2**62, size=4).tolist())


# ---- streams ----


def test_different_arguments_give_different_streams_whatever_their_number_and_size():
    seeds = [0, 1, 2**32, 2**64, 2**128, 2**128 + 1]
    places = [(), (0,), (0, 0), (0, 0, 0), (0,) * 8, (1,), (2**32,), (0, 1), (1, 0), ("0",), ("",), ("a", "b"), ("ab",)]
    all_arguments = itertools.product(Purpose, seeds, places)
    drawn = [first_numbers(stream(purpose, seed, *place)) for purpose, seed, place in all_arguments]
    assert len(set(drawn)) == len(drawn) == len(Purpose) * len(seeds) * len(places)


def test_a_stream_depends_on_its_arguments_alone_whatever_their_type():
    expected = first_numbers(stream(Purpose.SHUFFLE, 3, 1, "weight"))
    assert first_numbers(stream(Purpose.SHUFFLE, 3, 1, "weight")) == expected
    assert first_numbers(stream(Purpose.SHUFFLE, np.int64(3), np.uint8(1), np.str_("weight"))) == expected


def test_a_seed_that_is_no_whole_number_is_refused():
    for seed in (0.5, np.float64(1.0), "1.0"):
        with pytest.raises(TypeError):
            stream(Purpose.SHUFFLE, seed)
    for seed in (0.5, "2", True, None, (0, 1.5)):
        with pytest.raises(TypeError, match="seed must be a whole number, got"):
            random.manual_seed(seed)


def test_streams_are_frozen():
    """A release that changes these numbers changes every figure of the course: do not."""
    assert first_numbers(stream(Purpose.SHUFFLE, 0, 0)) == FROZEN["shuffle"]
    assert first_numbers(stream(Purpose.DROPOUT, 0, 1, 2, 3, 0, "drop", 0)) == FROZEN["dropout"]
    assert first_numbers(random.manual_seed(0)) == FROZEN["manual"]


def test_the_library_makes_no_generator_but_by_a_stream():
    """Apart from `generator()` without a seed, whose entropy is the operating system's, and from the core."""
    makers, made = ("default_rng", "RandomState", "SeedSequence", "PCG64"), []
    root = Path(minidl.__file__).parent
    for path in [path for path in root.rglob("*.py") if root / "mini" not in path.parents]:
        if any(maker in (text := path.read_text()) for maker in makers):  # as an attribute, not in a docstring
            made += [path.name for node in ast.walk(ast.parse(text)) if getattr(node, "attr", None) in makers]
    assert made == ["random.py"] * 2


# ---- the generator of a context ----


def test_making_a_model_or_training_in_this_process_leaves_the_caller_s_generator_alone():
    random.manual_seed(5)
    expected = first_numbers(random.generator())
    random.manual_seed(5)
    weights = small_job().build_model().state_dict()
    parallel.train(small_job(epochs=1), parallel.Synchronous(), nodes=2, on="simulation")
    assert first_numbers(random.generator()) == expected
    again = small_job().build_model().state_dict()  # whatever was drawn before
    assert all(np.array_equal(weights[name], again[name]) for name in weights)


def test_every_initialisation_draws_from_a_generator_of_its_own():
    """So the size of one layer does not change the next, and half a model can be made as the whole would make it."""
    random.manual_seed(0)
    small, after_small = nn.Linear(3, 4), nn.Linear(5, 6)
    random.manual_seed(0)
    large, after_large = nn.Linear(300, 4), nn.Linear(5, 6)
    np.testing.assert_array_equal(after_small.weight.numpy(), after_large.weight.numpy())
    assert small.weight.numpy().reshape(-1)[0] != after_small.weight.numpy().reshape(-1)[0]
    assert large.weight.size == 1200


# ---- masks in a run ----


class Twice(nn.Module):
    """Two dropout layers, one of which is called twice."""

    def __init__(self):
        self.first, self.drop, self.again = nn.Linear(5, 8), nn.Dropout(0.5), nn.Dropout(0.5)
        self.last = nn.Linear(8, 3)
        self.double()

    def forward(self, x):
        return self.last(self.again(self.drop(self.drop(self.first(x)))))


@pytest.fixture
def drawn(monkeypatch):
    """Every stream that is made, with the code that asked for it counted: {arguments: times}."""
    made = defaultdict(int)

    def recording(purpose, seed, *coordinates):
        made[(purpose, seed, *coordinates)] += 1
        return stream(purpose, seed, *coordinates)

    for name, module in list(sys.modules.items()):
        if name.startswith("minidl.") and getattr(module, "stream", None) is stream:
            monkeypatch.setattr(module, "stream", recording)
    return made


STRATEGIES = {
    "synchronous": (parallel.Synchronous(accumulate=2), 3),
    "asynchronous gossip": (parallel.Gossip(asynchronous=True), 4),
    "random k of each rank": (parallel.Synchronous(compressor=compress.RandomK(0.5, seed=None)), 3),
    "PowerSGD": (parallel.Synchronous(compressor=compress.PowerSGD(1, warm_start=False)), 3),
    "serial in shards": (parallel.Serial(shards=3), 1),
    "elastic averaging": (parallel.ElasticAveraging(), 3),
    "backup workers": (parallel.BackupWorkers(), 3),
    "QSGD": (parallel.Synchronous(compressor=compress.QSGD(4)), 3),
}


@pytest.mark.parametrize("shards", ["shuffled", *exhaustively("fixed")])
@pytest.mark.parametrize("name", [*list(STRATEGIES)[:4], *exhaustively(*list(STRATEGIES)[4:])])
def test_no_two_draws_of_a_run_share_a_stream_but_where_all_ranks_do(drawn, name, shards):
    strategy, nodes = STRATEGIES[name]
    job = small_job(model=Twice, data=blobs, shards=shards, seed=3, epochs=2)
    parallel.train(job, strategy, nodes, on="simulation")
    assert any(arguments[0] is Purpose.DROPOUT for arguments in drawn)
    twice = {arguments: times for arguments, times in drawn.items() if times > 1}
    assert not [arguments for arguments in twice if arguments[0] not in SHARED_BY_ALL_RANKS], twice
    numbers = {first_numbers(stream(*arguments)) for arguments in drawn}
    assert len(numbers) == len(drawn)


def test_every_call_of_every_layer_in_every_step_on_every_replica_has_a_mask_of_its_own(drawn):
    job = small_job(model=Twice, batch_size=20, epochs=2)
    parallel.train(job, parallel.Synchronous(accumulate=2), 3, on="simulation")
    masks = [arguments[1:] for arguments in drawn if arguments[0] is Purpose.DROPOUT]
    calls = [("drop", 0), ("drop", 1), ("again", 0)]
    places = itertools.product([job.seed], range(2), range(3), range(3), range(2), calls)
    assert set(masks) == {(*place, *call) for *place, call in places}


def test_code_without_a_layer_draws_anew_in_every_forward_pass():
    """F.dropout in a model's own forward has no name: the calls of one pass share a generator, one after the other."""

    class Plain(nn.Module):
        masks: ClassVar[list[tuple[bool, ...]]] = []

        def __init__(self):
            self.linear = nn.Linear(5, 3).double()

        def forward(self, x):
            if self.training:
                for _ in range(2):
                    self.masks.append(tuple((F.dropout(np.ones(60), 0.5).numpy() > 0).tolist()))
            return self.linear(x)

    parallel.train(small_job(model=Plain), parallel.Synchronous(), 2, on="simulation")
    steps = 3 * 4
    assert len(Plain.masks) == len(set(Plain.masks)) == 2 * 2 * steps
