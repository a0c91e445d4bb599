"""Schedules against PyTorch's: the same order of interleaved 1F1B and ZB-V, and a list of 1F1B that is wrong there."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from minidl.parallel import pipeline

pytest.importorskip("torch", reason="parity tests need the extra `parity`")
theirs = pytest.importorskip("torch.distributed.pipelining.schedules", reason="PyTorch was built without distributed")


def order(kind: str, schedule: pipeline.Schedule) -> list[list[str]]:
    """PyTorch's actions of each stage, without the slots in which it waits; computed without processes."""
    made = SimpleNamespace(
        pp_group_size=schedule.stages,
        n_local_stages=schedule.chunks_per_stage,
        num_stages=schedule.chunks,
        _num_stages=schedule.chunks,
        _n_microbatches=schedule.micro_batches,
        microbatches_per_round=schedule.stages,
    )
    if kind == "Schedule1F1B":
        stages = theirs.Schedule1F1B._get_pipeline_order(made)
    else:
        of_stage = getattr(theirs, kind)._calculate_single_rank_operations
        stages = {stage: of_stage(made, stage) for stage in range(schedule.stages)}
    return [[str(each) for each in stages[stage] if each and each.is_compute_op] for stage in sorted(stages)]


def ours(schedule: pipeline.Schedule) -> list[list[str]]:
    return [[str(each) for each in schedule.actions(stage) if each.kind != "U"] for stage in range(schedule.stages)]


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_the_list_of_1f1b_is_pytorch_s_but_on_the_last_stage_where_theirs_cannot_be_executed(stages):
    """It starts at micro-batch 1 there, since it counts from a forward of the warm-up, of which there is none."""
    schedule = pipeline.OneFOneB(stages, micro_batches=8)
    listed = order("Schedule1F1B", schedule)
    assert listed[:-1] == ours(schedule)[:-1]
    last = stages - 1
    assert [text for text in listed[last] if "F" in text] == [f"{last}F{m}" for m in range(1, 9)]
    pipeline.validate(schedule)
    lines = [[*line, f"{stage}U0"] for stage, line in enumerate(listed)]  # theirs have no updates
    read = replace(pipeline.Listed.read([" ".join(line) for line in lines]), micro_batches=8)
    with pytest.raises(pipeline.ScheduleError, match=rf"^stage {last}: B0 \(backward\) needs F0, which is missing"):
        pipeline.validate(read)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("chunks", [2, 3])
def test_interleaved_1f1b_has_pytorch_s_order(stages, chunks):
    schedule = pipeline.Interleaved(stages, 3 * stages, chunks)
    assert ours(schedule) == order("ScheduleInterleaved1F1B", schedule)


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 6])
def test_zb_v_has_pytorch_s_order(stages):
    schedule = pipeline.ZeroBubbleV(stages, 3 * stages)
    assert ours(schedule) == order("ScheduleZBVZeroBubble", schedule)


@pytest.mark.parametrize("stages", [2, 4])
def test_pytorch_reads_our_files_and_we_read_its_files(stages, tmp_path):
    schedule = pipeline.ZeroBubbleV(stages, 2 * stages)
    path = tmp_path / "schedule.csv"
    pipeline.write_csv(schedule, path)
    rows = [line.split(",") for line in path.read_text().splitlines()]
    assert [[str(theirs._Action.from_str(cell)) for cell in row] for row in rows] == ours(schedule)
    path.write_text("\n".join(",".join(line) for line in order("ScheduleZBVZeroBubble", schedule)))
    assert str(pipeline.read_csv(path)) == str(schedule)
