"""`minidl train --plan`: the axes of the mesh, the cuts of a pipeline, recomputation."""

import csv
import json
from pathlib import Path

import pytest

from tests.cli.command import QUICK, assert_same_bits, refuses, succeeds
from tests.tiers import exhaustively

TRAIN = ("train", "--model", "mlp", "--data", "spirals", "--on", "simulation", "--epochs", 1)


def test_one_replica_has_the_same_bits_wherever_the_model_is_cut_and_if_it_recomputes(tmp_path):
    settings = {"given": ",cuts=[1]", "measured": ",cuts=seconds", "counted": "", "recomputed": ",recompute=true"}
    for name, setting in settings.items():
        succeeds(*TRAIN, "--plan", f"pp=2,micro_batches=4{setting}", "--out", name)
        assert json.loads((tmp_path / name / "config.json").read_text())["nodes"] == 2
        assert_same_bits(tmp_path / name, tmp_path / "given")
    assert "recompute=true" in (tmp_path / "recomputed" / "config.json").read_text()


def test_attention_may_be_recomputed_by_a_plan_and_by_a_model():
    Path("my.txt").write_text("abcdefghi\n" * 90)
    text = ("train", "--data", "my.txt", "--epochs", 1, "--on", "simulation")
    model, plan = "gpt:layers=2,heads=2,width=8,context=8", "pp=2,tp=2"
    for name, recomputed_by_model, recomputed_by_plan in (
        ("kept", "", ""),
        ("by the plan", "", ",recompute=selective"),
        ("by the model", ",recompute=selective", ""),
    ):
        succeeds(*text, "--model", model + recomputed_by_model, "--plan", plan + recomputed_by_plan, "--out", name)
        assert_same_bits(Path(name), Path("kept"))


def test_a_plan_may_divide_layers_and_a_minibatch_may_have_fewer_samples_than_nodes(tmp_path):
    succeeds(*TRAIN, "--plan", "dp=2,pp=2,tp=2,micro_batches=2", "--batch-size", 7, "--out", "divided")
    assert json.loads((tmp_path / "divided" / "config.json").read_text())["nodes"] == 8


def test_a_plan_may_divide_images_and_says_what_cannot_be_divided(tmp_path):
    images = ("train", "--model", "lenet", "--on", "simulation", "--epochs", 1)
    succeeds(*images, "--plan", "dp=2,spatial=2x1", "--out", "tiles")
    assert json.loads((tmp_path / "tiles" / "config.json").read_text())["nodes"] == 4
    refuses("train --model mlp", {"--plan spatial=2": "MLP cannot be divided by 2 x 1 ranks"})
    refuses("train --model lenet", {"--plan spatial=2x": "spatial is a number of slabs of rows, or rows x columns"})


def test_a_plan_may_divide_experts_and_the_report_says_what_they_were_sent():
    Path("my.txt").write_text("abcdefghi jk\n" * 90)
    text = ("train", "--data", "my.txt", "--epochs", 1, "--on", "simulation", "--batch-size", 16, "--json")
    model = "gpt:layers=2,heads=2,width=8,context=8,experts=4"
    said = json.loads(succeeds(*text, "--model", f"{model},top=2,capacity_factor=0.9", "--plan", "dp=2,ep=2"))
    assert said["nodes"] == 4
    windows = 9 * 13 * 90 // 10 // 8
    for counts in said["routing"][0].values():
        assert sum(counts["load"]) == 2 * 8 * windows
        assert 0 < counts["dropped"] < sum(counts["load"])
    shown = succeeds(*text[:-1], "--model", model, "--plan", "ep=2")
    assert "of the tokens" in shown
    assert "dropped" in shown
    refuses(
        "train --data my.txt --on simulation --batch-size 16",
        {
            f"--model {model} --plan ep=3": "4 experts cannot be divided by 3 ranks",
            "--model gpt:width=8,heads=2,context=8,top=2": "top, capacity_factor and balance are settings of experts",
            f"--model {model},top=5": "top must be",
            "--model gpt:width=8,heads=2,context=8 --plan ep=2": "the GPT has none: leave out ep",
        },
    )
    refuses("memory --data my.txt", {f"--model {model} --plan ep=2": "how many tokens meet in the experts of a rank"})


def test_a_plan_may_name_a_file_of_a_schedule_with_which_it_has_the_bits_of_the_kind_in_the_file(tmp_path):
    succeeds("schedule", "zb-h1", "--stages", 2, "--micro-batches", 3, "--out", "drawn by us")
    for name, schedule in {"kind": "zb-h1,micro_batches=3", "file": "drawn by us/zb-h1.csv"}.items():
        succeeds(*TRAIN, "--plan", f"pp=2,dp=2,schedule={schedule}", "--out", name)
    assert_same_bits(tmp_path / "file", tmp_path / "kind")
    assert json.loads((tmp_path / "file" / "config.json").read_text())["nodes"] == 4
    succeeds("train", "--resume", "file", "--epochs", 2)  # with the same file


def test_a_plan_may_say_which_layers_are_divided_how(tmp_path):
    layouts = {
        "usual": "",
        "typed": ",layout={'layers.0': ColumnLinear, layers.1: row-linear}",
        "whole outputs": ",layout={*.0: column_linear(gather=always)}",
    }
    for name, setting in layouts.items():
        succeeds(*TRAIN, "--plan", f"tp=2,micro_batches=2{setting}", "--out", name)
    assert_same_bits(tmp_path / "typed", tmp_path / "usual")
    sent = [sum_of_bytes(tmp_path / name) for name in ("usual", "whole outputs")]
    assert sent[0] != sent[1]


