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
# remembers the first argument, sends block, one buffer, locks; then lists, numpy's numbers, special errors.
TABLE = """
vjp_mul                     xxxxxx.xxxx.xx o..
vjp_max                     xxxxxx.xxxx.xx o..
vjp_matmul                  xxxxxx.xxxx.xx o..
vjp_broadcast_add           xxxxxx.x.xx.xx o..
backward                    .............. ...
check_gradient              ........xxx..x ...
live_bytes                  ..........x... .o.
minibatches                 .....xx...x.x. o..
gradient_variance           xxxx....xxx..x .o.
momentum_step               xxxxxx.xxxx.xx o..
corrected_step              xxxxxx.xxxx.xx o..
adam_step                   xxxxxx.x.xx.xx o..
train                       oox.......x... .o.
im2col                      xxxxx..xxxx.xx o..
winograd                    xxxx....x.x... .o.
micro_batches               ..........x... .o.
fuse                        .............. .o.
broadcast_tree              xxxxxx.x.x.... o..
ring_reduce_scatter         xxxxxx.x.x.x.. o..
ring_all_gather             xxxxxx.xxxxx.. o..
ring_all_reduce             xxxxx..xxxxx.. o..
recursive_doubling          xxxxx..xxxxx.. o..
ring_seconds                xxx.......x... .o.
recursive_doubling_seconds  xxx.......x... .o.
crossover                   xxx.....x.x... .o.
is_ring                     .............. ...
sharded_sampler             ....xxx...x.x. o..
data_parallel_step          xxxxx..xxxx... x..
bucketed_all_reduce         xxxxx..xxxx... o..
efficiency                  oox.....o.x... .o.
barrier_time                xxx.....xxx..x .o.
serve                       xxxx.x.x.x.... o..
push_pull                   xxxxx..xxx.... o..
downpour_worker             xxx..x.x..x... o..
ssp_gate                    ..........x... ...
lost_updates                .............. .o.
locked_step                 .............. ...
choose                      ooo.....x.x... .o.
elastic                     xxxxxx.xxxx... x..
elastic_limit               oox.....x.x... .o.
local_sgd                   xxxxx..xxxx... o..
rounds_and_words            xxx.......x... .o.
mixing_matrix               xxx..x.x....x. o..
consensus_factor            ooxo....xxx..x .o.
gossip                      xxxxxx.xxxxx.. o..
majority                    xxx..x.x..x... x..
scheduled_rate              xxxx....x.x... .o.
corrected_run               xxx.xx.xxxx.xx x..
gradient_noise_scale        xxx.....oxx..x .o.
noise_of_ranks              xxxxxx.xxxx... x..
lars_step                   xxxxxx.xxxx..x x..
best_batch                  ..........x... .o.
best_measured_batch         ........x.x... .o.
sparsify                    .xxxxxxxxxx.xx x..
top_k_step                  xxxxx..xxxx... x..
corrected_entries           xxxxxxxxxxx.xx x..
qsgd                        xxxxxx..xxx.xx xo.
sparse_sum                  .xxxxx.xxxxx.. x..
column_linear               xxxxxx.x.xx... o..
row_linear                  xxxxx..x.x.... o..
mlp                         xxxxx..x.xx... o..
attention                   xxxxx..x.x.... o.o
embedding                   xxxxx..xxxx... o..
cross_entropy               xxxxx..xxxx... oo.
summa                       xxxxx..x.xx... o..
mesh_groups                 ..........x... .o.
best_grid                   xx........x... .o.
gpipe                       ..........x... ...
one_f_one_b                 ..........x... ...
run_stage                   xxx.x..xxxxx.. o..
cut                         ..........x... .o.
deadlock                    .............. .o.
weights_to_stash            .............. .o.
bubble                      xxx.......x... .o.
bytes_of_a_cut              ..........x... .o.
halo_exchange               xxxxx..x.xxx.. o..
weight_gradient             xxxxx..x.xxx.. o..
stationary_x                xxxxx..x.xx... o..
memory_and_traffic          ..........x... .o.
shard_optimizer             xxxx.x.xxxx... oo.
checkpoints                 .............. .o.
recomputed_gradients        xxxx...xxxx.xx oo.
fetch_schedule              ..........x... ...
route                       xxxxxxxxxxx.xx oo.
moe_step                    xxxxxx.xxxx... o..
step_time                   xxx.....x.x... .o.
best_plan                   ........x.x... .o.
lbfgs_direction             ........x.x... ...
run_portions                xxx....xx.x.x. o..
best_interval               xxx.....x.x... ...
train_with_checkpoints      xxx....xxxx.xx o.o
pass_seconds                xxx.......x... .o.
entry                       oox.....x.x... .o.
find_trick                  ........x.x... ...
"""

MARKS = {name: "".join(marks) for name, *marks in map(str.split, TABLE.strip().splitlines())}

MAY_PASS = {
    "efficiency": "an estimate within 10 %, and 1 on one node whatever the times are",
    "elastic_limit": "a limit to six digits, by any method",
    "consensus_factor": "an eigenvalue to six digits",
    "gradient_noise_scale": "the same number in every unit",
    "train": "an error rate, right up to one sample",
    "choose": "times within 5 %",
    "entry": "a learning rate in few digits is one, too",
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
        loses = outcome.points < outcome.possible
        assert loses or "SABOTAGED" in outcome.printed, saboteur  # what a stuck run has printed is lost
        assert loses == (marks[saboteur] == "x"), (saboteur, outcome.first_fault)


def test_the_table_has_every_exercise_and_a_reason_for_each_exception() -> None:
    assert list(MARKS) == [exercise for _, exercise in EXERCISES]
    assert {name for name, marks in MARKS.items() if "o" in marks[: len(SABOTEURS)]} == MAY_PASS.keys()
    lists = len(SABOTEURS)
    assert {name for name, marks in MARKS.items() if marks[lists] == "x"} == NO_LISTS.keys()
