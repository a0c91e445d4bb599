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
