"""The errata of chapter 08 in course/errata.md: published numbers are the same everywhere, and claims are measured."""

from __future__ import annotations

import re
from functools import partial

import pytest

from course.setup.bootstrap import ROOT
from minidl import cluster, data, nn, optim, parallel

LECTURES = ROOT / "course" / "lectures"
ENTRY = re.compile(r"## Chapter 08\n(.*?)(?=\n## |\Z)", re.DOTALL)
ERROR = re.compile(r"\d\d\.\d\d ± \d\.\d\d")
FIGURE_3 = {"256": "23.60 ± 0.12", "8k": "23.74 ± 0.09", "16k": "24.79 ± 0.27", "32k": "27.55 ± 0.28",
            "64k": "33.96 ± 0.80"}  # fmt: skip
TABLES = {"26.22 ± 0.03", "41.67 ± 0.10", "23.68 ± 0.09", "24.84 ± 0.37", "25.88 ± 0.56"}
"""Tables 1 and 2a: the square root and the fixed rate at 8k, rate 0.2 at 256, none and constant warm-up at 8k."""


def text_of(name: str) -> str:
    return (LECTURES / f"{name}.py").read_text(encoding="utf-8")


def page() -> str:
    found = ENTRY.search((ROOT / "course" / "errata.md").read_text(encoding="utf-8"))
    assert found
    return found[1]


def test_the_page_has_the_errors_that_the_legends_of_figure_3_print() -> None:
    for size, error in FIGURE_3.items():
        assert f"{error} % for {size}" in page()


@pytest.mark.parametrize("name", ["02a_noisy_gradients", "08a_linear_scaling", "08b_warm_up"])
def test_a_lecture_quotes_no_other_error_of_the_paper(name: str) -> None:
    quoted = set(ERROR.findall(text_of(name)))
    assert quoted
    assert quoted <= set(FIGURE_3.values()) | TABLES


def test_the_caption_of_table_2a_has_the_error_of_another_rate() -> None:
    assert re.search(r"say 23\.60 %; 23\.68 %\s+belongs to rate 0\.2", page())
    steps = r"rates 0\.05, 0\.1\s.*and 0\.2 .*23\.60 ± 0\.12 and 23\.68 ± 0\.09"
    assert re.search(steps, text_of("02c_step_sizes"), re.DOTALL)
    assert re.search(r"23\.68 ± 0\.09 %\s+(# )?is\s+(# )?the\s+(# )?row of rate 0\.2", text_of("08a_linear_scaling"))


def last_epoch(size: int, rate: float) -> tuple[float, float]:
    """The training loss and the test loss after 10 epochs."""
    optimizer = partial(optim.SGD, lr=rate, momentum=0.9)
    model = partial(nn.models.MLP, 64, 64, 10)
    job = parallel.Job(model, data.digits, optimizer, batch_size=size, epochs=10)
    row = parallel.train(job, on=cluster.Simulation(trace="ledger")).history[-1]
    return row["loss"], row["test_loss"]


def test_a_large_minibatch_at_the_rate_of_a_small_one_has_not_learned_its_training_set() -> None:
    small, large = last_epoch(16, 0.05), last_epoch(512, 0.05)
    assert large[0] > 5 * small[0]
    assert large[1] - large[0] < small[1] - small[0]
