import pickle
from fractions import Fraction

import numpy as np
import pytest

from minidl.cluster.cost.network import PRESETS, Network, Tree

NIC, UPLINK = (1e-6, 1e9), (5e-6, 2e9)


def test_a_message_costs_alpha_and_beta_a_byte():
    network = Network(alpha=50e-6, beta=8e-9)
    assert network.time(0) == 50e-6
    assert network.time(1_000_000) == pytest.approx(0.00805, rel=1e-12)
    assert network.gamma == 0.0
    assert network.ranks is None


def test_numbers_of_numpy_and_fractions_become_floats():
    network = Network(np.float32(0.5), Fraction(1, 4), 2)
    assert (network.alpha, network.beta, network.gamma) == (0.5, 0.25, 2.0)
    assert all(type(value) is float for value in (network.alpha, network.beta, network.gamma))


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        ({"alpha": -1e-9}, ValueError, r"alpha \(seconds per .*\) must be at least 0, got -1e-09"),
        ({"beta": float("nan")}, ValueError, r"beta \(seconds per .*\) must be finite and at least 0, got nan"),
        ({"gamma": float("inf")}, ValueError, r"gamma \(seconds per .*\) must be finite and at least 0, got inf"),
        *(({"beta": no}, TypeError, "beta .* must be a number") for no in ("1e-6", None, 1j, True, [1e-6])),
    ],
)
def test_a_cost_that_is_no_finite_number_of_at_least_0_is_refused_by_its_name(costs, error, message):
    with pytest.raises(error, match=message):
        Network(**({"alpha": 1e-6, "beta": 1e-9, "gamma": 0.0} | costs))


def test_presets_move_the_bits_a_second_of_their_lines_and_are_found_whatever_the_case():
    lines = {"1gbe": 1e9, "10gbe": 10e9, "100gbe": 100e9, "infiniband": 200e9, "nvlink": 8 * 450e9}
    assert list(PRESETS) == list(lines)  # from slow to fast
    for name, bits_a_second in lines.items():
        assert Network.preset(name).beta * bits_a_second == pytest.approx(8, rel=1e-12)
        assert 1e-7 < Network.preset(name).alpha < 1e-4
    assert Network.preset("10GbE") == Network.preset("10gbe")


def test_a_network_is_accepted_by_name_or_as_itself_or_not_at_all():
    network = Network(1.0, 2.0)
    assert Network.of(network) is network
    assert Network.of("nvlink") == Network.preset("nvlink")
    assert Network.of(None) is None
    with pytest.raises(TypeError, match=r"a cluster\.Network or the name of a preset, got int"):
        Network.of(10)
    with pytest.raises(ValueError, match=r"network must be '1gbe', '10gbe', .*, got 'wifi'"):
        Network.of("wifi")


def test_residuals_compare_what_was_measured_with_the_model():
    network = Network(1e-6, 1e-9, measured=((0, 1e-6), (1000, 2.2e-6)))
    assert network.residuals == ((0, pytest.approx(0.0)), (1000, pytest.approx(0.1)))
    assert network == Network(1e-6, 1e-9)
    assert Network(1e-6, 1e-9).residuals == ()


def test_a_tree_answers_for_one_message_alone_on_its_longest_path():
    network = Network.tree(2, 4, NIC, UPLINK, gamma=1e-10)
    assert network.ranks == 8
    assert network.alpha == pytest.approx(2 * 1e-6 + 2 * 5e-6)
    assert network.beta == 1 / 1e9
    assert network.gamma == 1e-10
    assert Network.tree(2, 4, NIC, (5e-6, 1e8)).beta == 1 / 1e8
    one_rack = Network.tree(1, 4, NIC, (5e-6, 1e8))
    assert (one_rack.alpha, one_rack.beta) == (2e-6, 1e-9)


def test_nodes_without_a_place_in_the_tree_are_refused():
    network = Network.tree(2, 4, NIC, UPLINK)
    network.check(8)
    Network(1e-6, 1e-9).check(10**6)
    with pytest.raises(ValueError, match=r"9 nodes have no place in Network.tree\(racks=2, .* which has 8"):
        network.check(9)


def test_a_message_within_a_rack_takes_two_cards_and_one_between_racks_two_uplinks_as_well():
    tree = Tree(2, 2, NIC, UPLINK)
    latency, links = tree.path(0, 1)
    assert latency == pytest.approx(2e-6)
    assert [tree.capacities[link] for link in links] == [1e9, 1e9]
    latency, links = tree.path(1, 2)
    assert latency == pytest.approx(12e-6)
    assert [tree.capacities[link] for link in links] == [1e9, 2e9, 2e9, 1e9]
    assert tree.path(3, 3) == (0.0, ())


def test_the_two_directions_of_a_cable_are_links_of_their_own():
    tree = Tree(3, 4, NIC, UPLINK)
    for src in range(12):
        for dst in range(12):
            assert not set(tree.path(src, dst)[1]) & set(tree.path(dst, src)[1])


def test_paths_share_exactly_the_cards_and_uplinks_that_they_have_in_common():
    tree = Tree(3, 4, NIC, UPLINK)
    assert len(set(tree.path(0, 4)[1]) & set(tree.path(0, 8)[1])) == 2  # the card out of 0, up from rack 0
    assert len(set(tree.path(0, 4)[1]) & set(tree.path(1, 8)[1])) == 1  # up from rack 0
    assert len(set(tree.path(0, 8)[1]) & set(tree.path(4, 9)[1])) == 1  # down to rack 2
    assert len(set(tree.path(0, 1)[1]) & set(tree.path(2, 1)[1])) == 1  # the card into 1
    assert not set(tree.path(0, 1)[1]) & set(tree.path(1, 2)[1])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"racks": 0}, ValueError, "racks must be at least 1, got 0"),
        ({"per_rack": 2.5}, TypeError, "per_rack must be a whole number of at least 1, got 2.5"),
        ({"nic": 1e9}, TypeError, r"nic must be a pair \(latency in seconds, bytes per second\), got 1000000000.0"),
        ({"nic": ("1us", 1e9)}, TypeError, r"the latency of nic \(seconds\) must be a number of at least 0, got '1us'"),
        ({"nic": (-1e-6, 1e9)}, ValueError, r"the latency of nic \(seconds\) must be at least 0"),
        ({"uplink": (1e-6, 0)}, ValueError, r"the speed of uplink \(bytes per second\) must be above 0"),
        ({"uplink": (1e-6, float("nan"))}, ValueError, r"the speed of uplink .* must be finite and above 0"),
    ],
)
def test_a_tree_that_cannot_be_is_refused_with_the_reason(change, error, message):
    with pytest.raises(error, match=message):
        Network.tree(**({"racks": 2, "per_rack": 2, "nic": NIC, "uplink": UPLINK} | change))


@pytest.mark.parametrize("network", [Network(5e-5, 8e-9), Network(1.0, 2.0, 3.0), Network.tree(2, 4, NIC, UPLINK)])
def test_a_network_is_written_as_it_is_made_and_survives_pickling(network):
    assert eval(repr(network)) == network
    assert pickle.loads(pickle.dumps(network)) == network
    assert hash(network) == hash(pickle.loads(pickle.dumps(network)))
