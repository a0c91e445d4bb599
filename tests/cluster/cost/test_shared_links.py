"""What all-reduces cost where links are shared: "auto" is as fast as the best of them."""

from itertools import product

import pytest

from minidl import cluster
from minidl.cluster import Network, cost
from minidl.cluster.cost import shared_links
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

CARD = (5e-6, 1.25e9)
TOPOLOGIES = {
    "thin uplinks": Network.tree(3, 4, CARD, (10e-6, 0.25e9), gamma=1e-10),
    "fat and late uplinks": Network.tree(2, 6, CARD, (100e-6, 15e9)),
    "an uplink for every node": Network.tree(4, 3, CARD, (5e-6, 3.75e9)),
    "torus": Network.torus((4, 3), CARD),
    "thin fat tree": Network.fat_tree((4, 3), up=(1, 2), link=CARD),
    "dragonfly": Network.dragonfly((3, 1, 2, 2), link=CARD),
}
GROUPS = {"all": range(12), "nine": range(9), "one of each two": range(0, 12, 2), "some": (1, 2, 3, 7, 11)}
OTHER_GROUPS = [(group,) for name, group in GROUPS.items() if name != "all"]


def simulated(network, ranks, nbytes, algorithm, **options):
    """Seconds for an all-reduce among these ranks, which begin together."""

    def program(comm):
        group = comm.split(0 if comm.rank in ranks else None)
        comm.compute(seconds=1.0 - comm.now())
        if group is not None:
            group.all_reduce(cluster.Phantom(nbytes), algorithm=algorithm, **options)

    engine = cluster.Simulation(network, trace="ledger")
    return cluster.launch(program, nodes=network.ranks, on=engine).seconds - 1.0


FIRST = ["thin uplinks", "torus", "dragonfly"]


@pytest.mark.parametrize("ranks", [GROUPS["all"], *exhaustively(*OTHER_GROUPS)], ids=GROUPS)
@pytest.mark.parametrize("topology", [*FIRST, *exhaustively(*(name for name in TOPOLOGIES if name not in FIRST))])
def test_auto_is_at_most_a_tenth_slower_than_the_best_named_algorithm(topology, ranks):
    network = TOPOLOGIES[topology]
    for nbytes in (4, 4096, 262144, 10_000_000):
        best = min(simulated(network, ranks, nbytes, name) for name in cost.ALL_REDUCE)
        assert simulated(network, ranks, nbytes, "auto") <= 1.1 * best


def test_of_two_racks_with_a_thin_uplink_each_is_a_group_of_its_own():
    network = Network.tree(2, 8, (1e-6, 10e9), (50e-6, 1e9))
    everybody, nbytes = tuple(range(16)), 1 << 20
    assert shared_links.best_all_reduce(network, everybody, nbytes) == ("hierarchical", {"per_group": 8})
    by_longest_path = cost.best_all_reduce(16, nbytes, network)
    slower = simulated(network, everybody, nbytes, by_longest_path)
    assert simulated(network, everybody, nbytes, "auto") < slower / 5


@pytest.mark.parametrize("algorithm", shared_links.ALL_REDUCE)
def test_within_one_rack_the_rounds_are_those_of_the_formulas(algorithm):
    (latency, speed), gamma = CARD, 1e-10
    network = Network.tree(1, 16, CARD, (1.0, 1.0), gamma)
    for p, nbytes in product((1, 2, 3, 4, 6, 7, 8, 9, 16), (0, 36, 100_000)):
        seconds = shared_links.all_reduce(algorithm, network, tuple(range(p)), nbytes)
        formula = cost.all_reduce(algorithm, p, nbytes, 2 * latency, 1 / speed, gamma)
        uneven = 0.01 if algorithm == "pipelined_chain" else 1e-9  # all segments are taken to be the larger kind
        assert seconds == pytest.approx(formula, rel=uneven), (p, nbytes)


@pytest.mark.parametrize("algorithm", shared_links.ALL_REDUCE)
@pytest.mark.parametrize(
    "network",
    [
        Network.tree(4, 4, CARD, (20e-6, 1.25e9)),
        Network.torus((4, 4), CARD),
        Network.fat_tree((4, 4), up=(1, 2), link=CARD),
    ],
    ids=["racks", "torus", "fat tree"],
)
def test_over_shared_links_the_rounds_take_what_the_simulation_says(algorithm, network):
    everybody = tuple(range(16))
    seconds = shared_links.all_reduce(algorithm, network, everybody, 1 << 20)
    assert seconds == pytest.approx(simulated(network, everybody, 1 << 20, algorithm), rel=0.02)


def test_rounds_are_too_low_where_messages_of_different_rounds_share_a_link():
    """8 and 9 send to 0 and 1 over the uplink while 4 and 5, which have no such message, already exchange theirs."""
    network = Network.tree(2, 5, (1e-6, 1e9), (0.0, 1e8))
    seconds = shared_links.all_reduce("recursive_doubling", network, tuple(range(10)), 4_000_000)
    assert seconds == pytest.approx(0.288, rel=1e-3)
    assert simulated(network, range(10), 4_000_000, "recursive_doubling") == pytest.approx(0.360, rel=1e-3)


def test_a_network_without_shared_links_is_sent_to_the_formulas():
    with pytest.raises(ValueError, match=r"has no links that messages share: ask cost.best_all_reduce"):
        shared_links.best_all_reduce(Network(1e-6, 1e-9), (0, 1), 4)
