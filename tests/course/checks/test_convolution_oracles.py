"""The right values of chapter 12's checks are those of pixels counted one by one, and of the library's formula."""

from __future__ import annotations

import inspect
import re
from typing import Any

from course.building import text
from course.building.sources import sources
from course.checks.parallel_convolution import chapter, cut_bytes
from course.checks.parallel_convolution.tiles_of_images import common, lines, span
from course.judging.judged_notebook import check_cells
from minidl.parallel.spatial import halo_words
from tests.together import naming


def cases(exercise: str, *names: str) -> list[Any]:
    """The public and the hidden cases with these names."""
    parameters = inspect.signature(chapter.exercises[exercise]._check).parameters
    path = next(source.path for source in sources() if source.name == chapter.name)
    hidden = check_cells(text.read(path))[f"check_{exercise}"]
    found = [case for name in names for case in parameters[name].default]
    for name in names:
        listed = re.search(rf"^ *{name}=(\[.*?\]),? *(?:seed=\d+,?)?$", hidden, re.S | re.M)
        assert listed, f"no hidden cases {name} of {exercise}"
        found += eval(listed[1])
    return found


def test_the_halo_has_the_pixels_that_are_needed_and_not_there():
    for case in cases("bytes_of_a_cut", "slabs", "tiles"):
        N, C, H, W, _, K, stride, padding, h, w = case
        rows, columns = lines(H, h, K, stride, padding), lines(W, w, K, stride, padding)
        count = 0
        for r in rows:
            for c in columns:
                needed = {(i, j) for i in range(*r.needs) for j in range(*c.needs) if 0 <= i < H and 0 <= j < W}
                count += len(needed - {(i, j) for i in range(*r.has) for j in range(*c.has)})
        with naming(case):
            assert cut_bytes.halo(case) == N * C * count


def test_slabs_of_the_lecture_send_the_halo_of_the_formula():
    for K in (1, 3, 5):
        case = (3, 5, 24, 7, 2, K, 1, K // 2, 4, 1)
        assert cut_bytes.halo(case) == 3 * halo_words(K, 7, 5, 3)


def test_halos_come_from_neighbours_only():
    for h, w, _, _, H, W, *kernel in cases("halo_exchange", "slabs", "grids", "long"):
        check_neighbours(H, h, *kernel)
        check_neighbours(W, w, *kernel)


def test_gradients_of_halos_go_to_neighbours_only():
    for p, _, _, H, _, _, *kernel in cases("weight_gradient", "cases"):
        check_neighbours(H, p, *kernel)


def check_neighbours(n: int, p: int, *kernel: int) -> None:
    """What the docstrings promise: at least a line of the output on each rank, and no line from further away."""
    each = lines(n, p, *kernel)
    for i, one in enumerate(each):
        with naming(n, p, *kernel, f"rank {i}"):
            assert one.needs[1] - one.needs[0] >= kernel[0]
            near = [j for other in each[max(i - 1, 0) : i + 2] for j in common(one.inside, other.has)]
            assert near == list(range(*one.inside)) or one.inside[0] >= one.inside[1]
            assert one.has == span(n, p, i)
