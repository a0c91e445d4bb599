"""Every exercise rejects its solution spoilt in general ways, and accepts its results in unusual forms.

The first exercise of each chapter has one saboteur in the first tier; all have all of theirs with `--all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from course.building.known_answers import Classroom
from tests.course.checks.test_mutants import EXERCISES
from tests.saboteurs import ODDITIES, SABOTEURS, cell
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(600)

# x: it loses points. o: it gets all. A dot: the hidden cases have no value that it would change.
# Columns: float32, six digits, integers, tiny is zero, first 1000, no single one, int8, complex, remembers, destroys,
# one buffer, locks; then lists, numpy's numbers, special errors.
TABLE = """
vjp_mul                     xxxxxx.xxxxx o..
vjp_max                     xxxxxx.xxxxx o..
vjp_matmul                  xxxxxx.xxxxx o..
vjp_broadcast_add           xxxxxx.x.xxx o..
backward                    ............ ...
check_gradient              ........xx.x ...
live_bytes                  ............ .o.
minibatches                 .....xx...x. o..
gradient_variance           xxxx....xx.x .o.
momentum_step               xxxxxx.xxxxx o..
corrected_step              xxxxxx.xxxxx o..
adam_step                   xxxxxx.x.xxx o..
train                       oox......... .o.
broadcast_tree              xxxxxx.x.x.. o..
ring_reduce_scatter         xxxxxx.x.x.. o..
ring_all_gather             xxxxxx.xxx.. o..
ring_all_reduce             xxxxx..xxx.. o..
recursive_doubling          xxxxx..xxx.. o..
ring_seconds                xxx......... .o.
recursive_doubling_seconds  xxx......... .o.
crossover                   xxx.....x... .o.
is_ring                     ............ ...
sharded_sampler             .....x....x. o..
data_parallel_step          xxx....xxx.. x..
bucketed_all_reduce         xx.....xxx.. o..
efficiency                  oox.....o... .o.
barrier_time                xxx.....xx.x .o.
serve                       xxxx.x.x.x.. o..
push_pull                   xx.....xxx.. o..
downpour_worker             xxx..x.x.... o..
ssp_gate                    ............ ...
lost_updates                ............ .o.
locked_step                 ............ ...
choose                      ............ ...
elastic                     xxx..x.xxx.. x..
elastic_limit               oox.....x... .o.
local_sgd                   xxx....xxx.. o..
rounds_and_words            xxx......... .o.
mixing_matrix               xxx..x.x..x. o..
consensus_factor            ooxo....xx.x .o.
gossip                      xxx..x.xxx.. o..
majority                    xxx..x.x.... x..
scheduled_rate              xxxx....x... .o.
corrected_run               xxx.xx.xxxxx x..
gradient_noise_scale        xxx.....ox.x .o.
noise_of_ranks              xxxxxx.xxx.. x..
lars_step                   xxxxxx.xxx.x x..
best_batch                  ............ .o.
best_measured_batch         ........x... .o.
sparsify                    .xxxxxxxxxxx x..
top_k_step                  xxxxx..xxx.. x..
corrected_entries           xxxxxxxxxxxx x..
qsgd                        xxxxxx..xxxx xo.
sparse_sum                  .xxxxx.xxx.. x..
column_linear               xxxxxx.x.x.. o..
row_linear                  xxxxx..x.x.. o..
mlp                         xxxxx..x.x.. o..
attention                   xxxxx..x.x.. o.o
embedding                   xxxxx..xxx.. o..
cross_entropy               xxxxx..xxx.. oo.
summa                       xxxxx..x.x.. o..
mesh_groups                 ............ .o.
best_grid                   xx.......... .o.
gpipe                       ............ ...
one_f_one_b                 ............ ...
run_stage                   xxxxx..xxx.. o..
cut                         ............ .o.
deadlock                    ............ .o.
weights_to_stash            ............ .o.
bubble                      xxx......... .o.
"""

MARKS = {name: "".join(marks) for name, *marks in map(str.split, TABLE.strip().splitlines())}

MAY_PASS = {
    "efficiency": "an estimate within 10 %, and 1 on one node whatever the times are",
    "elastic_limit": "a limit to six digits, by any method",
    "consensus_factor": "an eigenvalue to six digits",
    "gradient_noise_scale": "the same number in every unit",
    "train": "an error rate, right up to one sample",
}
"""Exercises in which a saboteur's result is a right one."""

NO_LISTS = {
    "data_parallel_step": "its arrays go into the next step",
    "corrected_run": "the path is one array",
    "noise_of_ranks": "compared to the bit",
    "lars_step": "memory is measured, and the tools of a saboteur need some",
    "elastic": "its sum with the centre is compared",
    "majority": "a gradient is counted by its values in float64",
    "sparsify": "types of indices and values are asked for",
    "top_k_step": "compared to the bit",
    "corrected_entries": "types of indices and values are asked for",
    "qsgd": "levels of one byte are asked for",
    "sparse_sum": "float32 is asked for",
}


def cases() -> Iterator[Any]:
    """Chapter, exercise and its saboteurs: of the first exercise of a chapter one, then all of each."""
    first = dict(reversed(EXERCISES))
    for number, (chapter, exercise) in enumerate(EXERCISES):
        those = [name for name, mark in zip(SABOTEURS | ODDITIES, MARKS[exercise], strict=True) if mark != "."]
        if first[chapter] == exercise and those:
            yield chapter, exercise, [those[number % len(those)]]
        if those:
            yield from exhaustively((chapter, exercise, those))


@pytest.mark.parametrize(("chapter", "exercise", "those"), list(cases()))
def test_a_spoilt_solution_loses_and_an_odd_one_does_not(
    chapter: str, exercise: str, those: list[str], classroom: Callable[[str], Classroom]
) -> None:
    room = classroom(chapter)
    marks = dict(zip(SABOTEURS | ODDITIES, MARKS[exercise], strict=True))
    for saboteur in those:
        outcome = room.outcomes(exercise, cell(saboteur, exercise))[-1]
        assert "SABOTAGED" in outcome.printed, saboteur
        assert (outcome.points < outcome.possible) == (marks[saboteur] == "x"), (saboteur, outcome.first_fault)


def test_the_table_has_every_exercise_and_a_reason_for_each_exception() -> None:
    assert list(MARKS) == [exercise for _, exercise in EXERCISES]
    assert {name for name, marks in MARKS.items() if "o" in marks[: len(SABOTEURS)]} == MAY_PASS.keys()
    lists = len(SABOTEURS)
    assert {name for name, marks in MARKS.items() if marks[lists] == "x"} == NO_LISTS.keys()
