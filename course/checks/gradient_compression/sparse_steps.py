"""Runs of `top_k_step`: the weights of serial steps, what each rank keeps, and the one all-gather."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.gradient_compression.sparse_step_mistakes import Step, wrong
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int]
"""(p, n, k)"""

ROUNDING = 1e-12

UNSTABLE = "Of equal magnitudes, the lower index comes first: np.argsort keeps their order with kind='stable' alone."


Made = list[tuple[Step, RankRun]]
"""Steps, each with the answer's run of it."""

RESIDUAL = 2
"""The position of the argument that the answer writes."""


def runs(answer: Answer, case: Case, steps: int, seed: int) -> Made:
    """Let the answer make several steps, each from the right weights and residuals."""
    p, n, k = case
    rng = stream(Purpose.MANUAL, seed, "gradients of ranks", *case)
    w, residuals = rng.normal(size=n), [np.zeros(n, np.float32) for _ in range(p)]
    w[-1:] *= 1e-8
    made = []
    for number in range(steps):
        shared = rng.normal(0.0, 1.0, n)  # so that ranks often choose the same entries
        gradients = [(shared + rng.normal(0.0, 0.7, n)).astype(np.float32) for _ in range(p)]
        for each in gradients if k < n else ():
            each[-1] *= 1e-8
        step = Step(w, gradients, residuals, k, number)
        made.append((step, answer.on_ranks(step.arguments(), may_change=[RESIDUAL])))
        w, residuals = step.after()
    return made


def tied(answer: Answer) -> Made:
    """Steps with totals of equal magnitude, or zeros; one has 64 entries: unstable sorts keep the order of few."""
    many = [np.resize(row, 64) for row in ([1.0, -2.0, 2.0, -1.0, 2.0], [-1.0, 1.0, 0.0])]
    made = []
    for rows, k in (
        ([[1.0, -2.0, 2.0, 0.5], [-1.0, 1.0, 1.0, -1.0]], 2),
        ([[0.0, 0.0, 0.0], [0.0, -3.0, 0.0], [3.0, 0.0, -3.0]], 1),
        (many, 20),
    ):
        kept = np.resize([0.25, -0.5, 0.75], len(rows[0])).astype(np.float32)
        gradients = [np.array(row, np.float32) - kept for row in rows]
        step = Step(np.arange(1.0, len(rows[0]) + 1), gradients, [kept] * len(rows), k)
        made.append((step, answer.on_ranks(step.arguments(), may_change=[RESIDUAL])))
    made.append(nearly_tied(answer))
    return made


def nearly_tied(answer: Answer) -> tuple[Step, RankRun]:
    """A step whose two largest totals are equal once they are rounded on rank 0, and differ by 2^-22 on rank 1."""
    gradients = [[0.5, 2.0**-25, 0.0], [2.0**-25, 0.5 + 2.0**-22, 0.0]]
    residuals = [[0.5, 1.0, 0.25], [1.0, 0.5, 0.25]]
    step = Step(
        np.array([1.0, 2.0, 3.0]),
        [np.array(row, np.float32) for row in gradients],
        [np.array(row, np.float32) for row in residuals],
        1,
    )
    return step, answer.on_ranks(step.arguments(), may_change=[RESIDUAL])


def rounded(answer: Answer) -> Made:
    """A step whose sum depends on the order of the ranks: two small numbers count only if they are added first."""
    small = 0.3 * 2.0**-23  # 0.3 of the spacing of float64 numbers next to the large one
    gradients = [np.array([number, 0.0], np.float32) for number in (small, small, 1.5 * 2.0**29)]
    step = Step(np.zeros(2), gradients, [np.zeros(2, np.float32)] * 3, 1)
    return [(step, answer.on_ranks(step.arguments(), may_change=[RESIDUAL]))]


def compare_weights(made: Made) -> None:
    """Raise Wrong unless every rank returned the weights after the serial step."""
    for step, run in made:
        want, _ = step.after()
        for rank in range(step.p):
            scale = ROUNDING * (1 + float(np.abs(want).max()))
            called = f"{step.called(rank)}: the weights"
            got = run.results[rank]
            slips = wrong(step, None)
            if isinstance(got, np.ndarray) and got.shape == want.shape and expect.close(got, want, 1e-6, 0.0):
                slips["Almost: the sum was rounded to float32. Add up in an array of float64."] = got
            expect.array(got, want, called, rtol=0, atol=scale, mistakes=slips, dtype=np.float64)


def compare_residuals(made: Made) -> None:
    """Raise Wrong unless every rank keeps the entries that it has not sent, to the bit.

    The first step comes last: there the residuals are 0 before, and several mistakes give the same.
    """
    for step, run in [*made[1:], *made[:1]]:
        _, residuals = step.after()
        for rank in range(step.p):
            got, want, zero = run.arguments[rank][RESIDUAL], residuals[rank], np.float32(0)  # -0.0 + 0.0 is 0.0
            slips = wrong(step, rank)
            if np.array_equal(np.sort(np.abs(got)), np.sort(np.abs(want))):
                slips[UNSTABLE] = got + zero
            expect.same_bits(got + zero, want + zero, f"{step.called(rank)}: the residual", slips)


CAUSES = {
    "all_reduce": "That adds up the whole vectors, n numbers: nothing is saved.",
    "gather": "One rank would receive all entries, and would have to send them on.",
    "broadcast": "comm.all_gather brings every rank the messages of all others.",
    "barrier": "The all-gather itself waits for all ranks.",
}


def compare_traffic(made: Made) -> None:
    """Raise Wrong unless every rank made one all-gather of 8 k bytes, and nothing else."""
    for step, run in made:
        expected = "expected one comm.all_gather of a message of k entries and no other communication"
        for rank in range(step.p):
            called = step.called(rank)
            others = [name for name in run.operations[rank] if name != "all_gather"]
            if others:
                raise Wrong(f"{called}: {expected}, got comm.{others[0]}.", CAUSES.get(others[0], ""))
            own = run.collectives[rank]
            if step.p > 1 and len(own) != 1:
                cause = "`pairs` puts indices and values into one message." if own else "Nothing was communicated."
                raise Wrong(f"{called}: {expected}, got {len(own)} all-gathers.", cause)
            most = 8 * step.k * (step.p - 1)
            if step.p > 1 and own[0].nbytes != most:
                is_fewer = own[0].nbytes < most
                sizes = {12: "with int64 indices or float64 values", 16: "in 8 bytes an index and 8 a value"}
                each = own[0].nbytes / (step.p - 1) / step.k
                is_whole = own[0].nbytes == 4 * len(step.w) * (step.p - 1)
                cause = f"The entries are sent {sizes[int(each)]}, or more than k are." if each in sizes else ""
                cause = "The whole vector is sent, with its zeros." if is_whole else cause
                cause = "Exactly k entries are sent, also where the largest are 0." if is_fewer else cause
                raise Wrong(
                    f"{called}: expected {most} bytes sent, 8 k to each of {step.p - 1} ranks, got {own[0].nbytes}.",
                    cause,
                )


def compare_bits(made: Made) -> None:
    """Raise Wrong unless all ranks returned the same bits, of the right weights."""
    compare_weights(made)
    for step, run in made:
        first = expect.number_array(run.results[0], step.called(0), "an array")
        for rank in range(1, step.p):
            expect.same_bits(
                run.results[rank],
                first,
                f"{step.called(rank)}: compared with rank 0",
                {"Add up in the order of the ranks on every rank, the own entries in their place.": run.results[rank]},
            )
