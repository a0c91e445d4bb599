"""Schedules against PyTorch's: the same order of interleaved 1F1B and ZB-V, and a list of 1F1B that is wrong there."""

from __future__ import annotations

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


@pytest.mark.parametrize("stages", [2, 4])
def test_the_list_of_1f1b_is_pytorch_s_but_on_the_last_stage_where_theirs_cannot_be_executed(stages, tmp_path):
    """It starts at micro-batch 1 there, since it counts from a forward of the warm-up, of which there is none."""
    schedule = pipeline.OneFOneB(stages, micro_batches=8)
    listed = order("Schedule1F1B", schedule)
    assert listed[:-1] == ours(schedule)[:-1]
    last = stages - 1
    assert [text for text in listed[last] if "F" in text] == [f"{last}F{m}" for m in range(1, 9)]
    pipeline.validate(schedule)
    path = tmp_path / "theirs.csv"
    path.write_text("\n".join(",".join(line) for line in listed))
    with pytest.raises(pipeline.ScheduleError, match=rf"stage {last}: B0 \(backward\) needs F0, which is missing"):
        pipeline.read_csv(path)
    with pytest.raises(AssertionError, match=rf"Rank {last}, .* microbatch 0 without first running Forward"):
        runtime(schedule)._load_csv(path)  # their own validator agrees


@pytest.mark.parametrize(("stages", "chunks"), [(2, 3), (4, 2)])
def test_interleaved_1f1b_has_pytorch_s_order(stages, chunks):
    schedule = pipeline.Interleaved(stages, 3 * stages, chunks)
    assert ours(schedule) == order("ScheduleInterleaved1F1B", schedule)


@pytest.mark.parametrize("stages", [1, 3, 6])
def test_zb_v_has_pytorch_s_order(stages):
    schedule = pipeline.ZeroBubbleV(stages, 3 * stages)
    assert ours(schedule) == order("ScheduleZBVZeroBubble", schedule)


@pytest.mark.parametrize("stages", [3])
@pytest.mark.parametrize("kind", [kind for kind in pipeline.SCHEDULES if kind != "pipedream"])
def test_pytorch_reads_our_files_and_we_read_those_that_it_writes(kind, stages, tmp_path):
    """Its files come with or without communication, and its list of actions may end in REDUCE_GRAD."""
    schedule = pipeline.schedule(kind, stages, 2 * stages)
    path = tmp_path / "schedule.csv"
    pipeline.write_csv(schedule, path)
    loaded = runtime(schedule)
    loaded._load_csv(path, format="compute_only")
    assert [[str(each) for each in loaded.pipeline_order[stage]] for stage in range(stages)] == ours(schedule)
    for how in ("compute_only", "compute_comms"):
        loaded._dump_csv(path, format=how)
        assert ("SEND_F" in path.read_text()) == (how == "compute_comms")
        assert str(pipeline.read_csv(path)) == str(schedule)
    assert "REDUCE_GRAD" in path.read_text()


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 5), (3, 7)])
def test_dual_pipe_v_as_pytorch_writes_it_is_read_with_its_overlapped_actions_one_after_the_other(
    stages, micro_batches, tmp_path
):
    path, made = tmp_path / "schedule.csv", runtime(pipeline.ZeroBubbleV(stages, micro_batches))
    of_stage = theirs.ScheduleDualPipeV._calculate_single_rank_operations
    actions = {stage: of_stage(made, stage) for stage in range(stages)}
    made.pipeline_order = actions
    made._prepare_schedule_with_comms(actions)
    for how in ("compute_only", "compute_comms"):
        made._dump_csv(path, format=how)
        assert ")OVERLAP_F_B" in path.read_text()
        flat = [[str(one) for each in row if each for one in each.sub_actions or [each]] for row in actions.values()]
        assert ours(pipeline.read_csv(path)) == flat


def runtime(schedule: pipeline.Schedule):
    """PyTorch's executor of listed schedules, without processes and models."""
    made = object.__new__(theirs._PipelineScheduleRuntime)
    made.pp_group_size, made._num_stages = schedule.stages, schedule.chunks
    made._n_microbatches, made._stages, made.pipeline_order = schedule.micro_batches, [], {}
    made._defer_pp_recv = False
    return made