def sum_of_bytes(folder: Path) -> int:
    return sum(int(row["bytes"]) for row in csv.DictReader((folder / "metrics.csv").open()))


@pytest.mark.parametrize("model", ["lenet", *exhaustively("resnet")])
def test_the_layers_of_the_default_model_and_of_lenet_are_divided(model):
    few = ("--import", few_digits(), "--data", "few", "--model", model, "--epochs", 1)
    said = succeeds("train", *few, "--on", "simulation", "--plan", "dp=2,pp=2,tp=2", "--batch-size", 32, "--out", model)
    assert f"{model} (" in said


def few_digits() -> str:
    Path("few.py").write_text(
        "from minidl import data\n"
        "def few() -> data.Splits:\n"
        "    return data.Splits(*(data.Dataset(part.x[:40], part.y[:40]) for part in data.digits()))\n"
    )
    return "few.py"


def test_a_plan_splits_the_workers_of_a_strategy_with_servers():
    servers = "parameter_server:servers=2,staleness=0"
    said = succeeds(*TRAIN, "--strategy", servers, "--plan", "dp=2,pp=2,micro_batches=2", "--batch-size", 24)
    assert f"strategy {servers},replica=hybrid(pp=2,micro_batches=2)" in said
    refuses(
        "train --model mlp --on simulation",
        {
            "--strategy gossip --plan pp=2": "both say how to train: give one of them, or a strategy with servers",
            "--strategy hybrid:pp=2 --plan dp=2": "both say how to train",
            "--strategy downpour:replica=hybrid(pp=2) --plan tp=2": "both split the workers: leave out replica",
            "--strategy downpour --plan pp=2,shard=1": "leave out shard=1",
            "--strategy downpour --plan pp=2 --elastic": 'on_failure="continue" lets the other workers finish',
        },
    )


def test_a_plan_that_no_mesh_can_follow_ends_with_a_sentence():
    Path("three.csv").write_text("0F0,0B0\n1F0,1B0\n2F0,2B0\n")
    Path("bad.csv").write_text("0F0\n1F0\n")
    Path("updates.csv").write_text("0F0,0B0,0U0,0F1,0B1,0U1\n")
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
            "pp=2,recompute=maybe": "recompute must be True or False or full or selective, got maybe",
            "pp=2,recompute=selective": "selective recomputation computes attention again in backward, and MLP has no",
            "pp=2,recompute=true,schedule=pipedream,weight_versions=latest": "recompute=True needs the weights of the",
            "pp=2,micro_batches=4,schedule=three.csv": "Hybrid: the schedule has stages=3, not 2: give pp=3",
            "pp=3,micro_batches=4,schedule=three.csv": "has micro_batches=1, not 4: leave out micro_batches",
            "pp=3,chunks_per_stage=2,schedule=three.csv": "has chunks_per_stage=1, not 2: leave out chunks_per_stage",
            "pp=3,schedule=none.csv": "cannot read or write none.csv: No such file or directory",
            "pp=3,schedule=./.": "cannot read or write .: Is a directory",
            "pp=2,schedule=bad.csv": "bad.csv: stage 0: U0 (update) needs B0 or W0, which is missing",
            "pp=2,schedule=three": "got 'three': or give the schedule of a CSV file",
            "schedule=updates.csv": "can be drawn and simulated only: use schedule='pipedream'",
            "tp=2,layout=columns": "layout must be {layer: kind, ...}, such as {fc1: column_linear}, got columns",
            "tp=2,'layout={layers.0}'": "layout must be {layer: kind, ...}, such as {fc1: column_linear}, got {lay",
            "tp=2,'layout={layers.0: columlinear}'": "hybrid: layout: layers.0 must be 'column_conv2d', 'column_li",
            "tp=2,'layout={layers.0: Column-Linear(gahter=always)}'": "did you mean 'gather'?",
            "tp=2,'layout={layers.0: column_linear(gather=no)}'": "gather must be 'never', 'evaluation' or 'always'",
            "tp=2,'layout={layer.0: column_linear}'": "no such layer: those with parameters are layers.0, layers.1",
            "tp=2,'layout={layers.*: row_conv2d}'": "layers.0 cannot be divided by 2 ranks: RowConv2d divides a",
            "tp=2,'layout={*: row_linear}'": "the model cannot be divided by 2 ranks: RowLinear divides a la",
            "tp=2,'layout={layers.0: grid_conv2d(chanels=2)}'": "did you mean 'channels'?",
            "tp=2,'layout={layers.0: grid_conv2d}'": "layers.0 cannot be divided by 2 ranks: GridConv2d divides",
            "tp=2,sample_slices=true": "linear layers, of AlexNet, VGG16 or LeNet, not for MLP: leave out sample",
            "tp=2,layot=none": "did you mean 'layout'?",
            "tp=7": "layers.0 cannot be divided by 7 ranks",
            "tp=2,tp=2": "tp is given twice",
            "dp=2,axes=[dp,tp]": "Hybrid: axes must name dp, pp, tp, each once and in any order, got ('dp', 'tp')",
            "dp=2,axes=[dp": "is no plan: write the extent of each axis",
            "dp=2,shard=4": "Hybrid: shard must be from 1 to 3, got 4",
            "tp=2,shard=3": "shares the state of training out among the replicas, and there is one: give dp=2 or more",
            "dp=2,shards=3": "did you mean 'shard'?",
            "xp=2": "an axis or a setting must be 'dp', 'ep', 'pp', 'spatial', 'tp', ",
        },
    )
