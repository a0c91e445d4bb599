"""A schedule that cannot be executed is refused, and its first bad action is named."""

from __future__ import annotations

import pytest

from minidl.parallel import pipeline

BAD = {
    "missing backward": (["F0 B0 F1 U0"], "stage 0: U0 (update) needs B1 or W1, which is missing"),
    "missing update": (["F0 B0"], "stage 0: U0 (update) is missing"),
    "doubled": (["F0 B0 U0", "F0 F0 B0 U0"], "stage 1: F0 (forward) is there twice"),
    "computed again": (
        ["F0 I0 W0 B0 U0"],
        "stage 0: B0 (backward) computes the gradient of the inputs again, after I0",
    ),
    "weights too early": (["F0 W0 I0 U0"], "stage 0: W0 (backward for the weights) comes before I0"),
    "after the update": (["F0 B0 F1 U0 B1"], "stage 0: U0 (update) comes before B1"),
    "wrong chunk": (["F0 B0 U0", "F0 B0 0U0 U0"], "stage 1: 0U0 is on the wrong stage, since stage 0 has chunk 0"),
    "deadlock": (
        ["F0 B0 F1 B1 U0", "F1 B1 F0 B0 U0"],
        "deadlock: stage 0 waits for the gradient of the output of micro-batch 0 for chunk 0, from stage 1; "
        "stage 1 waits for the input of micro-batch 1 for chunk 1, from stage 0",
    ),
    "no action": (["F0 X0"], "'X0' is no action: write the number of the chunk, one of F, B, I, W, U"),
    "chunk without a stage": (["0F0 0B0 0U0", "2F0 2B0 2U0"], "no stage has an action of chunk 1, but one of chunk 2"),
    "nothing": ([], "a schedule has a line for each stage, got none"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_first_bad_action_is_named(case: str):
    lines, message = BAD[case]
    with pytest.raises(ValueError) as error:
        pipeline.validate(pipeline.Listed.read(lines))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("kind", pipeline.SCHEDULES)
def test_every_schedule_is_valid_and_is_read_back_from_its_text(kind: str):
    for stages in (1, 2, 3, 5):
        for micro_batches in (stages, 3 * stages):  # interleaved schedules need multiples
            made = pipeline.schedule(kind, stages, micro_batches)
            pipeline.validate(made)
            lines = [line.split(": ")[1] for line in str(made).splitlines()]
            listed = pipeline.Listed.read(lines)
            pipeline.validate(listed)
            assert str(listed) == str(made)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (pipeline.Action("F", -1), "stage 0: F-1 (forward) is of a micro-batch that there is not: the last one is 0"),
        (pipeline.Action("F", 1), "stage 0: F1 (forward) is of a micro-batch that there is not: the last one is 0"),
        (pipeline.Action("X", 0), "stage 0: X0 is of no known kind: choose one of F, B, I, W, U"),
    ],
)
def test_an_action_that_does_not_exist_is_refused(action: pipeline.Action, message: str):
    listed = pipeline.Listed(1, 1, lines=[[action]], places=[0])
    with pytest.raises(pipeline.ScheduleError) as error:
        pipeline.validate(listed)
    assert str(error.value) == message


def test_a_synchronous_schedule_updates_once_whatever_the_number_of_the_update():
    class Twice(pipeline.GPipe):
        def actions(self, stage):
            return iter([*super().actions(stage), pipeline.Action("U", 1, stage)])

    with pytest.raises(pipeline.ScheduleError, match=r"^stage 0: U1 \(update\) is there twice"):
        pipeline.validate(Twice(2, 2))


def test_the_one_update_of_a_listed_schedule_may_have_the_number_of_the_last_micro_batch():
    listed = pipeline.Listed.read(["F0 B0 F1 B1 U1"])
    assert not listed.is_asynchronous
    pipeline.validate(listed)


def test_a_listed_schedule_has_a_line_for_each_stage_and_a_place_for_each_chunk():
    with pytest.raises(ValueError, match=r"Listed: lines must have one for each stage, 2, got 0: use Listed.read"):
        pipeline.Listed(2, 2)
    with pytest.raises(ValueError, match="Listed: places must have one for each chunk, 2, got 1"):
        pipeline.Listed(2, 2, lines=[[], []], places=[0])
