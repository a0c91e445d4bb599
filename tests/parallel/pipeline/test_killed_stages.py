"""A stage that is killed ends the run with its cause; from the checkpoint it goes on to the bits of an unharmed run."""

from __future__ import annotations

import pytest

from minidl import cluster, parallel
from minidl.parallel import Hybrid, Pipeline
from tests.parallel.tensor.test_hybrid import JOB
from tests.parallel.test_split_models import JOBS
from tests.tiers import all_but_first_exhaustive

pytestmark = pytest.mark.timeout(300)

CASES = {
    "zb-h1": (JOBS["tied GPT"], Pipeline(stages=2, micro_batches=4, schedule="zb-h1"), 2),
    "replicas": (JOBS["ResNet"], Pipeline(stages=2, micro_batches=2, replicas=2), 4),
    "mesh": (JOB, Hybrid(pp=2, tp=2, micro_batches=2), 4),
    "gpipe, forward again": (JOBS["LeNet"], Pipeline(stages=2, micro_batches=4, schedule="gpipe", recompute=True), 2),
}


@pytest.mark.parametrize("on", ["processes", "simulation"])
@pytest.mark.parametrize("name", all_but_first_exhaustive(list(CASES)))
def test_a_killed_stage_ends_the_run_and_the_checkpoint_goes_on_to_the_same_bits(name: str, on: str, tmp_path):
    job, strategy, nodes = CASES[name]
    whole = parallel.train(job, strategy, nodes, on=on)
    received = [ledger["recv"].calls for ledger in whole.trace.ledger()]
    in_the_second_epoch = cluster.FaultPlan().kill(1, at=("recv", 3 * received[1] // 4))
    with pytest.raises(cluster.RankFailed) as caught:
        parallel.train(job, strategy, nodes, on=on, folder=tmp_path, faults=in_the_second_epoch)
    assert caught.value.rank == 1
    resumed = parallel.train(job, strategy, nodes, on=on, resume=tmp_path / "checkpoint.npz")
    assert resumed.digests == whole.digests
    assert [row["loss"] for row in resumed.history] == [row["loss"] for row in whole.history]
