"""Known answers to the exercises of chapter 07."""

from __future__ import annotations

from tests.mutants.averaging import (
    consensus_factor_answers,
    elastic_answers,
    elastic_limit_answers,
    gossip_answers,
    local_sgd_answers,
    majority_answers,
    mixing_matrix_answers,
    rounds_and_words_answers,
)

FILES = (
    elastic_answers, elastic_limit_answers, local_sgd_answers, rounds_and_words_answers, mixing_matrix_answers,
    consensus_factor_answers, gossip_answers, majority_answers,
)  # fmt: skip
MUTANTS = [mutant for file in FILES for mutant in file.MUTANTS]
ALTERNATIVES = [alternative for file in FILES for alternative in file.ALTERNATIVES]
