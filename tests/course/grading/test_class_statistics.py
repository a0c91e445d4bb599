"""What a class found hard is counted part by part, and alike mistakes are counted together."""

from __future__ import annotations

import pytest

from course.grading.reports.picture import draw, save_picture
from course.grading.reports.statistics import tallies
from course.judging import Outcome, PartResult, Status

CHAPTER = "04_messages_and_collectives"
SUM, COST = "every rank returns the sum", "2(p - 1) messages"


def outcome(*parts: tuple[str, float, Status, str, str]) -> Outcome:
    return Outcome("ring_all_reduce", 3.0, tuple(PartResult(*part) for part in parts))


RIGHT = outcome((SUM, 1.0, Status.CORRECT, "", ""), (COST, 2.0, Status.CORRECT, "", ""))
MEAN = "This is the mean; the sum is asked."


def wrong(rank: int) -> Outcome:
    message = f"x on rank {rank} of 5: expected 7.5, got {rank + 0.25}"
    return outcome((SUM, 1.0, Status.WRONG, message, MEAN), (COST, 2.0, Status.WRONG, f"rank {rank} sent {9}", ""))


DEAD = outcome(("the answer can be called", 3.0, Status.STUCK, "it took more than 20 s", ""))
EMPTY = outcome(("the answer can be called", 3.0, Status.NOT_ATTEMPTED, "not attempted", ""))


@pytest.fixture
def counted():
    return tallies((CHAPTER, [one]) for one in (DEAD, RIGHT, RIGHT, wrong(1), wrong(2), EMPTY))


def test_shares_and_means_are_of_all_who_were_judged(counted):
    whole, first, second = (tally.row for tally in counted)
    assert [row["part"] for row in (whole, first, second)] == ["", SUM, COST]
    assert (whole["submissions"], whole["got_it"], whole["mean_points"], whole["of"]) == (6, 2, 1.0, 3.0)
    assert (first["wrong"], first["raised_or_stuck"], first["not_attempted"]) == (2, 1, 1)
    assert (second["share_got_it"], second["mean_points"]) == (0.333, 0.667)


def test_the_same_mistake_with_other_numbers_is_one_reason(counted):
    _, first, second = (tally.row for tally in counted)
    assert (first["reason_1"], first["submissions_1"]) == (MEAN, 2)
    assert (second["reason_1"], second["submissions_1"]) == ("rank … sent …", 2)
    assert {first["reason_2"], first["reason_3"]} == {"deadlock or time-out", "not attempted"}


def test_statistics_have_no_row_for_parts_that_an_ended_check_did_not_reach(counted):
    assert {tally.part for tally in counted} == {"", SUM, COST}


def test_a_check_that_failed_of_itself_is_no_mistake_of_the_class(counted):
    broken = Outcome("ring_all_reduce", 3.0, (PartResult("the check works", 3.0, Status.WRONG, "…"),), defect="OSError")
    more = tallies((CHAPTER, [one]) for one in (DEAD, RIGHT, broken, RIGHT, wrong(1), wrong(2), EMPTY))
    assert [tally.row for tally in more] == [tally.row for tally in counted]
    assert tallies([(CHAPTER, [broken])]) == []


def test_the_picture_has_a_bar_a_part_and_says_how_many(counted, tmp_path):
    figure = draw(counted)
    (axes,) = figure.axes
    assert axes.get_title(loc="left").endswith("n = 6 submissions")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ring_all_reduce", SUM, COST]
    bars = [patch for patch in axes.patches if patch.get_y() < 1.5]
    assert [round(bar.get_width()) for bar in bars] == [33, 33, 17, 17]
    assert axes.get_xlabel() == "submissions (%)"
    save_picture(counted, tmp_path / "statistics.png")
    assert (tmp_path / "statistics.png").read_bytes()[:4] == b"\x89PNG"
