"""A run whose stage was killed goes on from its last checkpoint, and ends with the bits of an undisturbed one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from minidl import cluster, parallel
from minidl.cluster import FaultPlan
from minidl.parallel import Elastic, Hybrid, Pipeline
from tests.cluster import process_census
from tests.parallel.jobs import assert_same_bits, small_job
from tests.parallel.tensor.test_hybrid import JOB as OF_HYBRID
from tests.parallel.test_split_models import JOBS
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the census of processes reads /proc"),
]


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    before = process_census.shared_memory()
    yield
    assert process_census.wait_until_gone(process_census.ranks(os.getpid())) == []
    assert process_census.left_in_shared_memory(before) == set()


@dataclass(frozen=True)
class KilledOnce(Pipeline):
    """The process of one rank ends by SIGKILL in the middle of a minibatch, the first time that it comes to it."""

    rank: int = 1
    minibatch: int = 7
    done: Path = Path()

    def run(self, session: Any) -> None:
        batches, mark, begun = session.batches, session.comm.mark, []

        def counted() -> Iterator[Any]:
            for batch in batches():
                begun.append(batch)
                yield batch

        def mortal(name: str) -> None:
            if set(name) & set("BI") and len(begun) == self.minibatch and not self.done.exists():
                self.done.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            mark(name)

        if session.comm.rank == self.rank:
            session.batches, session.comm.mark = counted, mortal
        super().run(session)


@pytest.mark.parametrize(
    ("kind", "dp", "rank", "job"),
    [
        ("1f1b", 1, 1, "LeNet"),
        *exhaustively(("zb-v", 2, 3, "tied GPT"), ("gpipe", 2, 1, "ResNet"), ("pipedream", 1, 0, "LeNet")),
    ],
)
def test_when_a_stage_is_killed_all_go_on_from_the_last_checkpoint_to_the_same_bits(
    kind: str, dp: int, rank: int, job: str, tmp_path: Path
):
    """Five minibatches an epoch, of which the second epoch's first is done again."""
    settings = {"stages": 2, "micro_batches": None if kind == "pipedream" else 4, "schedule": kind}
    with threadpool_limits(1):  # as processes have
        truth = parallel.train(JOBS[job], Pipeline(**settings), 2 * dp, on="simulation")
    strategy = KilledOnce(**settings, rank=rank, done=tmp_path / "done")
    report = parallel.train(JOBS[job], strategy, 2 * dp, folder=tmp_path, elastic=True)
    assert_same_bits(report, truth)
    [restart] = report.restarts
    assert "SIGKILL" in restart.died[rank]
    assert (restart.source, restart.joined, restart.nodes) == ("checkpoint", 1, 2 * dp)
    assert (restart.epoch, restart.step) == (2, 0)
    assert 1 <= restart.steps_lost <= (2 if kind == "pipedream" else 1)  # a later stage may be one ahead of the dead
    assert report.failures == {}


WITHOUT_ELASTIC = {
    "stages that two ranks share": (OF_HYBRID, Hybrid(pp=2, tp=2, micro_batches=2), 4, "simulation"),
    "processes": (JOBS["tied GPT"], Pipeline(stages=2, micro_batches=4, schedule="zb-h1"), 2, "processes"),
}


@pytest.mark.parametrize(
    ("job", "strategy", "nodes", "on"),
    [WITHOUT_ELASTIC["processes"], *exhaustively(WITHOUT_ELASTIC["stages that two ranks share"])],
)
def test_without_elastic_the_run_ends_with_an_error_and_resumes_to_the_same_bits(
    job: parallel.Job, strategy: Pipeline, nodes: int, on: str, tmp_path: Path
):
    truth = parallel.train(job, strategy, nodes, on="simulation")
    receives = truth.trace.ledger()[1]["recv"].calls
    plan = FaultPlan().kill(1, at=("recv", 3 * receives // 4))  # in the second epoch
    with pytest.raises(cluster.RankFailed) as caught:
        parallel.train(job, strategy, nodes, on=on, folder=tmp_path, faults=plan)
    assert caught.value.rank == 1
    saved = tmp_path / "checkpoint.npz"
    assert parallel.Checkpoint.load(saved).epoch == 1
    assert_same_bits(parallel.train(job, strategy, nodes, on="simulation", resume=saved), truth)


@pytest.mark.parametrize(
    ("plan", "has_folder"),
    [
        (FaultPlan().kill(0, at=90), True),
        (FaultPlan().kill(0, at=90).kill(1, at=90).kill(2, at=90), False),
        (FaultPlan().kill(2, at=40).kill(1, at=90), True),
    ],
    ids=["the first", "all", "one after the other"],
)
def test_whichever_stages_die_the_bits_are_the_same(plan: FaultPlan, has_folder: bool, tmp_path: Path):
    """Without a folder all begin anew."""
    job, strategy = small_job(), Pipeline(stages=3, micro_batches=4)
    truth = parallel.train(job, strategy, 3, on="simulation")
    folder = tmp_path if has_folder else None
    report = parallel.train(job, strategy, 3, on="simulation", faults=plan, folder=folder, elastic=Elastic(rejoin=True))
    assert_same_bits(report, truth)
    assert sorted(rank for restart in report.restarts for rank in restart.died) == sorted(f.rank for f in plan.faults)
    assert {restart.source for restart in report.restarts} == {"checkpoint" if has_folder else "start"}
    nobody_knows = [restart.steps_lost is None for restart in report.restarts]
    assert nobody_knows == [len(restart.died) == strategy.stages for restart in report.restarts]


def test_ranks_that_share_layers_are_replaced_too(tmp_path: Path):
    """Two stages, each of whose layers two ranks share."""
    strategy, plan = Hybrid(pp=2, tp=2, micro_batches=2), FaultPlan().kill(3, at=("recv", 12))
    truth = parallel.train(OF_HYBRID, strategy, 4, on="simulation")
    report = parallel.train(OF_HYBRID, strategy, 4, on="simulation", folder=tmp_path, faults=plan, elastic=True)
    assert_same_bits(report, truth)
    assert [list(restart.died) for restart in report.restarts] == [[3]]
