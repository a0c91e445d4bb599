"""`minidl train --plan`: the axes of the mesh, the cuts of a pipeline, recomputation."""

import json

from tests.cli.command import QUICK, assert_same_bits, refuses, succeeds

TRAIN = ("train", "--model", "mlp", "--data", "spirals", "--on", "simulation", "--epochs", 1)


def test_one_replica_has_the_same_bits_wherever_the_model_is_cut_and_if_it_recomputes(tmp_path):
    settings = {"given": ",cuts=[1]", "measured": ",cuts=seconds", "counted": "", "recomputed": ",recompute=true"}
    for name, setting in settings.items():
        succeeds(*TRAIN, "--plan", f"pp=2,micro_batches=4{setting}", "--out", name)
        assert json.loads((tmp_path / name / "config.json").read_text())["nodes"] == 2
        assert_same_bits(tmp_path / name, tmp_path / "given")
    assert "recompute=true" in (tmp_path / "recomputed" / "config.json").read_text()


def test_a_plan_may_divide_layers_and_a_minibatch_may_have_fewer_samples_than_nodes(tmp_path):
    succeeds(*TRAIN, "--plan", "dp=2,pp=2,tp=2,micro_batches=2", "--batch-size", 7, "--out", "divided")
    assert json.loads((tmp_path / "divided" / "config.json").read_text())["nodes"] == 8


def test_a_plan_may_order_its_axes_which_changes_no_bit(tmp_path):
    for name, setting in {"usual": "", "ordered": ",axes=[tp, pp, dp]"}.items():
        succeeds(*TRAIN, "--plan", f"dp=2,tp=2,micro_batches=2{setting}", "--out", name)
    assert_same_bits(tmp_path / "ordered", tmp_path / "usual")


def test_a_plan_that_no_mesh_can_follow_ends_with_a_sentence():
    refuses(
        f"train {' '.join(QUICK)} --batch-size 32 --on simulation --plan",
        {
            "pp=9": "2 stages of the model cannot fill 9 chunks, and an empty chunk computes nothing: use at most 2",
            "pp=2,micro_batches=33": "32 samples, cannot be cut into 33 micro-batches: use at most 32",
            "pp=2,dp=2,micro_batches=17": "16 samples, cannot be cut into 17 micro-batches: use at most 16",
            "pp=2,dp=33,micro_batches=1": "cannot be shared by 33 replicas: batch_size must be at least 33",
            "pp=2,dp=2 --nodes 3": "--plan pp=2,dp=2 needs 4 nodes, got --nodes 3: leave out --nodes",
            "pp=0 --nodes 4": "--plan pp=0: pp must be at least 1, got 0",
            "pp=2.5": "pp must be a whole number, got 2.5",
            "pp": "'pp' is no plan: write the extent of each axis",
            "pp=2,tp": "--plan 'pp=2,tp' is no plan: write the extent of each axis",
            "pp:2": "--plan 'pp:2' is no plan: write the extent of each axis",
            "pp=2,schedule=1fb1": "did you mean '1f1b'",
            "pp=2,schedule=1F1B": "got '1F1B': did you mean '1f1b'",
            "pp=2,schedule=interleaved,micro_batches=3": "use a multiple of 2",
            "pp=2,schedule=pipedream,micro_batches=4": "leave out micro_batches",
            "pp=2,cuts=secs": "cuts must be 'flops' or 'seconds', got 'secs'",
            "pp=2,cuts=3": "cuts must be a word or a sequence (a whole number, ...), got 3",
            "pp=2,cuts=[0]": "cuts must be 1 rising number from 1 to",
            "pp=2,cuts=[1,2]": "cuts must be 1 rising number from 1 to",
            "pp=2,recompute=maybe": "recompute must be True or False, got maybe",
            "pp=2,recompute=true,schedule=pipedream,weight_versions=latest": "recompute=True needs the weights of the",
            "tp=7": "layers.0 cannot be divided by 7 ranks",
            "tp=2,tp=2": "tp is given twice",
            "dp=2,axes=[dp,tp]": "Hybrid: axes must name dp, pp, tp, each once and in any order, got ('dp', 'tp')",
            "dp=2,axes=[dp": "is no plan: write the extent of each axis",
            "ep=2": "an axis or a setting must be 'dp', 'pp', 'tp', ",
        },
    )
