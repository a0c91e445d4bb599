"""The reports of chapter 16: whatever the seed, each shows its trick alone, and its clean twin shows none."""

import ast

import pytest

from course.checks.not_fooling_the_masses.planted_reports import TRICKS, pair
from course.setup.bootstrap import ROOT
from tests.tiers import all_but_first_exhaustive

TEXT = (ROOT / "course/assignments/16_not_fooling_the_masses.py").read_text(encoding="utf-8")


def solution():
    """`find_trick` of the assignment's solution."""
    from math import isclose, sqrt
    from statistics import mean, variance

    names = {"isclose": isclose, "sqrt": sqrt, "mean": mean, "variance": variance}
    functions = [node for node in ast.parse(TEXT).body if isinstance(node, ast.FunctionDef)]
    exec(compile(ast.Module(functions, []), "16", "exec"), names)
    return names["find_trick"]


@pytest.mark.parametrize("first", all_but_first_exhaustive([0, 40, 80, 120, 160]))
def test_whatever_the_seed_the_solution_names_the_trick_and_passes_the_clean_twin(first: int) -> None:
    find_trick = solution()
    for seed in range(first, first + 40):
        for trick in TRICKS:
            planted, clean = pair(trick, seed)
            assert [find_trick(one.claim, one.rows) for one in (planted, clean)] == [trick, "clean"], seed
