"""Known answers to the exercises of chapter 11."""

from __future__ import annotations

from tests.mutants.pipelines import (
    bubble_answers,
    cut_answers,
    deadlock_answers,
    gpipe_answers,
    one_f_one_b_answers,
    run_stage_answers,
    weights_to_stash_answers,
)

FILES = (
    gpipe_answers, one_f_one_b_answers, run_stage_answers, cut_answers, deadlock_answers, weights_to_stash_answers,
    bubble_answers,
)  # fmt: skip
MUTANTS = [mutant for file in FILES for mutant in file.MUTANTS]
ALTERNATIVES = [alternative for file in FILES for alternative in file.ALTERNATIVES]
