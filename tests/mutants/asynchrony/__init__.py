"""Known answers to the exercises of chapter 06."""

from __future__ import annotations

from tests.mutants.asynchrony import (
    choose_answers,
    downpour_worker_answers,
    locked_step_answers,
    lost_updates_answers,
    push_pull_answers,
    serve_answers,
    ssp_gate_answers,
)

FILES = (
    serve_answers,
    push_pull_answers,
    downpour_worker_answers,
    ssp_gate_answers,
    lost_updates_answers,
    locked_step_answers,
    choose_answers,
)
MUTANTS = [mutant for file in FILES for mutant in file.MUTANTS]
ALTERNATIVES = [alternative for file in FILES for alternative in file.ALTERNATIVES]
