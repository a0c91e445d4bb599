"""The errata of chapter 06 in course/errata.md: what is right instead."""

from __future__ import annotations

import pytest

from course.setup.bootstrap import ROOT


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_t_mod_g_names_a_worker_that_does_not_exist_and_skips_the_last_one(workers: int) -> None:
    steps = range(1, 4 * workers + 1)
    assert {t % workers for t in steps} == set(range(workers))
    served = [(t - 1) % workers + 1 for t in steps]
    assert served == 4 * list(range(1, workers + 1))


def test_the_lecture_quotes_the_published_abstract_of_dean_et_al() -> None:
    text = (ROOT / "course" / "lectures" / "06a_staleness.py").read_text(encoding="utf-8")
    prose = " ".join(text.replace("\n#", " ").split())
    assert '"30x larger than previously reported", on 16 million images of 21,000 categories' in prose
