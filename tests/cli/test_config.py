"""`minidl train --config`: the options of a run from a file of YAML or JSON."""

import json
from pathlib import Path

from tests.cli.command import assert_same_bits, refused, succeeds


def config(folder):
    return json.loads((folder / "config.json").read_text())


def test_the_configuration_of_a_run_given_back_makes_the_same_run(tmp_path):
    words = ("--nodes", 2, "--on", "simulation", "--network", "10gbe", "--lr", 0.1, "--optimizer", "sgd:nesterov=true")
    command = ("train", "--model", "mlp", "--data", "spirals", "--epochs", 2, *words, "--out", "first")
    succeeds(*command)
    succeeds("train", "--config", "first/config.json", "--out", "again")
    assert_same_bits(tmp_path / "first", tmp_path / "again")
    first, again = config(tmp_path / "first"), config(tmp_path / "again")
    first.pop("environment"), again.pop("environment")
    assert first == again


def test_the_command_line_goes_before_the_file_which_may_be_yaml_with_hyphens(tmp_path):
    Path("my.yaml").write_text(
        "model: mlp\ndata: spirals\nepochs: 1\nbatch-size: 32  # samples\nlr: 1.0e-2\non: simulation\n"
    )
    succeeds("train", "--config", "my.yaml", "--batch-size", 16, "--out", "out")
    found = config(tmp_path / "out")
    assert (found["model"], found["epochs"], found["batch_size"], found["lr"]) == ("mlp", 1, 16, 0.01)
    assert found["on"] == "simulation"  # YAML 1.1 reads the name of this option as true


def test_a_file_that_is_no_configuration_is_refused_in_one_sentence():
    for text, sentence in {
        "epoch: 3": "got 'epoch': did you mean 'epochs'?",
        "epochs: many": "--config my.yaml: epochs must be a whole number or None, got 'many'",
        "epochs: 2.5": "epochs must be a whole number or None, got 2.5",
        "nodes: true": "nodes must be a whole number, got True",
        "out: here": "--config my.yaml: an option must be",
        "- epochs": "--config my.yaml must hold options by name, such as: nodes: 4",
        "": "--config my.yaml must hold options by name",
        "a: [": "--config my.yaml is no YAML file: ",
        "model: mpl": "--model must be",
        "nodes: 0": "--nodes must be at least 1, got 0",
        "lr: 1e-3": "lr must be a number or None, got '1e-3', which YAML reads as text: write 1.0e-3",
        "lr: 1.25e2": "got '1.25e2', which YAML reads as text: write 1.25e+2",
        "nodes: 1e1": "nodes must be a whole number, got '1e1'\n",
        "batch-size: 32\nbatch_size: 16": "batch_size is given twice, with a hyphen and with an underscore",
        "nodes: " + "[" * 1000: "--config my.yaml is no YAML file: maximum recursion depth exceeded",
    }.items():
        Path("my.yaml").write_text(text)
        err = refused("train", "--config", "my.yaml")
        assert err.startswith("minidl train: "), text
        assert sentence in err, text
        assert not Path("runs").exists(), text


def test_config_refuses_a_missing_file_and_resume():
    assert "gone.yaml" in refused("train", "--config", "gone.yaml")
    Path("my.yaml").write_text("epochs: 1")
    err = refused("train", "--config", "my.yaml", "--resume", "out")
    assert "--resume goes on with the options of that run: leave out --config" in err
