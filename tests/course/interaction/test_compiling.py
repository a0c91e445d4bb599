"""The bar for compiling counts the kernels that training needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.interaction.compiling import KERNELS
from course.setup.bootstrap import ROOT

PROGRAM = """
from course.interaction.compiling import shown
from minidl.kernels.jit import first_calls
with shown() as compiling:
    first_calls.warm_up()
print(compiling.compiled)
"""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_an_empty_cache_compiles_as_many_kernels_as_the_bar_expects_and_a_full_one_none(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    counts = [
        int(subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True).stdout)
        for _ in range(2)
    ]
    assert counts == [KERNELS, 0]
