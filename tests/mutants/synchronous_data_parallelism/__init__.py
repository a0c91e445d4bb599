"""Answers to the exercises of chapter 05, a file an exercise."""

from __future__ import annotations

from tests.mutants.synchronous_data_parallelism import (
    barrier_time_answers,
    bucketed_all_reduce_answers,
    data_parallel_step_answers,
    efficiency_answers,
    sharded_sampler_answers,
)

ANSWERS = (
    sharded_sampler_answers,
    data_parallel_step_answers,
    bucketed_all_reduce_answers,
    efficiency_answers,
    barrier_time_answers,
)
MUTANTS = [mutant for answers in ANSWERS for mutant in answers.MUTANTS]
ALTERNATIVES = [alternative for answers in ANSWERS for alternative in answers.ALTERNATIVES]
