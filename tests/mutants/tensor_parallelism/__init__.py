"""Known answers to the exercises of chapter 10."""

from __future__ import annotations

from tests.mutants.tensor_parallelism import (
    attention_answers,
    column_linear_answers,
    cross_entropy_answers,
    embedding_answers,
    grid_answers,
    mesh_groups_answers,
    mlp_answers,
    row_linear_answers,
    summa_answers,
)

FILES = (
    column_linear_answers, row_linear_answers, mlp_answers, attention_answers, embedding_answers,
    cross_entropy_answers, summa_answers, mesh_groups_answers, grid_answers,
)  # fmt: skip
MUTANTS = [mutant for file in FILES for mutant in file.MUTANTS]
ALTERNATIVES = [alternative for file in FILES for alternative in file.ALTERNATIVES]
