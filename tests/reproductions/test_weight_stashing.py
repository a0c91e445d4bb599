"""Weight stashing, shorter and with fewer seeds than the reproduction."""

from __future__ import annotations

from statistics import mean

from benchmarks.reproductions.weight_stashing import error


def test_eight_stages_train_with_stashing_and_fail_without() -> None:
    stashing, latest = ([error(rule, 0.15, seed, epochs=6) for seed in range(2)] for rule in ("stashing", "latest"))
    assert mean(latest) > mean(stashing) + 20
