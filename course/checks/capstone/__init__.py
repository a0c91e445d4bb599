"""The checks of the capstone: the seconds of a pass, and an entry for the race on hidden clusters."""

from __future__ import annotations

from collections.abc import Sequence

from course.checks.capstone import pass_times
from course.checks.capstone.library_versions import BUILDS
from course.checks.capstone.races import Field
from course.judging import Answer, ChapterChecks, Part
from course.probes.capstone import PRACTICE, Seeds

chapter = ChapterChecks("16_capstone", BUILDS)
hint = chapter.hint
__all__ = ["chapter", "entry", "hint", "pass_seconds"]


@chapter.exercise(
    points=4,
    hints=[
        "A step takes as long as the slowest of the chosen machines computes its share, batch_size / p samples. Is the "
        "slow machine among them?",
        "After every `period` steps comes one all-reduce round a ring: 2 (p - 1) messages of nbytes / p bytes. A pass "
        "has samples / batch_size steps; both counts may be fractions.",
    ],
)
def pass_seconds(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[pass_times.Case] = ((5, 4, 64, 1), (6, 3, 60, 8), (7, 7, 128, 5)),
    seed: int = 0,
) -> None:
    """The seconds of a pass: computing, the slow machine, the all-reduces, their period."""
    with part(1, "no messages: the machines compute"):
        for p, chosen, size, period in cases:
            pass_times.compare(answer, (p, chosen, size, period), seed, are_messages_free=True)
    with part(1.5, "an all-reduce after each step"):
        for p, chosen, size, _ in cases:
            pass_times.compare(answer, (p, chosen, size, 1), seed)
    with part(1.5, "an all-reduce after several steps; one machine alone"):
        for p, chosen, size, period in cases:
            pass_times.compare(answer, (p, chosen, size, period + 1), seed)
            pass_times.compare(answer, (p, 1, size, period), seed)


@chapter.exercise(
    points=14,
    hints=[
        "Which machine do all others wait for? What does `pass_seconds` say without it?",
        "Compare the seconds of an all-reduce with those in which a share is computed. Where links are slow, machines "
        'should talk more seldom: {"name": "LocalSGD", "period": 8}.',
        "The minibatch, the rate and the period decide how many passes are needed. Try several of them with "
        "capstone.run(cluster, recipe) on clusters of several seeds.",
    ],
)
def entry(answer: Answer, part: Part, *, seeds: Seeds = PRACTICE) -> None:
    """The target on three clusters within the budget; then the references' scores."""
    field = Field(answer, seeds)
    for kind in field.clusters:
        with part(2, f"{kind}: the target within the budget"):
            field.compare_reached(kind)
    with part(4, "as fast as the reference good"):
        field.compare_score("good")
    with part(4, "as fast as ours"):
        field.compare_score("ours")
