"""`minidl train --plan`: the axes of the mesh, the cuts of a pipeline."""

import json

import pytest

from tests.cli.command import QUICK, assert_same_bits, minidl, refused

pytestmark = pytest.mark.timeout(300)


def test_a_plan_may_cut_by_measured_seconds_by_flops_or_where_it_says(tmp_path):
    """One replica has the bits of one node wherever the model is cut."""
    for name, setting in (("measured", ",cuts=seconds"), ("counted", ""), ("given", ",cuts=[1]")):
        plan = f"pp=2,micro_batches=4{setting}"
        result = minidl(tmp_path, "train", *QUICK, "--on", "simulation", "--plan", plan, "--out", name)
        assert result.returncode == 0, result.stderr
        assert json.loads((tmp_path / name / "config.json").read_text())["nodes"] == 2
    assert_same_bits(tmp_path / "measured", tmp_path / "given")
    assert_same_bits(tmp_path / "counted", tmp_path / "given")


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ("secs", "cuts must be 'flops' or 'seconds', got 'secs'"),
        ("3", "cuts must be a word or a sequence (a whole number, ...), got 3"),
        ("[0]", "cuts must be 1 rising number from 1 to"),
        ("[1,2]", "cuts must be 1 rising number from 1 to"),
    ],
)
def test_other_cuts_of_a_plan_end_with_a_sentence(capsys, cuts, message):
    assert message in " ".join(refused(capsys, "train", *QUICK, "--plan", f"pp=2,cuts={cuts}").split())


def test_a_plan_may_divide_layers(tmp_path):
    plan = "dp=2,pp=2,tp=2,micro_batches=2"
    result = minidl(tmp_path, "train", *QUICK, "--on", "simulation", "--plan", plan, "--out", "divided")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "divided" / "config.json").read_text())["nodes"] == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("pp=9",), "2 stages of the model cannot fill 9 chunks, and an empty chunk computes nothing: use at most 2"),
        (("pp=2,micro_batches=33",), "32 samples, cannot be cut into 33 micro-batches: use at most 32"),
        (("pp=2,dp=2,micro_batches=17",), "16 samples, cannot be cut into 17 micro-batches: use at most 16"),
        (("pp=2,dp=33,micro_batches=1",), "cannot be shared by 33 replicas: batch_size must be at least 33"),
        (("pp=2,dp=2", "--nodes", 3), "--plan pp=2,dp=2 needs 4 nodes, got --nodes 3: leave out --nodes"),
        (("pp=0",), "pp must be at least 1, got 0"),
        (("pp=2.5",), "pp must be a whole number, got 2.5"),
        (("pp",), "'pp' is no plan: write the extent of each axis"),
        (("pp=2,schedule=1fb1",), "did you mean '1f1b'"),
        (("pp=2,schedule=interleaved,micro_batches=3",), "use a multiple of 2"),
        (("pp=2,schedule=pipedream,micro_batches=4",), "leave out micro_batches"),
    ],
)
def test_a_plan_that_no_pipeline_can_follow_ends_with_a_sentence(capsys, options, message):
    options = ("--plan", *options, "--batch-size", 32, "--model", "mlp", "--on", "simulation")
    assert message in " ".join(refused(capsys, "train", *options).split())


def test_a_minibatch_may_have_fewer_samples_than_a_replica_has_stages(tmp_path):
    small = ("--model", "mlp", "--data", "spirals", "--epochs", "1")
    options = (*small, "--on", "simulation", "--plan", "pp=2,micro_batches=1", "--batch-size", 1)
    assert minidl(tmp_path, "train", *options, "--out", "out").returncode == 0


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("tp=7", "layers.0 cannot be divided by 7 ranks"),
        ("tp=0", "tp must be at least 1, got 0"),
        ("tp=2,tp=2", "tp is given twice"),
        ("tp=two", "tp must be"),
        ("ep=2", "an axis or a setting must be 'dp', 'pp', 'tp', "),
    ],
)
def test_axes_that_do_not_fit_end_with_a_sentence(capsys, plan, message):
    assert message in " ".join(refused(capsys, "train", *QUICK, "--plan", plan).split())
