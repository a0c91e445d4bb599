"""Answers to the exercises of chapter 02, a file an exercise."""

from __future__ import annotations

from tests.mutants.minibatch_sgd import (
    adam_step_answers,
    corrected_step_answers,
    gradient_variance_answers,
    minibatches_answers,
    momentum_step_answers,
    training_loop_answers,
)

ANSWERS = (
    minibatches_answers,
    gradient_variance_answers,
    momentum_step_answers,
    corrected_step_answers,
    adam_step_answers,
    training_loop_answers,
)
MUTANTS = [mutant for answers in ANSWERS for mutant in answers.MUTANTS]
ALTERNATIVES = [alternative for answers in ANSWERS for alternative in answers.ALTERNATIVES]
