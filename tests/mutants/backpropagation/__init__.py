"""Answers to the exercises of chapter 01, a file an exercise."""

from __future__ import annotations

from tests.mutants.backpropagation import (
    backward_answers,
    check_gradient_answers,
    live_bytes_answers,
    vjp_broadcast_add_answers,
    vjp_matmul_answers,
    vjp_max_answers,
    vjp_mul_answers,
)

ANSWERS = (
    vjp_mul_answers,
    vjp_max_answers,
    vjp_matmul_answers,
    vjp_broadcast_add_answers,
    backward_answers,
    check_gradient_answers,
    live_bytes_answers,
)
MUTANTS = [mutant for answers in ANSWERS for mutant in answers.MUTANTS]
ALTERNATIVES = [alternative for answers in ANSWERS for alternative in answers.ALTERNATIVES]
