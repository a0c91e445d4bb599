"""`minidl train --plan pp=...,recompute=true`: the same bits, and one sentence for what cannot be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import assert_same_bits, minidl, refused

pytestmark = pytest.mark.timeout(300)


def test_a_plan_that_recomputes_trains_to_the_same_bits(tmp_path: Path):
    for name, plan in (("plain", "pp=2,micro_batches=4"), ("recomputed", "pp=2,micro_batches=4,recompute=true")):
        options = ("--model", "mlp", "--epochs", 1, "--on", "simulation", "--plan", plan, "--out", name)
        done = minidl(tmp_path, "train", *options)
        assert done.returncode == 0, done.stderr
    assert_same_bits(tmp_path / "plain", tmp_path / "recomputed")
    assert "recompute=true" in (tmp_path / "recomputed" / "config.json").read_text()


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ("pp=2,recompute=maybe", "recompute must be True or False, got maybe"),
        ("pp=2,recompute=true,schedule=pipedream,weight_versions=latest", "recompute=True needs the weights of the"),
    ],
)
def test_what_cannot_be_recomputed_is_refused(capsys: pytest.CaptureFixture[str], plan: str, sentence: str):
    assert sentence in refused(capsys, "train", "--model", "mlp", "--plan", plan)
