"""Answers to the exercises of chapter 04, a file an exercise."""

from __future__ import annotations

from tests.mutants.messages_and_collectives import (
    all_gather_answers,
    all_reduce_answers,
    broadcast_answers,
    collective_cost_answers,
    is_ring_answers,
    recursive_doubling_answers,
    reduce_scatter_answers,
)

ANSWERS = (
    broadcast_answers,
    reduce_scatter_answers,
    all_gather_answers,
    all_reduce_answers,
    recursive_doubling_answers,
    collective_cost_answers,
    is_ring_answers,
)
MUTANTS = [mutant for answers in ANSWERS for mutant in answers.MUTANTS]
ALTERNATIVES = [alternative for answers in ANSWERS for alternative in answers.ALTERNATIVES]
