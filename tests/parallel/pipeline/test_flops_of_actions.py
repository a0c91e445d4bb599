"""What I and W compute together is what B computes: for every chunk and every micro-batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from minidl import kernels, parallel
from minidl.parallel import Pipeline
from minidl.parallel.pipeline.stage_execution import StageExecution
from tests.parallel.pipeline.models import CASES, RECURRENT
from tests.parallel.test_split_models import JOBS
from tests.tiers import all_but_first_exhaustive

OF_RUNS = {"tied GPT": JOBS["tied GPT"], "ResNet": JOBS["ResNet"], "recurrent": CASES[RECURRENT]}


@pytest.mark.parametrize("name", all_but_first_exhaustive(list(OF_RUNS)))
def test_the_flops_of_i_and_w_of_a_run_are_those_of_b(name: str, monkeypatch: pytest.MonkeyPatch):
    job, stages, compute = replace(OF_RUNS[name], epochs=1), 3, StageExecution.compute
    counts: dict[str, Counter] = {"1f1b": Counter(), "zb-h1": Counter()}

    def counted(self, action):
        with kernels.counted() as work:
            compute(self, action)
        counts[kind][action.kind, action.micro_batch, action.chunk] += work.flops

    monkeypatch.setattr(StageExecution, "compute", counted)
    for kind in counts:
        parallel.train(job, Pipeline(stages, micro_batches=4, schedule=kind), stages, on="simulation")
    whole, halves = counts["1f1b"], counts["zb-h1"]
    of_backward = {key: flops for key, flops in whole.items() if key[0] == "B"}
    assert len(of_backward) == 4 * stages
    for (_, m, chunk), flops in of_backward.items():
        assert halves["I", m, chunk] + halves["W", m, chunk] == flops > 0
        assert halves["F", m, chunk] == whole["F", m, chunk]
    assert sum(flops for (kind, *_), flops in halves.items() if kind == "W") > 0
