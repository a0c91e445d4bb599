"""Training a checkpointed model gives the bits of training the plain one, with hooks, overlap and micro-batches."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from minidl import cluster, nn, parallel
from minidl.nn.segments import Segment
from minidl.parallel import Job, Serial, Sharded, Synchronous
from tests.parallel.jobs import assert_same_bits
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

KEPT_LAST = [Segment(0, 2), Segment(2, 3), Segment(3, 5, recomputed=False)]


def checkpointed(model: Any, segments: Any = None) -> nn.Module:
    return nn.checkpointing(model(), segments)


def assert_checkpointing_changes_no_bit(job: Job, strategy: Any, nodes: int, on: Any, segments: Any = None) -> None:
    plain = parallel.train(job, strategy, nodes, on=on)
    other = parallel.train(replace(job, model=partial(checkpointed, job.model, segments)), strategy, nodes, on=on)
    assert_same_bits(other, plain)


@pytest.mark.parametrize(
    ("job", "strategy", "nodes", "on"),
    [
        ("ResNet", Serial(micro_batches=3), 1, "simulation"),
        ("ResNet", Synchronous(overlap=True, bucket_mb=0.001), 2, cluster.Simulation("10gbe")),
        ("tied GPT", Synchronous(overlap=True, bucket_mb=0.001), 2, cluster.Simulation("10gbe")),
        *exhaustively(("tied GPT", Synchronous(overlap=True, accumulate=2), 2, "processes")),
    ],
)
def test_training_gives_the_same_bits(job: str, strategy: Any, nodes: int, on: Any):
    """A bucket travels when its gradients are final: a gradient released too early would differ."""
    assert_checkpointing_changes_no_bit(replace(JOBS[job], epochs=1), strategy, nodes, on)


@pytest.mark.parametrize(
    ("strategy", "nodes", "on"),
    [
        (Serial(micro_batches=3), 1, "simulation"),
        (Synchronous(overlap=True, bucket_mb=0.001), 2, cluster.Simulation("10gbe")),
        (Sharded(stage=3), 3, "simulation"),
        *exhaustively(
            (Synchronous(overlap=True, bucket_mb=0.001), 2, "processes"),
            *((Sharded(stage=stage), 3, "simulation") for stage in (1, 2)),
        ),
    ],
)
def test_so_does_selective_recomputation(strategy: Any, nodes: int, on: Any):
    assert_checkpointing_changes_no_bit(replace(JOBS["tied GPT"], epochs=1), strategy, nodes, on, "selective")


def test_so_does_a_division_that_keeps_the_last_segment():
    assert_checkpointing_changes_no_bit(replace(JOBS["tied GPT"], epochs=1), Synchronous(), 2, "simulation", KEPT_LAST)


def test_a_run_goes_on_from_the_checkpoint_of_a_plain_model(tmp_path: Any):
    job = replace(JOBS["ResNet"], epochs=1)
    parallel.train(job, folder=tmp_path, on="simulation")
    whole = parallel.train(replace(job, epochs=2), on="simulation")
    resumed = parallel.train(
        replace(job, epochs=2, model=partial(checkpointed, job.model)),
        resume=tmp_path / "checkpoint.npz",
        on="simulation",
    )
    assert resumed.digests == whole.digests
