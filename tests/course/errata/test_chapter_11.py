"""The errata of chapter 11 in course/errata.md: what is printed goes wrong, what is right does not."""

from __future__ import annotations

from functools import partial

import pytest

from minidl import nn, optim
from minidl.parallel import Pipeline, Synchronous, pipeline, train
from tests.parallel.jobs import blobs, small_job


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8), (8, 8)])
def test_a_pipeline_that_is_emptied_is_idle_for_k_minus_1_of_m_plus_k_minus_1(stages: int, micro_batches: int) -> None:
    for kind in (pipeline.GPipe, pipeline.OneFOneB):
        idle = pipeline.simulate(kind(stages, micro_batches)).bubble_of_total
        assert idle == pytest.approx((stages - 1) / (micro_batches + stages - 1))


def test_schedules_without_a_bubble_come_close_to_the_sentence() -> None:
    assert pipeline.simulate(pipeline.ZeroBubbleH2(4, 8)).bubble_of_total == 0
    share = [pipeline.simulate(pipeline.PipeDream(4, count)).bubble_of_total for count in (10, 100, 1000)]
    assert share == sorted(share, reverse=True)
    assert share[-1] < 0.005


def bytes_of_two_steps(strategy: object, nodes: int) -> int:
    """A model of 21,507 weights, with 8 numbers a sample at the cut: 30 samples a step."""
    job = small_job(
        model=partial(nn.models.MLP, 5, 100, 8, 100, 100, 3),
        data=partial(blobs, 60, "float32"),
        optimizer=partial(optim.SGD, lr=0.01),
        schedule=None,
        batch_size=30,
        epochs=1,
    )
    ledger = train(job, strategy, nodes, on="simulation").trace.ledger()
    return sum(rank[name].nbytes for rank in ledger for name in ("isend", "all_reduce") if name in rank)


def test_a_pipeline_sends_activations_at_its_cuts_and_data_parallelism_all_gradients() -> None:
    cut = Pipeline(2, 5, cuts=(2,))
    assert bytes_of_two_steps(cut, 2) < bytes_of_two_steps(Synchronous(algorithm="ring"), 2) / 5


def test_each_stage_has_its_own_parameters_only() -> None:
    job = small_job(model=partial(nn.models.MLP, 5, 8, 7, 6, 3), data=partial(blobs, 60, "float32"))

    class Counting(Pipeline):
        def run(self, session):
            super().run(session)
            session.record("names", sorted(name for name, p in session.model.named_parameters() if p.held))

    first, second = (names[0] for names in train(job, Counting(2, 4), 2, on="simulation").recorded["names"])
    assert not set(first) & set(second)
    assert len(first) + len(second) == len(list(job.build_model().parameters()))


def test_gpipe_and_1f1b_have_one_bubble_and_different_memory() -> None:
    gpipe, one_f_one_b = (pipeline.simulate(kind(4, 8)) for kind in (pipeline.GPipe, pipeline.OneFOneB))
    assert gpipe.bubble_of_total == one_f_one_b.bubble_of_total == pytest.approx(3 / 11)
    assert pipeline.peak_memory(gpipe.schedule) == [8, 8, 8, 8]
    assert pipeline.peak_memory(one_f_one_b.schedule) == [4, 3, 2, 1]
