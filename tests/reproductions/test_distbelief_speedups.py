"""The simulated networks of DistBelief send what their windows read, and take the time that formulas give."""

from __future__ import annotations

import math

import pytest

from benchmarks.reproductions import distbelief_speedups as speedups
from benchmarks.reproductions.distbelief_speedups import LARGEST, MACHINE, NETWORKS, SAMPLES, Layer, divided
from minidl import cluster
from minidl.cluster import Network, Node


@pytest.mark.parametrize(("inputs", "window", "parts"), [(100, 10, 9), (31, 8, 5), (17, 3, 4), (12, 1, 5)])
def test_a_part_reads_the_inputs_in_the_windows_of_its_outputs(inputs: int, window: int, parts: int) -> None:
    outputs = inputs - window + 1
    computes, reads = divided(Layer(inputs, outputs, window), parts)
    for i in range(parts):
        mine = range(outputs * i // parts, outputs * (i + 1) // parts)
        needed = {pixel for output in mine for pixel in range(output, output + window)}
        assert computes[i] == len(mine)
        for j in range(parts):
            owned = set(range(inputs * j // parts, inputs * (j + 1) // parts))
            assert reads[i, j] == len(needed & owned)


def test_the_speech_network_takes_the_time_of_its_formula_without_deviations() -> None:
    machines, flops_per_s, line = 8, 1.3e11, Network(7e-5, 9e-9)
    engine = cluster.Simulation(line, Node(flops_per_s, math.inf), trace="ledger")
    run = cluster.launch(speedups.step, (NETWORKS["speech"],), nodes=machines, on=engine)
    # forward 2, and backward 4, flops a weight and sample; but the first layer needs no gradient of its inputs
    weights = [layer.weights for layer in NETWORKS["speech"]]
    flops = SAMPLES * (6 * sum(weights) - 2 * weights[0])
    message = line.alpha + 4 * SAMPLES * 2560 / machines * line.beta
    assert run.seconds == pytest.approx(flops / machines / flops_per_s + 8 * (machines - 1) * message, rel=1e-9)


def test_a_full_layer_reads_all_of_others_and_a_local_one_a_rim() -> None:
    assert (divided(NETWORKS["speech"][2], 16)[1] == 2560 / 16).all()
    _, local = divided(NETWORKS[LARGEST][1], 16)
    own = local.diagonal()
    assert (local.sum(axis=1) - own).max() < own.max()
    assert (local > 0).sum(axis=1).max() == 9  # its own tile and 8 neighbours


def test_weights_are_those_that_the_paper_states() -> None:
    found = [sum(layer.weights for layer in layers) / 1e6 for layers in NETWORKS.values()]
    published = [millions for millions, *_ in speedups.PUBLISHED.values()]
    assert found[0] == pytest.approx(published[0], rel=0.01)
    assert found[1:] == pytest.approx(published[1:], rel=0.22)


def test_more_machines_slow_down_full_layers_and_speed_up_local_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speedups, "machines", lambda network: [1, 16, 64])
    found = speedups.speed_ups(MACHINE)
    assert found["speech"][1] > found["speech"][2]
    assert found[LARGEST][2] > 2 * found[LARGEST][1]
