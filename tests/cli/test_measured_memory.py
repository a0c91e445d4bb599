"""minidl memory --measure: what the arrays of a run held, beside the formula."""

import json

import pytest

from tests.cli.command import refused, succeeds

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("plan", ["dp=2,shard=3", "pp=2,micro_batches=3,recompute=full"])
def test_the_run_holds_what_the_formula_says(plan):
    said = json.loads(succeeds("memory", "--plan", plan, "--model", "mlp", "--batch-size", 36, "--measure", "--json"))
    measured = said["measured"]
    assert measured["bytes"] == pytest.approx(said["bytes"], rel=0.02)
    assert len(measured["bytes_by_rank"]) == 2
    assert measured["bytes_by_rank"][said["rank"]] == measured["bytes"] <= measured["traced"]


def test_the_table_has_both_and_the_sentence_what_the_tracer_saw_besides():
    said = succeeds("memory", "--model", "lenet", "--measure")
    assert said.splitlines()[1].split() == ["component", "formula", "measured", "difference"]
    assert "No rank's sum differs by more than 0.0" in said
    assert "more than the arrays: what operations need while they compute" in " ".join(said.split())
    assert "measured" not in succeeds("memory", "--model", "lenet")


def test_more_than_the_machine_has_is_refused_before_the_run():
    said = refused("memory", "--model", "gpt:layers=96,heads=96,width=12288", "--measure")
    assert "--measure runs 1 node on this machine, which has" in said
    assert "leave it out, or give a smaller model or minibatch" in said
