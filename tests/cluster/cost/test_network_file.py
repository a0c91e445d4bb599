"""Networks as files: what is written is read back, files stand for names, wrong ones get a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minidl import cluster
from minidl.cluster.cost.network import Network

TREE = Network.tree(2, 4, nic=(1e-6, 1e9), uplink=(5e-6, 2e9), gamma=1e-10)
TORUS = Network.torus((4, 2), link=(1e-6, 1e9), gamma=1e-10)
FITTED = Network(5e-5, 8e-9, 1e-10, measured=((64, 5e-5), (1024, 6e-5)))


@pytest.mark.parametrize("network", [Network(0, 0), Network.preset("nvlink"), FITTED, TREE, TORUS], ids=repr)
def test_a_network_that_was_saved_is_the_same_when_loaded(tmp_path, network):
    network.save(tmp_path / "net.json", "by hand")
    again = Network.load(tmp_path / "net.json")
    assert again == network
    assert again.measured == network.measured
    assert json.loads((tmp_path / "net.json").read_text())["source"] == "by hand"


def test_a_file_stands_for_a_name_wherever_a_network_is_named(tmp_path):
    path = str(tmp_path / "Net.JSON")
    TREE.save(path)
    assert Network.of(path) == TREE
    run = cluster.launch(lambda comm: comm.barrier(), nodes=2, on="simulation", network=path)
    assert run.seconds == pytest.approx(2e-6)  # the latencies of two cards


def test_a_file_may_say_whole_numbers(tmp_path):
    (tmp_path / "net.json").write_text('{"alpha": 1, "beta": 0}')
    assert Network.load(tmp_path / "net.json") == Network(1.0, 0.0)


LINK = '{"latency": 0, "bytes_per_second": 1e9}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("alpha = 3", "net.json is no JSON file: "),
        ("", "net.json is no JSON file: "),
        ("[1, 2]", 'must hold one object, such as {"alpha": 5e-5, "beta": 8e-9}'),
        ('{"alpha": 1e-6}', "the key beta is missing"),
        ('{"alpha": -1, "beta": 0}', "alpha: input should be greater than or equal to 0, got -1"),
        ('{"alpha": "1us", "beta": 0}', "alpha: input should be a valid number, got '1us'"),
        ('{"alpha": NaN, "beta": 0}', "alpha: "),
        ('{"alpha": 0, "beta": 0, "gama": 0}', "got 'gama': did you mean 'gamma'?"),
        ('{"racks": 2, "per_rack": 2, "nic": LINK}', "the key uplink is missing"),
        ('{"racks": 0, "per_rack": 2, "nic": LINK, "uplink": LINK}', "racks: input should be greater"),
        ('{"racks": 2, "per_rack": 2.5, "nic": LINK, "uplink": LINK}', "per_rack: input should be a valid"),
        ('{"topology": "torus:4x4"}', "the key link is missing"),
        ('{"topology": "torus:4y4", "link": LINK}', "'torus:4y4' is no topology: write torus as in torus:4x4x2"),
        ('{"topology": "torus:4x4", "link": LINK, "racks": 2}', "racks"),
        ('{"racks": 2, "per_rack": 2, "nic": {"latency": 0}, "uplink": LINK}', "the key nic.bytes_per_second is"),
    ],
)
def test_a_file_that_describes_no_network_is_answered_with_what_is_wrong(tmp_path: Path, text: str, sentence: str):
    (tmp_path / "net.json").write_text(text.replace("LINK", LINK))
    with pytest.raises(ValueError, match=r"net\.json") as error:
        Network.load(tmp_path / "net.json")
    assert sentence in str(error.value)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Network.load(tmp_path / "net.json")
