"""Known answers to the exercises of chapter 08."""

from __future__ import annotations

from tests.mutants.large_minibatches import (
    best_batch_answers,
    best_measured_batch_answers,
    corrected_run_answers,
    gradient_noise_scale_answers,
    lars_step_answers,
    noise_of_ranks_answers,
    scheduled_rate_answers,
)

FILES = (
    scheduled_rate_answers,
    corrected_run_answers,
    gradient_noise_scale_answers,
    noise_of_ranks_answers,
    lars_step_answers,
    best_batch_answers,
    best_measured_batch_answers,
)
MUTANTS = [mutant for file in FILES for mutant in file.MUTANTS]
ALTERNATIVES = [alternative for file in FILES for alternative in file.ALTERNATIVES]
