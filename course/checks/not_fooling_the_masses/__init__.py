"""The checks of chapter 16: not fooling the masses."""

from __future__ import annotations

from collections.abc import Sequence

from course.checks.library_versions import BUILDS
from course.checks.not_fooling_the_masses import planted_reports
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("16_not_fooling_the_masses", BUILDS["16_not_fooling_the_masses"])
hint = chapter.hint
__all__ = ["chapter", "find_trick", "hint"]


@chapter.exercise(
    points=15,
    hints=[
        "Begin with two lists: ours = [row for row in rows if row['method'] == 'ours'], and baseline likewise. Many "
        "tricks are a difference of two sets, such as {row['nodes'] for row in ours}.",
        "First 'extrapolated', since the claimed nodes of such a report have no rows. For the accuracies, take the "
        "rows with nodes == claim['nodes'] whose accuracy is not None.",
        "The claimed accuracy is the mean of ours unless there is a trick: compare with math.isclose. If it is "
        "not, it is max(accuracies), or the mean of the training accuracies.",
        "The standard error of a difference of two means is sqrt(variance(a) / len(a) + variance(b) / len(b)); "
        "statistics.variance divides by n - 1.",
    ],
)
def find_trick(answer: Answer, part: Part, *, seeds: Sequence[int] = (0, 1)) -> None:
    """Twenty reports for each seed: 1.5 points for each trick, if it is found and its clean twin raises no alarm."""
    for trick in planted_reports.TRICKS:
        with part(1.5, f"{trick}: found, and no false alarm"):
            for seed in seeds:
                for report in planted_reports.pair(trick, seed):
                    report.judge(answer)
