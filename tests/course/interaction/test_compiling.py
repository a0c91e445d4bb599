"""The bar for compiling counts the kernels that training needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.interaction.compiling import KERNELS
from course.setup.bootstrap import ROOT
from tests.tiers import all_but_first_exhaustive

PROGRAM = """
from course.interaction.compiling import shown
from minidl.kernels.jit import first_calls
with shown() as compiling:
    first_calls.warm_up()
print(compiling.compiled)
"""


def kernels_compiled(**environment: str) -> int:
    """The kernels that a process of its own compiles as a lecture begins."""
    own = {**os.environ, **environment, "PYTHONPATH": str(ROOT)}
    return int(subprocess.run([sys.executable, "-c", PROGRAM], env=own, capture_output=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("is_empty", all_but_first_exhaustive([False, True]))
def test_a_full_cache_compiles_nothing_and_an_empty_one_what_the_bar_expects(is_empty: bool, tmp_path: Path) -> None:
    if is_empty:
        assert kernels_compiled(NUMBA_CACHE_DIR=str(tmp_path)) == KERNELS
    else:
        kernels_compiled()  # unless an earlier test has done so
        assert kernels_compiled() == 0
