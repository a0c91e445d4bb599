import heapq
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl.cluster.cost.network import Network, Tree
from minidl.cluster.cost.topologies.text import parse
from minidl.cluster.engines.protocol import EAGER_BYTES
from minidl.cluster.engines.simulation import Simulation
from minidl.cluster.engines.simulation import flows as flows_module
from minidl.cluster.engines.simulation.flows import Flows, fair_rates
from minidl.cluster.launch import launch

SIMGRID = json.loads((Path(__file__).parent / "files" / "simgrid_times.json").read_text())["cases"]
ROUTED = [case for case in SIMGRID if "routes" in case]
INDEPENDENT = [case for case in SIMGRID if not any(before for *_, before in case["transfers"])]


@dataclass(eq=False)
class Transfer:
    src: int
    dst: int
    nbytes: int
    number: int = 0


def network_of(case):
    """The network that SimGrid simulated."""
    if "topology" in case:
        return Network.over(parse(case["topology"], [tuple(case["link"])]))
    return Network.tree(case["racks"], case["per_rack"], case["nic"], case["uplink"])


def finish_times(tree, transfers):
    """When each of the transfers (src, dst, bytes, start, those that must finish before) ends: the scheduler's loop."""
    flows = Flows(tree)
    waits_for = [len(before) for *_, before in transfers]
    posts = [(start, k) for k, (*_, start, before) in enumerate(transfers) if not before]
    heapq.heapify(posts)
    finished = [None] * len(transfers)
    while posts or flows.next_event() < math.inf:
        now = min(flows.next_event(), posts[0][0] if posts else math.inf)
        if now == flows.next_event():
            for transfer in flows.advance(now):
                assert finished[transfer.number] is None
                finished[transfer.number] = now
                for k, (*_, start, before) in enumerate(transfers):
                    if transfer.number in before:
                        waits_for[k] -= 1
                        if not waits_for[k]:
                            heapq.heappush(posts, (max(now, start), k))
        while posts and posts[0][0] == now:
            k = heapq.heappop(posts)[1]
            flows.ready(Transfer(*transfers[k][:3], k), now)
    return finished


@pytest.mark.parametrize("case", SIMGRID, ids=[case["name"] for case in SIMGRID])
def test_every_transfer_ends_when_simgrid_says(case):
    assert finish_times(network_of(case).topology, case["transfers"]) == pytest.approx(
        case["finished"], rel=1e-9, abs=0
    )


@pytest.mark.parametrize("case", ROUTED, ids=[case["topology"] for case in ROUTED])
def test_every_route_has_the_links_that_simgrid_says(case):
    """Links are numbered as they appear, here and there."""
    topology, numbers = network_of(case).topology, {}
    for src, dst, links in case["routes"]:
        assert [numbers.setdefault(link, len(numbers)) for link in topology.route(src, dst)] == links, (src, dst)


def post(comm, transfers):
    """Receive from the beginning and send when it is time; the time when this rank is through with everything."""
    receives = [comm.irecv(src, tag=k) for k, (src, dst, *_) in enumerate(transfers) if dst == comm.rank]
    sends = []
    for start, k in sorted((start, k) for k, (src, _, _, start, _) in enumerate(transfers) if src == comm.rank):
        comm.compute(seconds=start - comm.now())
        sends.append(comm.isend(np.zeros(transfers[k][2], np.uint8), transfers[k][1], tag=k))
    for work in receives + sends:
        work.wait()
    return comm.now()


@pytest.mark.parametrize("case", INDEPENDENT, ids=[case["name"] for case in INDEPENDENT])
def test_ranks_of_a_program_are_through_when_simgrid_says(case):
    network = network_of(case)
    ends = [0.0] * network.ranks
    for (src, dst, nbytes, start, _), finished in zip(case["transfers"], case["finished"], strict=True):
        ends[dst] = max(ends[dst], finished)
        ends[src] = max(ends[src], start if nbytes <= EAGER_BYTES else finished)  # a short message is just sent off
    run = launch(post, (case["transfers"],), nodes=network.ranks, on=Simulation(), network=network, deadline=150)
    assert run.results == pytest.approx(ends, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("name", "algorithm", "floats"),
    [
        ("ring all-reduce of 4 MB in a rack of 8", "ring", 1_000_000),
        ("ring all-reduce over 4 racks of 2, thin uplinks", "ring", 1_000_000),
        ("butterfly over 4 racks of 4, thin uplinks", "recursive_doubling", 100_000),
    ],
)
def test_a_collective_takes_as_long_as_its_messages_do_in_simgrid(name, algorithm, floats):
    (case,) = (case for case in SIMGRID if case["name"] == name)
    network = network_of(case)

    def program(comm):
        comm.all_reduce(np.ones(floats, np.float32), algorithm=algorithm)

    run = launch(program, nodes=network.ranks, on=Simulation(), network=network, deadline=150)
    assert run.seconds == pytest.approx(max(case["finished"]), rel=1e-9, abs=0)


