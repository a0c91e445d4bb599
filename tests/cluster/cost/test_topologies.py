"""Routes of torus, fat tree and dragonfly against closed forms: hops, links, bisections, loads; and how they are typed.

That they are the routes of SimGrid is in tests/cluster/engines/simulation/test_flows.py.
"""

import math
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidl import cluster
from minidl.cluster.cost.network import Network
from minidl.cluster.cost.topologies import Dragonfly, FatTree, Torus, Tree
from minidl.cluster.cost.topologies.text import FORMS, parse, written

LINK = (3e-6, 7e9)
ODD, EVEN = Torus((5, 3), LINK), Torus((6, 4, 2), LINK)
FULL, THIN = FatTree((3, 4, 2), link=LINK), FatTree((6, 4), up=(1, 2), link=LINK)
TWO_WAYS = FatTree((2, 3, 2), up=(2, 1, 3), parallel=(1, 1, 2), link=LINK)
SMALL, TALL = Dragonfly((6, 1, 6, 2), link=LINK), Dragonfly((9, 2, 3, 1), (3, 1, 2), link=LINK)
ALL = [ODD, EVEN, FULL, THIN, TWO_WAYS, SMALL, TALL]


def pairs(topology):
    return [pair for pair in product(range(topology.ranks), repeat=2) if pair[0] != pair[1]]


def load(topology, messages):
    """How many of the messages (src, dst) are on each link that has any."""
    return Counter(link for message in messages for link in topology.route(*message))


def shift(topology, by):
    return [(rank, (rank + by) % topology.ranks) for rank in range(topology.ranks) if by % topology.ranks]


sizes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@given(
    st.one_of(
        sizes.map(lambda dimensions: Torus(dimensions, LINK)),
        st.lists(st.tuples(*3 * [st.integers(1, 3)]), min_size=1, max_size=3).map(
            lambda levels: FatTree(*zip(*levels, strict=True), link=LINK)
        ),
        st.tuples(*4 * [st.integers(1, 4)]).map(lambda sizes: Dragonfly(sizes, link=LINK)),
    ),
    st.data(),
)
def test_a_route_passes_no_link_twice_and_shares_none_with_the_way_back(topology, data):
    src, dst = (data.draw(st.integers(0, topology.ranks - 1)) for _ in range(2))
    latency, there = topology.path(src, dst)
    _, back = topology.path(dst, src)
    assert (latency == 0) == (not there) == (src == dst)
    assert len(there) == len(set(there)) == len(back)
    assert not set(there) & set(back)
    assert all(0 <= link < len(topology.links) for link in there)
    assert latency == pytest.approx(LINK[0] * len(there))


@pytest.mark.parametrize("topology", [*ALL, Tree(3, 4, LINK, (20e-6, 3e9))], ids=repr)
def test_no_message_takes_longer_than_alpha_and_beta_say(topology):
    network, paths = Network.over(topology), [topology.path(*pair) for pair in pairs(topology)]
    assert network.alpha == max(latency for latency, _ in paths)
    assert 1 / network.beta == pytest.approx(min(topology.capacities[link] for _, links in paths for link in links))


