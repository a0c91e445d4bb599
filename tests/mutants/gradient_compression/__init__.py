"""Known answers to the exercises of chapter 09."""

from __future__ import annotations

from tests.mutants.gradient_compression import (
    corrected_entries_answers,
    qsgd_answers,
    sparse_sum_answers,
    sparsify_answers,
    top_k_step_answers,
)

FILES = (sparsify_answers, top_k_step_answers, corrected_entries_answers, qsgd_answers, sparse_sum_answers)
MUTANTS = [mutant for file in FILES for mutant in file.MUTANTS]
ALTERNATIVES = [alternative for file in FILES for alternative in file.ALTERNATIVES]