paths = st.lists(st.sets(st.integers(0, 5), max_size=4).map(sorted), max_size=12)
speeds = st.lists(st.floats(1e-3, 1e12), min_size=6, max_size=6)


@settings(max_examples=60)
@given(paths, speeds)
def test_rates_are_max_min_fair_for_each_flow_has_a_full_link_in_which_nobody_is_faster(flows, capacities):
    rates = fair_rates(flows, capacities)
    load = [sum(rate for rate, links in zip(rates, flows, strict=True) if link in links) for link in range(6)]
    assert all(load[link] <= capacities[link] * (1 + 1e-12) for link in range(6))
    for rate, links in zip(rates, flows, strict=True):
        if not links:
            assert rate == math.inf
            continue
        fastest = {link: max(r for r, ls in zip(rates, flows, strict=True) if link in ls) for link in links}
        assert any(
            load[link] >= capacities[link] * (1 - 1e-12) and rate >= fastest[link] * (1 - 1e-12) for link in links
        )


def test_the_textbook_example_of_a_long_flow_across_short_ones():
    # One flow over three links, each of which has another flow of its own.
    assert fair_rates([(0, 1, 2), (0,), (1,), (2,)], [1.0, 2.0, 3.0]) == [0.5, 0.5, 1.5, 2.5]


@pytest.mark.parametrize("workers", [1, 7, 100])
def test_pushes_to_a_parameter_server_overlap_their_latencies_and_share_its_card(workers):
    tree = Tree(1, workers + 1, nic=(25e-6, 125e6), uplink=(0.0, 1.0))
    pushes = [(worker, 0, 1_000_000, 0.0, ()) for worker in range(1, workers + 1)]
    assert finish_times(tree, pushes) == pytest.approx([50e-6 + workers * 1_000_000 / 125e6] * workers, rel=1e-12)


def test_what_a_short_flow_takes_a_long_one_gets_back_afterwards():
    tree = Tree(1, 3, nic=(0.0, 100.0), uplink=(0.0, 1.0))
    # Alone for 1 s (100 bytes), half the card for 2 s (100 bytes), alone for the last 100 bytes.
    assert finish_times(tree, [(0, 2, 300, 0.0, ()), (1, 2, 100, 1.0, ())]) == [4.0, 3.0]


def test_a_message_to_oneself_takes_no_time():
    assert finish_times(Tree(1, 2, (1.0, 1.0), (1.0, 1.0)), [(1, 1, 10**9, 3.0, ())]) == [3.0]


@pytest.mark.parametrize("nbytes", [7, 10_007])
def test_ends_that_differ_by_rounding_alone_are_one_instant(nbytes):
    flows = Flows(Tree(1, 4, nic=(0.0, 1e9), uplink=(0.0, 1.0)))
    alone, first, second = Transfer(0, 1, 3 * nbytes), Transfer(2, 3, nbytes), Transfer(2, 3, 2 * nbytes)
    for transfer in (alone, first, second):
        flows.ready(transfer, 0.7)
    # Both ways 3 n bytes go through one card; added up in one step or in two, that gives different last digits.
    assert [flows.advance(flows.next_event()) for _ in range(2)] == [[], [first]]
    assert {*flows.advance(flows.next_event())} == {alone, second}


def test_ends_that_differ_by_a_billionth_are_two_instants():
    flows = Flows(Tree(1, 4, nic=(0.0, 1e9), uplink=(0.0, 1.0)))
    shorter, longer = Transfer(0, 1, 10**9), Transfer(2, 3, 10**9 + 1)
    flows.ready(longer, 0.0)
    flows.ready(shorter, 0.0)
    assert flows.advance(flows.next_event()) == []
    assert [flows.advance(flows.next_event()) for _ in range(2)] == [[shorter], [longer]]


@pytest.mark.parametrize("clock", [0.0, 1.0, 1e6, 1e12])
def test_late_on_the_clock_where_a_transfer_is_shorter_than_a_tick_everything_still_ends(clock):
    tree = Tree(2, 4, nic=(1e-9, 1e12), uplink=(1e-9, 1.7e12))
    transfers = [(i, (3 * i + 5) % 8, 1 + 997 * i, clock, ()) for i in range(8)] * 3
    finished = finish_times(tree, transfers)
    assert all(clock <= end <= clock * (1 + 1e-9) + 1e-6 for end in finished)


def test_only_flows_that_share_links_with_a_change_get_new_rates(monkeypatch):
    solved = []
    monkeypatch.setattr(
        flows_module, "fair_rates", lambda flows, capacities: solved.append(len(flows)) or fair_rates(flows, capacities)
    )
    tree = Tree(1, 6, nic=(0.0, 100.0), uplink=(0.0, 1.0))
    transfers = [(0, 1, 1000, 0.0, ()), (2, 3, 100, 0.0, ()), (4, 3, 200, 0.0, ())]
    assert finish_times(tree, transfers) == [10.0, 2.0, 3.0]
    assert solved == [2, 1]  # 2 -> 3 and 4 -> 3 begin; 2 -> 3 ends and 4 -> 3 gets faster; 0 -> 1 shares no link