@pytest.mark.parametrize("torus", [ODD, EVEN], ids=repr)
def test_on_a_torus_each_coordinate_goes_the_shorter_way_round(torus):
    def coordinates(rank):
        for size in torus.dimensions:
            yield rank % size
            rank //= size

    for src, dst in pairs(torus):
        steps = zip(coordinates(src), coordinates(dst), torus.dimensions, strict=True)
        assert len(torus.route(src, dst)) == sum(min((a - b) % size, (b - a) % size) for a, b, size in steps)
    assert max(len(torus.route(*pair)) for pair in pairs(torus)) == sum(size // 2 for size in torus.dimensions)


def test_at_equal_distance_a_message_goes_upwards_on_a_torus():
    for first, links in ((1, (2, 4, 6)), (4, (8, 10, 0))):  # the links upwards have even numbers
        assert Torus((6,), LINK).route(first, (first + 3) % 6) == links


@pytest.mark.parametrize("torus", [ODD, EVEN], ids=repr)
def test_an_all_to_all_loads_the_links_of_a_torus_evenly_and_no_less_than_its_bisection_allows(torus):
    n, found = torus.ranks, load(torus, pairs(torus))
    expected = Counter()
    for size in torus.dimensions:
        for farthest in (size // 2, (size - 1) // 2):  # upwards, downwards; between two nodes is one cable
            expected[n // size * math.comb(farthest + 1, 2)] += n
    del expected[0]
    assert Counter(found.values()) == expected
    if torus is EVEN:
        halves, ways_across = (n // 2) ** 2, 2 * n // 6  # cut through the longest dimension, in one direction
        assert max(found.values()) >= halves / ways_across


@pytest.mark.parametrize("torus", [ODD, EVEN, Torus((7,), LINK)], ids=repr)
def test_a_ring_of_all_ranks_never_meets_itself_on_a_torus(torus):
    assert set(load(torus, shift(torus, 1)).values()) == {1}
    nbytes, p = 44_000 * torus.ranks, torus.ranks
    engine = cluster.Simulation(Network.over(torus), trace="ledger")
    run = cluster.launch(lambda comm: comm.all_reduce(cluster.Phantom(nbytes), algorithm="ring"), nodes=p, on=engine)
    longest = len(torus.dimensions)  # links from the last rank to rank 0
    assert run.seconds == pytest.approx(2 * (p - 1) * (longest * LINK[0] + nbytes / p / LINK[1]))


@pytest.mark.parametrize("tree", [FULL, THIN, TWO_WAYS], ids=repr)
def test_on_a_fat_tree_messages_turn_at_the_first_switch_above_both(tree):
    below = [math.prod(tree.down[:level]) for level in range(len(tree.down) + 1)]
    for src, dst in pairs(tree):
        level = next(level for level, nodes in enumerate(below) if src // nodes == dst // nodes)
        assert len(tree.route(src, dst)) == 2 * level
    assert len(load(tree, pairs(tree))) <= 2 * sum(tree.cables) == len(tree.links)


def test_a_full_fat_tree_has_a_link_for_each_message_of_every_shift():
    assert FULL.cables == (FULL.ranks,) * 3
    for by in range(1, FULL.ranks):
        assert set(load(FULL, shift(FULL, by)).values()) == {1}


def test_the_top_of_a_fat_tree_is_shared_by_as_many_as_its_cables_are_too_few():
    assert THIN.cables == (24, 8)
    across = load(THIN, shift(THIN, THIN.ranks // 2))
    assert max(across.values()) == 6 / 2
    top = {link for link in load(THIN, pairs(THIN)) if link >= 2 * 24}
    assert len(top) == 2 * 8


@pytest.mark.parametrize("tree", [FULL, THIN, TWO_WAYS], ids=repr)
def test_messages_to_one_node_of_a_fat_tree_meet_on_the_way_down_only(tree):
    for dst in range(tree.ranks):
        ports = {}  # upwards, each node or switch sends all of them through one of its cables
        for src in set(range(tree.ranks)) - {dst}:
            route = tree.route(src, dst)
            for level, link in enumerate(route[: len(route) // 2]):
                place = (link // 2 - sum(tree.cables[:level])) // (tree.up[level] * tree.parallel[level])
                assert ports.setdefault((level, place), link) == link


@pytest.mark.parametrize("dragonfly", [SMALL, TALL], ids=repr)
def test_a_dragonfly_has_a_cable_between_any_two_groups_and_routers_that_are_two_steps_apart_at_most(dragonfly):
    groups, chassis, routers, nodes = dragonfly.sizes
    within = (routers > 1) + (chassis > 1)
    per_group, found = chassis * routers * nodes, load(dragonfly, pairs(dragonfly))
    for src, dst in pairs(dragonfly):
        most = 3 + 2 * within if src // per_group != dst // per_group else 2 + within
        assert 2 <= len(dragonfly.route(src, dst)) <= most
    assert max(len(dragonfly.route(*pair)) for pair in pairs(dragonfly)) == 3 + 2 * within
    cables = groups * (groups - 1) + groups * chassis * routers * (routers + chassis - 2) + 2 * dragonfly.ranks
    assert len(found) == cables  # each in one direction
    between = [number for link, number in found.items() if link >= len(dragonfly.links) - groups**2]
    assert between == [per_group**2] * (groups * (groups - 1))  # all of a group to all of another


def test_a_link_of_several_cables_is_as_many_times_as_fast():
    for dst, cables in ((1, (2,)), (3, (1,)), (TALL.ranks - 1, (2, 3, 2, 1))):  # routers, chassis, groups
        assert [TALL.capacities[link] / LINK[1] for link in TALL.route(0, dst)] == [1, *cables, 1]


@pytest.mark.parametrize("topology", ALL, ids=repr)
def test_a_topology_is_read_as_it_is_written(topology):
    assert parse(written(topology), [LINK]) == topology
    assert eval(repr(topology)) == Network.over(topology)


def test_every_form_that_messages_show_can_be_typed_in_capitals_and_with_a_times_sign_too():
    for kind, form in FORMS.items():
        topology = parse(form.example, [LINK])
        assert topology == parse(form.example.upper().replace("X", " \N{MULTIPLICATION SIGN} "), [LINK])
        assert kind in ("racks", topology.maker)
    assert parse("fat-tree:4x3", [LINK]) == FatTree((4, 3), (1, 4), (1, 1), link=LINK)
    assert parse("racks:4x3", [LINK, (1.0, 2.0)]) == Tree(4, 3, LINK, (1.0, 2.0))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tours:4x4", "the kind of a topology must be .*, got 'tours': did you mean 'torus'?"),
        ("torus", "'torus' is no topology: write torus as in torus:4x4x2: nodes along each dimension"),
        ("torus:4x4x", "'torus:4x4x' is no topology"),
        ("torus:-4", "'torus:-4' is no topology"),
        ("torus:4,4", "'torus:4,4' is no topology"),
        ("torus:4:4", "'torus:4:4' is no topology"),
        ("torus:\N{SUPERSCRIPT TWO}", "is no topology"),
        ("torus:4x0", "torus:4x0: each of dimensions must be at least 1, got 0"),
        ("fat_tree:4x4:1", "fat_tree:4x4:1: up must have 2 numbers, got 1"),
        ("fat_tree:4x4:1x4:1x1x1", "parallel must have 2 numbers, got 3"),
        ("dragonfly:4x4", "sizes must have 4 numbers, got 2"),
        ("dragonfly:4x4x4x4:1x0x1", "each of cables must be at least 1, got 0"),
        ("racks:4", "racks:4: racks takes two numbers, as in racks:8x8"),
        ("racks:4x4x4", "racks takes two numbers"),
    ],
)
def test_a_text_that_is_no_topology_is_answered_with_what_is_wrong(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse(text, [LINK])


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: Torus(4, LINK), TypeError, "dimensions must be a tuple of whole numbers, got 4"),
        (lambda: Torus((), LINK), TypeError, r"dimensions must be a tuple of whole numbers, got \(\)"),
        (lambda: Torus((4, 2.5), LINK), TypeError, "each of dimensions must be a whole number of at least 1, got 2.5"),
        (lambda: Torus((4,), 1e9), TypeError, r"link must be a pair \(latency in seconds, bytes per second\)"),
        (lambda: FatTree((4,), link=(0, 0)), ValueError, r"the speed of link \(bytes per second\) must be above 0"),
        (lambda: parse("torus:4", [LINK, LINK]), ValueError, "torus takes at most one link after @, got 2"),
        (lambda: parse("racks:4x4", [LINK] * 3), ValueError, "racks takes at most two links after @, got 3"),
        (lambda: Network.torus((3, 2), LINK).check(7), ValueError, "7 nodes have no place in .*, which has 6: make"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_their_names(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()
