"""`minidl memory`: the table, the picture, JSON, whether a device suffices, what a run holds; bad input."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command import refused, refuses, succeeds
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

MAPS = """
from minidl import nn

def maps() -> nn.Module:
    layers = nn.Conv2d(1, 10, 3, padding=1), nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(40, 3)
    return nn.Sequential(*layers)
"""
GPT = ("memory", "--model", "gpt:layers=3,width=48,context=32,vocabulary=98")


def shown(*options: object) -> dict:
    return json.loads(succeeds(*GPT, "--out", "out", "--json", *options))


def test_the_table_has_every_component_with_its_share_and_the_picture_is_drawn(pictures):
    said = succeeds(
        *GPT, "--plan", "dp=2,pp=2,tp=2", "--batch-size", 24, "--all-ranks", "--out", "out", "--format", "png,svg"
    )
    assert "of 8 at its peak, in " in said
    for component in ("weights", "gradients", "optimizer", "activations", "buffers"):
        assert component in said
    assert "100.0%" in said
    assert "0 to 1, 4 to 5 " in said
    assert "2 to 3, 6 to 7 " in said
    assert Path("out/memory.png").stat().st_size > 10_000
    assert "formula" in Path("out/memory.svg").read_text()


def test_shard_and_recompute_are_settings_of_the_plan():
    typed = shown("--plan", "dp=4,tp=2,shard=3,recompute=selective")
    assert shown("--plan", "dp=4,tp=2", "--shard", 3, "--recompute", "selective") == typed
    assert typed["nodes"] == 8
    assert sum(typed["by_component"].values()) == typed["bytes"] == sum(typed["by_layer"].values())
    assert shown("--nodes", 4, "--shard", 3) == shown("--plan", "dp=4,shard=3")


def test_a_device_suffices_or_the_first_change_that_would_help_is_named():
    memory = shown("--batch-size", 32)
    enough = shown("--batch-size", 32, "--device-memory", memory["bytes"] + 1000)
    assert (enough["fits"], enough["advice"]) == (True, f"It fits into {size(memory['bytes'] + 1000)}: 1 KB are left.")
    short = shown("--batch-size", 32, "--device-memory", memory["bytes"] - 1000)
    assert not short["fits"]
    assert "1 KB are missing. It fits with --plan dp=1,micro_batches=2: " in short["advice"]
    assert shown("--batch-size", 32, "--plan", "dp=1,micro_batches=2")["bytes"] <= memory["bytes"] - 1000
    assert " helps most, but still takes" in shown("--device-memory", "1KB")["advice"]


@pytest.mark.parametrize(
    "typed",
    [
        "--nodes 3 --strategy sharded:stage=2,bucket_mb=0.03",
        "--plan dp=3,tp=2,micro_batches=3,axes=[pp,tp,dp]",
        *exhaustively(
            "--nodes 3",
            "--nodes 3 --strategy synchronous:accumulate=3",
            "--nodes 6 --strategy pipeline:stages=2,schedule=gpipe,micro_batches=3",
        ),
    ],
)
def test_the_change_that_helps_is_a_plan_that_can_be_typed_and_takes_what_is_said(typed):
    advice = shown("--batch-size", 29, "--device-memory", "7KB", *typed.split())["advice"]
    plan, nbytes = re.fullmatch(r".* --plan (.*?) .*helps most, but still takes (.*)\.", advice).groups()
    assert size(shown("--batch-size", 29, "--plan", *shlex.split(plan))["bytes"]) == nbytes


def test_a_device_with_a_host_lacks_what_the_host_keeps():
    typed = ("--nodes", 2, "--batch-size", 6, "--strategy")
    alone, both = (shown(*typed, f"sharded:2{rest}")["by_component"] for rest in ("", ",offload=offload(optimizer)"))
    assert alone["optimizer"] > 0 == both["optimizer"]
    assert both["weights"] == alone["weights"]


def test_more_nodes_than_are_simulated_have_a_memory_too():
    of_few, of_many = (shown("--plan", f"dp={dp},shard=1", "--batch-size", dp)["by_component"] for dp in (51, 1530))
    assert of_many["weights"] == of_few["weights"]
    assert of_many["optimizer"] < of_few["optimizer"] / 25


def size(nbytes: int) -> str:
    from minidl.plots.style import bytes_text

    return bytes_text(nbytes)


def test_sixteen_bits_take_half_of_weights_and_gradients_and_keep_masters():
    wide, narrow = (
        shown("--plan", "dp=1,micro_batches=32", "--batch-size", 32, "--precision", name)["by_component"]
        for name in ("float32", "bfloat16")
    )
    assert narrow["weights"] * 2 == wide["weights"] == wide["optimizer"] / 2
    assert narrow["optimizer"] == wide["weights"] * 3


# ---- --measure ----


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


def test_without_a_formula_the_run_alone_is_shown():
    said = json.loads(succeeds("memory", "--model", "mlp", "--strategy", "gossip", "--nodes", 2, "--measure", "--json"))
    assert said["source"] == "measured"
    assert said["by_component"] == said["measured"]["by_component"]
    assert said["by_component"]["buffers"] > 0  # a neighbour's weights


def test_large_images_are_divided_by_pixels_and_the_run_holds_what_the_formula_says():
    rng = np.random.default_rng(3)
    np.savez("fields.npz", x=rng.normal(size=(9, 1, 33, 35)).astype(np.float32), y=np.arange(9) % 3)
    Path("maps.py").write_text(MAPS)
    typed = ("memory", "--import", "maps.py", "--model", "maps", "--data", "fields.npz", "--batch-size", 1, "--json")
    alone = json.loads(succeeds(*typed, "--device-memory", "30KB"))
    assert "It fits with --plan dp=1,spatial=2x1 on 2 nodes instead of 1: " in alone["advice"]
    both = json.loads(succeeds(*typed, "--plan", "dp=1,spatial=2x1", "--measure", "--all-ranks"))
    assert both["bytes"] < 30_000 < alone["bytes"]
    assert both["bytes_by_rank"] == pytest.approx(both["measured"]["bytes_by_rank"], rel=0.02)
    assert len(set(both["bytes_by_rank"])) == 2  # of 33 rows


def test_more_than_the_machine_has_is_refused_before_the_run():
    said = refused("memory", "--model", "gpt:layers=96,heads=96,width=12288", "--measure")
    assert "--measure runs 1 node on this machine, which has" in said
    assert "leave it out, or give a smaller model or minibatch" in said


def test_what_cannot_be_is_refused_in_one_sentence():
    refuses(
        "memory",
        {
            "--model gpt --plan dp=8,tp=2 --shard 4": "Hybrid: shard must be from 1 to 3, got 4",
            "--model gpt --plan dp=8,shard=2 --shard 3": "--shard 3 and --plan dp=8,shard=2: give one of them",
            "--model gpt --shard 3": "give dp=2 or more and as many nodes",
            "--strategy sharded:stage=2 --nodes 4 --shard 3": "leave it out, and give --plan dp=4,shard=3",
            "--strategy sharded:offload=offload(optimizer) --measure": "counts the arrays of host and device together",
            "--model gpt --recompute selctive": "recompute must be",
            "--model mlp --recompute selective": "MLP has no layer of attention",
            "--strategy gossip --nodes 4": "Gossip does not say what its nodes keep: add --measure, which trains a few",
            "--plan pp=2,cuts=seconds": "cuts by seconds need a run: add --measure",
            "--plan dp=2 --nodes 3": "--plan dp=2 needs 2 nodes, got --nodes 3",
            "--plan dp=2 --nodes 1": "--plan dp=2 needs 2 nodes, got --nodes 1",
            "--device-memory many": "'many' is not a number of bytes",
            "--model gpt:vocabulary=5": "the text has 96 symbols, more than vocabulary=5",
            "--batch-size 0": "--batch-size must be at least 1, got 0",
            "--precision int8": "--precision must be",
        },
    )
