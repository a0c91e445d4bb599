"""`minidl plan`: the table, the picture, JSON, cluster files; bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import refused, succeeds

GPT = "gpt:layers=6,heads=6,width=576,context=384,vocabulary=5003"
CLUSTER = """
nodes = 2
accelerators = 2
peak = "20 TFLOP/s"
memory = "300 MB"
memory_rate = "300 GB/s"
inside = "10 GB/s"
between = "25 Gbit/s"
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str = CLUSTER) -> str:
        Path("cluster.toml").write_text(text)
        return "cluster.toml"

    return write


def test_the_best_plans_are_printed_drawn_and_explained(cluster, pictures):
    asked = ("plan", "--model", GPT, "--cluster", cluster(), "--batch-size", 24, "--top", 3, "--out", "out")
    said = succeeds(*asked, "--format", "png,svg")
    assert "on 2 x 2 accelerators" in said
    assert Path("out/plans.png").stat().st_size > 10_000
    assert "formula" in Path("out/plans.svg").read_text()
    found = json.loads(succeeds(*asked, "--json"))
    assert len(found["plans"]) == len(found["why"]) == 3
    for sentence in found["why"]:
        assert sentence in said
    for number, plan in enumerate(found["plans"]):
        assert plan["dp"] * plan["pp"] * plan["tp"] == 4
        assert sum(plan["seconds_by_cause"].values()) == pytest.approx(plan["seconds"])
        assert sum(plan["bytes_by_component"].values()) == plan["bytes"] <= 300e6
        assert plan["seconds"] >= found["plans"][max(number - 1, 0)]["seconds"]
        assert set(plan["sent_by_axis"]) == {axis for axis in ("dp", "pp", "tp") if plan[axis] > 1}


def test_a_plan_of_experts_is_printed_as_it_is_typed_and_with_what_minidl_train_refuses(cluster):
    model = "gpt:layers=4,heads=4,width=256,context=128,experts=4,vocabulary=5003"
    said = succeeds("plan", "--model", model, "--cluster", cluster(), "--batch-size", 24, "--top", 1, "--out", "out")
    assert ["1", "1", "1", "1", "4", "3"] in [line.split()[:6] for line in said.splitlines()]  # number, dp, pp, tp, ep
    assert "\nep=4,shard=3: " in said
    assert "minidl train does not combine these ways (Hybrid: ep=4 goes with dp and pp: leave out shard" in said


def test_more_nodes_and_another_model_are_typed(cluster):
    asked = ("plan", "--model", "lenet", "--cluster", cluster(), "--batch-size", 24, "--out", "out", "--json")
    few, more = (json.loads(succeeds(*asked, "--nodes", count))["plans"][0] for count in (1, 3))
    assert few["dp"] * few["pp"] == 2
    assert more["dp"] * more["pp"] == 6


def test_published_steps_are_printed_with_what_is_assumed_of_each():
    said = succeeds("plan", "--published")
    assert "Narayanan 1008B" in said
    assert "1: assumed: " in said
    rows = json.loads(succeeds("plan", "--published", "--json"))
    assert len(rows) == 50
    for row in rows:
        assert row["error"] == pytest.approx(row["formula"] / row["seconds"] - 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('"300 MB"', "300"), 'memory = 300: it has no unit; write it as memory = "24 GB"'),
        (('"300 MB"', '"300"'), "it has no unit"),
        (('"300 MB"', '"300 Mb"'), "reads as bits: write 300 MB for bytes"),
        (('"20 TFLOP/s"', '"20 THz"'), "is no speed of computing: write it as 312 TFLOP/s"),
        (('between = "25 Gbit/s"', ""), 'lacks the key between: add a line such as between = "25 Gbit/s"'),
        (("between", "betwen"), "between"),
        (("nodes = 2", "nodes = 2.5"), "nodes = 2.5: it must be a whole number without quotes"),
        (("nodes = 2", 'nodes = "2"'), "it must be a whole number without quotes"),
        (("nodes = 2", "nodes"), "is no TOML file"),
        (('"300 MB"', '"20 MB"'), "no arrangement fits: "),
        (("nodes = 2", "nodes = 7"), "choose a minibatch that is a multiple of 14"),
    ],
)
def test_clusters_that_cannot_be_are_refused(cluster, change, says):
    file = cluster(CLUSTER.replace(*change))
    assert says in refused("plan", "--model", GPT, "--cluster", file, "--batch-size", 25)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (("--model", "gpt:layer=3"), "a setting of gpt"),
        (("--model", "gpt:layers=many"), "layers must be a whole number"),
        (("--model", "gpt:3"), "write gpt:layers=3"),
        (("--model", "gpt:width=100,heads=3"), "width=100 is no multiple of heads=3"),
        (("--model", "alexnet"), "give your own by --data, a folder of images or an npz file"),
        (("--cluster", "b100"), "--cluster"),
        (("--nodes", 0), "--nodes must be at least 1"),
        (("--batch-size", 0), "--batch-size must be at least 1"),
        (("--top", 0), "--top must be at least 1"),
    ],
)
def test_what_cannot_be_planned_is_refused(typed, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert says in refused("plan", *typed)
